"""Every experiment with the smallest sizes that make sense."""

import functools
import itertools

import pytest

from experiments import (
    adversary,
    attention_cost,
    attention_kinds,
    classification,
    communication,
    coreference,
    curves,
    decoders,
    decoding,
    denoising,
    device,
    digits,
    experts,
    faithfulness,
    finetuning,
    gradient_reach,
    grokking,
    heads,
    induction,
    knock_out,
    lengths,
    one_vector,
    preferences,
    processes,
    scaling_law,
    sharing,
    sharpness,
    since_2017,
    speculative,
    speedrun,
    step_growth,
    superposition,
    table1,
    table3,
    table4,
    translation,
)
from experiments.measuring import equal_terms, laws, paired, steps, timing
from minitransformer.data import Corpus, PairCorpus, TextTask, TranslationTask, load_text
from minitransformer.data.labelled import load_labelled
from minitransformer.models import GPT, Transformer, TransformerConfig, gpt_config
from minitransformer.recipes import get_recipe
from minitransformer.tokenizers import BytePairTokenizer, CharacterTokenizer
from tests.data.library import small_library

NOUNS = (("Hund", "dog"), ("König", "king"), ("Vogel", "bird"), ("Baum", "tree"))
PAIRS = [(f"Der {a} und der {b} sind hier.", f"The {c} and the {d} are here.") for (a, c), (b, d) in
         itertools.product(NOUNS, NOUNS)]  # fmt: skip
TIMES = {
    "1 process": [0.2, 0.2],
    "2 threads": [0.1, 0.2],
    "2 processes": [0.1, 0.1],
    "sharded": [0.4, 0.1],
    "sum": [0.01] * 2,
}
CONSTANTS = {
    adversary: {
        **{"SEEDS": 2, "STEPS": 1, "FOOLED": 1, "HEADS": 4, "TESTED": 2, "JUDGED": 1, "MOVED": 1, "LAST": 2},
        "TEXT_STEPS": 1,
    },
    attention_cost: {"LENGTHS": (16, 32), "LONGEST": {"full": 16, "PyTorch math": 16}},
    attention_kinds: {
        "STEPS": {kind: {True: 2, False: 3} for kind in ("text", "recall")},
        "TESTED": 5,
        "PAIRS": (2, 5),
    },
    classification: {
        **{"SEEDS": 2, "STEPS": {30: 1, 60: 1, 90: 1}, "HIDDEN": 1, "BATCH": 2},
        "HIDDEN_BATCH": 2,
    },
    coreference: {
        "SEEDS": 2,
        "STEPS": 3,
        "TESTED": 5,
        "SIZES": {**coreference.SIZES, "d_model": 8, "d_ff": 4},
    },
    decoders: {"SMALLER": {"vocab_size": 1001, "hidden_size": 16, "num_hidden_layers": 1}},
    decoding: {"COUNT": 4, "LONG": 32, "RECOMPUTED": (16, 32), "BATCHES": (1, 2)},
    device: {"PARTS": {"part": lambda progress: (["a line"], {"value": 1}, True)}},
    denoising: {
        "OPTIONS": (
            *("--steps", "2", "--d-model", "16", "--num-layers", "1"),
            *("--batch-size", "2", "--vocab-size", "300"),
        )
    },
    digits: {"STEPS": 2, "SEEDS": 3},
    equal_terms: {"BATCH": 4, "TESTED": 4},
    experts: {"SEEDS": 2, "STEPS": 2, "SIZES": {**experts.SIZES, "d_model": 8, "d_ff": 4}},
    faithfulness: {
        "STEPS": {task: {True: 2, False: 3} for task in ("reverse", "vote")},
        "TESTED": {task: {True: 1, False: 2} for task in ("reverse", "vote")},
        "COPIES": (1, 3),
    },
    finetuning: {
        **{"PLAYS": 1, "LIBRARY": 1, "BATCH": 2, "WINDOWS": 2, "TURNS": 2, "SEEDS": 2},
        "SIZES": {**finetuning.SIZES, "d_model": 32, "d_ff": 32},
    },
    gradient_reach: {"DISTANCES": (1, 4)},
    grokking: {"SEEDS": 2, "STEPS": 4, "EVERY": 2, "BATCH": 5, "SIZES": {**grokking.SIZES, "d_model": 8, "d_ff": 4}},
    induction: {"SEEDS": 2, "STEPS": 4, "EVERY": 2, "TESTED": 3, "SIZES": {**induction.SIZES, "d_model": 8, "d_ff": 4}},
    laws: {"DRAWS": 20},
    knock_out: {
        "STEPS": {task: {True: 2, False: 3} for task in ("translation", "text")},
        "TESTED": 3,
    },
    lengths: {"TASKS": ("copy",), "QUICK_STEPS": 1},
    one_vector: {
        **{"TRAINING": dict.fromkeys(one_vector.PARTS, 0.1), "LENGTHS": (1, 2), "LONGEST": 2, "PAIRS": (1, 2)},
        **{"RECALLED": 4, "LENGTH": 3, "SEQUENCES": 4},
    },
    preferences: {
        "CHANGES": {"range(100) for b in range(100)": "range(10) for b in range(10)", "0.4, 200": "0.2, 26"},
    },
    scaling_law: {
        "WIDTHS": {2e7: (8, 12, 16), 3e7: (8, 12, 16), 5e7: (8, 12, 16), 8e7: (8, 12, 20)},
        "TUNING": ((1e7, 8, (0.004, 0.008), (4,)), (2e7, 8, (0.004, 0.008), (4,))),
        "TESTED": 4,
    },
    sharing: {"SEEDS": 2, "STEPS": 1, "BATCH": 1, "LENGTH": 8},
    sharpness: {"STEPS": 2, "INTERVAL": 2, "BATCH": 3},
    since_2017: {"WIDTH": 8, "QUICK_STEPS": 2, "TESTED": {64: 4, 256: 3}, "ROUNDS": 1},
    speculative: {"GAMMAS": range(1, 3), "TEXTS": 2, "REPEATS": 1},
    speedrun: {"MARKS": 2, "GLANCE": 2, "CHANGES": {"2017": (True, {}), "Muon, faster start": (True, {"muon": 3.0})}},
    step_growth: {"GROWTH": {"length": ((8, 16), 2), "d_model": ((32, 64), 2)}},
    steps: {"RECURRENT": (3, 2, 3, 3)},
    superposition: {"TRIED": 3, "STEPS": 4, "TESTED": 9},
    table1: {"LENGTHS": (8, 16), "SECONDS_PER_LENGTH": 0.0, "DISTANCE": 8, "TOKENS": 16, "WIDTH": 16},
    table3: {"STEPS": 2, "TESTED": 8},
    table4: {"UNIT": 0.02, "ROUNDS": 1, "PACED": 1},
    paired: {"BATCH": 4},
    timing: {"TURN": 0.0},
    translation: {"TRAINING": 0.1},
}


