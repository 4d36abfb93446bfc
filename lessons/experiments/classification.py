"""Does a classifier of sentences gain from a masked model?

Of each sentence in the docstrings of ten packages, a model says which package it is from (`train classify`). It
starts with new weights, or with the encoder of a BERT that has learned to guess hidden tokens (`train masked`).
"""

import math
import re
import sys
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.paired import compared, spread, train_steps
from experiments.report import Options, Rows, Table, by_name, grouped
from minitransformer import BERT, BytePairTokenizer, Corpus, MaskedTask, TextTask, bert_config, load_python_topics
from minitransformer.data.labelled import LabelledTask, docstrings, load_labelled
from minitransformer.data.text import split_text
from minitransformer.recipes.classify import classify
from minitransformer.recipes.text import fitting_vocab_size
from minitransformer.system.progress import tqdm

SECONDS = {True: 180, False: 900}
SEEDS = {True: 1, False: 3}
LENGTH = 64  # tokens
SIZES: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "max_len": LENGTH}
STEPS = {  # {quick: {sentences: steps of classification}}
    True: {200: 15, 1000: 30, sys.maxsize: 100},
    False: {200: 150, 1000: 300, sys.maxsize: 1000},
}
HIDDEN, PEAK = {True: 100, False: 2500}, 2e-3  # steps of the masked model, and the peak of all learning rates
BATCH, HIDDEN_BATCH = 16, 32
NEW = "new weights"


def texts() -> dict[str, Corpus]:
    """What the masked models read: no sentence of the test is in it."""
    held_out = {sentence for sentence, _ in load_labelled()[1]}
    own = dict.fromkeys(sentence for sentence, _ in docstrings() if sentence not in held_out)
    return {"these docstrings": split_text("\n".join(own)), "Python's language": load_python_topics()}


def fit(model: BERT, data: Any, batch: int, steps: int, seed: int) -> float:
    """Train -> seconds of processor time."""
    return train_steps(model, data, steps, seed, PEAK, batch=batch, warmup=max(1, steps // 20))["seconds"]


def masked(corpus: Corpus, seed: int, steps: int) -> tuple[BytePairTokenizer, dict[str, np.ndarray], float]:
    """The tokenizer, the weights without the head, and the seconds of a masked model."""
    tokenizer = BytePairTokenizer.train(corpus.train, fitting_vocab_size(len(corpus.train)))
    data = MaskedTask(TextTask(corpus, tokenizer, LENGTH))
    model = BERT(bert_config(data.vocab_size, **SIZES, positions="rope", dropout=0.0), seed=seed)
    seconds = fit(model, data, HIDDEN_BATCH, steps, seed)
    return tokenizer, {name: w for name, w in model.state_dict().items() if not name.startswith("head.")}, seconds


def naive_bayes(train: list, held_out: list) -> float:
    """The share that is right of a naive Bayes classifier on words, with a tenth of a count for each that is unseen."""
    words: dict[str, Counter[str]] = defaultdict(Counter)
    sentences = Counter(label for _, label in train)
    for sentence, label in train:
        words[label].update(re.findall(r"\w+", sentence.lower()))
    V = len(set().union(*words.values()))

    def score(sentence: str, label: str) -> float:
        counts, total = words[label], words[label].total() + 0.1 * V
        found = re.findall(r"\w+", sentence.lower())
        return math.log(sentences[label]) + sum(math.log((counts[word] + 0.1) / total) for word in found)

    right = [max(sentences, key=partial(score, sentence)) == label for sentence, label in held_out]
    return sum(right) / len(right)


def rows(options: Options) -> Rows:
    """For each seed what the classifiers get right, by what they start from and the number of sentences."""
    return {"classifiers": [row for seed in options.seeds for row in measure(seed, options.quick)]}


def measure(seed: int, quick: bool) -> list[dict[str, Any]]:
    """The rows of one seed; "masked" are the seconds of the masked model."""
    train, held_out = load_labelled()
    order = np.random.default_rng(seed).permutation(len(train))
    starts: dict[str, Any] = {NEW: (None, {}, 0.0)}
    starts |= {f"a masked model of {name}": masked(text, seed, HIDDEN[quick]) for name, text in texts().items()}
    found = []

    def keep(start: str, right: float, seconds: float = 0.0, before: float = 0.0) -> None:
        times = {"seconds": seconds, "masked": before}
        found.append({"start": start, "seed": seed, "sentences": len(part), "right": float(right), **times})

    for count, steps in STEPS[quick].items():
        part = [train[row] for row in order[:count]]
        for name, (tokenizer, weights, before) in starts.items():
            if tokenizer is None:
                text = "\n".join(sentence for sentence, _ in part)
                tokenizer = BytePairTokenizer.train(text, fitting_vocab_size(len(text)))
            data = LabelledTask(part, held_out, tokenizer, LENGTH)
            config = bert_config(tokenizer.vocab_size + 1, **SIZES, positions="rope", dropout=0.1)
            model = BERT(config, num_classes=len(data.labels) + 1, seed=seed)
            model.load_state_dict({**model.state_dict(), **weights})
            seconds = fit(model, data, BATCH, steps, seed)
            p = classify(model, tokenizer, [sentence for sentence, _ in held_out])
            keep(name, (p.argmax(axis=1) == data.held_out.targets - 1).mean(), seconds, before)
            tqdm.write(f"seed {seed}, {len(part)} sentences, {name}: {found[-1]['right']:.1%}, {seconds:.0f} s")
        labels = [label for _, label in held_out]
        keep("naive Bayes on words", naive_bayes(part, held_out))
        keep("the commonest label", max(map(labels.count, {*labels})) / len(labels))
    return found


def tables(rows: Rows) -> list[Table]:
    """What each start gets right, by the number of sentences, and what its masked model took."""
    found, cells = rows["classifiers"], []
    sizes = list(dict.fromkeys(row["sentences"] for row in found))
    for name, group in by_name(found, "start").items():
        shares = [spread([row["right"] for row in group if row["sentences"] == size], ".1%") for size in sizes]
        before = np.mean([row["masked"] for row in group])
        cells.append([name, *shares, f"{before:.0f} s" if before else ""])
    times = [np.mean([row["seconds"] for row in found if (row["start"], row["sentences"]) == (NEW, n)]) for n in sizes]
    heads = [f"{size:,} sentences, {seconds:.1f} s" for size, seconds in zip(sizes, times, strict=True)]
    return [Table("held-out sentences that get the right package", ["starts from", *heads, "masked model"], cells)]


def findings(rows: Rows) -> list[str]:
    """What a masked model is worth, with few sentences and with all."""
    groups = grouped(rows["classifiers"], "start", "sentences")
    right = {key: [row["right"] for row in found] for key, found in groups.items()}
    return [
        compared(f"Right with {size:,} sentences, from {name} against {NEW}", found, right[NEW, size], ".3f")
        for (name, size), found in right.items()
        if name.startswith("a masked model")
    ]