def sums_of(launcher, count, seconds):
    """Sums whose times follow the model that is fitted to them."""
    lengths = (10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
    times = {n: 2e-5 + 4 * n / 3e9 for n in lengths}
    return [
        {"processes": count, "parameters": n, "seconds": time, "seconds in order": 2 * time}
        for n, time in times.items()
    ]


COST = {"softmaxes": 2e-8, "features": 4e-9, "parameters": 1e-8}  # seconds


def measured(counts):
    """A step whose time is the sum of what its parts cost."""
    seconds = step_growth.alone({**counts, "product": 0.2}) + sum(COST[part] * counts[part] for part in COST)
    return {"seconds": seconds, "product": 0.2, "bytes": 1_000_000}


def problems():
    """What two libraries learn side by side, on little data."""
    text = "".join(f"{i} and {i + 1} are {2 * i + 1}, " for i in range(300))
    pairs = [(f"{i} and {i}", f"{2 * i}") for i in range(99)]
    tokenizer, sizes = CharacterTokenizer.train(text), {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1}
    gpt = gpt_config(tokenizer.vocab_size, dropout=0.0, max_len=16, **sizes)
    encoder_decoder = TransformerConfig(tokenizer.vocab_size, norm="pre", dropout=0.0, max_len=16, **sizes)
    windows = TextTask(Corpus(text, text[:200]), tokenizer, 16)
    sentences = TranslationTask(PairCorpus(pairs, pairs[:3], pairs[3:6]), tokenizer, 16)
    how = {"steps": 3, "warmup": 1, "peak": 1e-3}
    found = {
        "shakespeare": curves.Problem("Windows", GPT, gpt, windows, batch_size=4, **how),
        "translation": curves.Problem("Sentences", Transformer, encoder_decoder, sentences, batch_size=80, **how),
    }
    return {name: lambda problem=problem: problem for name, problem in found.items()}


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Little data, small models, a few steps, and no other process."""
    for module, changes in CONSTANTS.items():
        for name, value in changes.items():
            of_two = set(found) == {True, False} if isinstance(found := getattr(module, name), dict) else False
            monkeypatch.setattr(module, name, dict.fromkeys((True, False), value) if of_two else value)
    for module in (one_vector, translation, lengths, scaling_law):
        monkeypatch.setattr(module, "train_all", lambda work, todo, *_: [work(*job) for job in todo])
    for module in (processes, communication):
        monkeypatch.setattr(module, "find_mpiexec", lambda command: "mpiexec")
    monkeypatch.setattr(communication, "sums_of", sums_of)
    tiny = communication.MODELS["tiny"]._replace(batch=4)
    monkeypatch.setattr(communication, "MODELS", dict.fromkeys(("tiny", "base", "big"), tiny))
    monkeypatch.setattr(
        processes,
        "call_in_processes",
        lambda launcher, count, module, call: TIMES if "time" in call else [2e6 / count, 1e6 / count],
    )
    monkeypatch.setattr(attention_cost, "peak_memory", lambda *arguments: 1_000_000)
    monkeypatch.setattr(step_growth, "free_memory", lambda: 16e9)
    monkeypatch.setattr(step_growth, "in_own_process", lambda size, seconds: measured(step_growth.arithmetic(size)))
    monkeypatch.setattr(curves, "PROBLEMS", problems())
    small_data(monkeypatch, tmp_path)


def small_data(monkeypatch, tmp_path):
    """A text, pairs of sentences and a library of our own."""
    small_library(monkeypatch)
    text = tmp_path / "my.txt"
    text.write_text("".join(f"{i} times {i} is {i * i}.\n" for i in range(200)), encoding="utf8")
    options = {**attention_kinds.TEXT, "text": str(text), "length": 24, "d_model": 8}
    monkeypatch.setattr(attention_kinds, "TEXT", options)
    task = TextTask(load_text(text), CharacterTokenizer.train(text.read_text("utf8")), 8)
    monkeypatch.setattr(speedrun, "text", lambda tokens, length: task)
    monkeypatch.setattr(speedrun, "START", {**speedrun.START, "length": 8, "d_model": 8, "num_layers": 1})
    sizes = {"num_heads": 2, "num_layers": 1, "d_model": 8}
    texts = {"tokenizer": "characters", "text": str(text), "length": 24, **sizes}
    monkeypatch.setattr(adversary, "TEXT", texts)
    monkeypatch.setattr(knock_out, "TASKS", {"translation": {"vocab_size": 280, **sizes}, "text": texts})
    corpus = PairCorpus(PAIRS[:12], PAIRS[12:13], PAIRS[13:])
    monkeypatch.setattr("minitransformer.recipes.translation.load_bible", lambda source, target: corpus)
    monkeypatch.setattr(translation, "database_path", lambda: None)
    texts = [Corpus(f"To {i} or not to {i}: " * 20, "To be: " * 20) for i in (1, 2)]
    monkeypatch.setattr(finetuning, "texts", lambda: texts)
    monkeypatch.setattr(sharing, "load_python_topics", lambda: texts[0])
    monkeypatch.setattr(decoders, "worst_errors", lambda: [{"model": "llama", "logits": 1e-15, "gradients": 1e-14}])
    monkeypatch.setattr(classification, "load_labelled", few_docstrings)
    monkeypatch.setattr(classification, "texts", lambda: {"these docstrings": texts[0], "Python's language": texts[1]})
    sources = [f"Der {noun} ist hier, und er {verb} dort." for noun, _ in NOUNS for verb in ("schläft", "isst", "ist")]
    tokenizer = BytePairTokenizer.train(" ".join(sources), 300)
    model = Transformer(TransformerConfig(tokenizer.vocab_size, 12, 3, 20, 2, dropout=0.0), seed=1)
    monkeypatch.setattr(heads, "open_run", lambda run: (model, tokenizer, sources))
    letters, small_gpt = CharacterTokenizer.train("to be or not\n"), {"num_heads": 2, "d_ff": 6, "num_layers": 1}
    gpts = {
        name: GPT(gpt_config(letters.vocab_size, d_model=width, max_len=16, **small_gpt))
        for name, width in (("large", 12), ("small", 4))
    }
    monkeypatch.setattr(speculative, "open_model", lambda run, task: (gpts[run[-5:]], letters))
    recipe = get_recipe("translation")
    sizes = {"d_model": 32, "vocab_size": 280, "batch_size": 100}
    monkeypatch.setattr(recipe, "defaults", type(recipe.defaults)(**sizes))


@functools.cache
def few_docstrings():
    """Read only by the one experiment that needs them: it takes seconds."""
    train, held_out = load_labelled()
    return train[:100], held_out[::20]


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """What a command prints does not depend on how busy the machine is."""
    monkeypatch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))
