"""How soon can a GPT predict plays that it has never read, on an ordinary processor?

A ledger in the manner of the NanoGPT speedruns (Jordan et al. 2024): one change after another, each trained for the
same processor time on one thread, with the learning rate's cosine over that time. A change that is better in the mean
is kept for all later rows, decided or not, and the losers stay in the table. The score is that of `train shakespeare`:
bits per character of Romeo and Juliet and The Tempest, whole, in windows as long as those of training. `--rows NAME
--seconds X` or `--steps N` measures one row for longer, and `--optimizers` compares Muon with Adam, at equal steps and
in equal time.
"""

import functools
import math
import time
from typing import Any

import numpy as np

from experiments.measuring.paired import collect, differences, interval, judged, plus_minus
from experiments.report import Figure, Options, Parser, Rows, Table, by_name
from minitransformer import (
    GPT,
    Adam,
    BytePairTokenizer,
    CrossEntropyLoss,
    Muon,
    TextTask,
    gpt_config,
    load_shakespeare,
    mean_loss,
)
from minitransformer.data import TextBatch
from minitransformer.plotting import COLORS, pyplot
from minitransformer.recipes.text import tokens_per_character
from minitransformer.system.process import limit_threads
from minitransformer.training.clipping import clip_factor, grad_norm
from minitransformer.training.step import PlainGradients

SECONDS = {True: 120, False: 1800}
PER_ROW = 20.0  # of each training
SEEDS = {True: 1, False: 3}
TARGET = 2.0  # bits per character
MARKS, GLANCE = 8, 48  # evaluations during training, and the windows of each; their time does not count
START = {
    "muon": 0.0,  # its learning rate, as a multiple of Adam's; 0: Adam moves the matrices, too
    "peak": 2e-3,  # of the learning rate
    "warmup": 100,  # steps
    "batch": 8,  # windows
    "length": 128,  # tokens in a window
    "windows": (),  # ((share, tokens), ...): up to this share of the training they are so long, and there are more
    "cooling": 0.0,  # last share of the training, in which the rate falls in a straight line; 0: a cosine over all
    "decay": 0.0,  # of the matrices, times the learning rate
    "tokens": 2432,  # in the vocabulary
    "zeros": False,  # whether a layer adds nothing at first: the last matrices of its two halves are zero
    "norm": "post",
    "positions": "sinusoidal",
    "activation": "relu",
    "scale_embeddings": True,
    **{"d_model": 128, "num_heads": 4, "d_ff": 512, "num_layers": 4, "dropout": 0.0},
}
OF_TRAINING = tuple(START)[:10]  # the others are fields of the configuration
CHANGES: dict[str, tuple[bool, dict[str, Any]]] = {  # {row: (whether it is kept, what it changes)}
    "2017": (True, {}),
    "RoPE": (True, {"positions": "rope"}),
    "pre-norm, GELU": (False, {"norm": "pre", "activation": "gelu_tanh", "scale_embeddings": False}),
    "d_model 64, 3 layers": (True, {"d_model": 64, "d_ff": 256, "num_layers": 3}),
    "1,024 tokens": (True, {"tokens": 1024}),
    "faster start": (False, {"peak": 6e-3, "warmup": 20}),
    "Muon, faster start": (True, {"muon": 10 / 3, "peak": 6e-3, "warmup": 20}),
    "untied": (True, {"tie_embeddings": False}),
    "short windows first": (True, {"windows": ((0.5, 32),)}),
}
LONGER: dict[str, tuple[bool, dict[str, Any]]] = {  # the same after those, for a longer training
    "d_model 96, 4 layers": (True, {"d_model": 96, "d_ff": 384, "num_layers": 4, "tokens": 2432}),
    "short windows for less": (True, {"windows": ((0.2, 32),)}),
    "pre-norm": (True, {"norm": "pre"}),
    "256 tokens, 2 heads": (True, {"length": 256, "batch": 4, "windows": ((0.2, 32), (0.6, 128)), "num_heads": 2}),
    "linear cooling": (True, {"cooling": 0.7}),
    "zeros at first": (True, {"zeros": True}),
    "slower Muon": (True, {"muon": 5 / 3}),
    "faster Adam": (True, {"muon": 5 / 6, "peak": 1.2e-2}),
    "weight decay": (True, {"decay": 0.1}),
    "three times the decay": (False, {"decay": 0.3}),
}
BATCHES = {8: 160, 32: 80, 64: 50}  # {windows: steps} when optimizers are compared


def setup(name: str) -> tuple[dict[str, Any], str]:
    """All changes before this row that were kept, and its own; and the last row before it that was kept."""
    found, base = dict(START), ""
    for other, (is_kept, changes) in {**CHANGES, **LONGER}.items():
        if other == name:
            return {**found, **changes}, base
        if is_kept:
            found, base = {**found, **changes}, other
    raise KeyError(name)


@functools.cache
def text(tokens: int, length: int) -> TextTask:
    """The plays as byte pairs that the training plays have most often."""
    corpus = load_shakespeare()
    return TextTask(corpus, BytePairTokenizer.train(corpus.train, tokens), length)


def bits(model: GPT, task: TextTask, tested: int | None = None) -> float:
    """Bits per character of the held-out plays, or of so many windows evenly spread over them."""
    (batch,) = task.held_out_batches(10**9)
    chosen = np.linspace(0, len(batch.ids) - 1, tested or len(batch.ids)).astype(int)
    batches = [TextBatch(*(ids[part] for ids in batch)) for part in np.array_split(chosen, -(-len(chosen) // 64))]
    return mean_loss(model, batches) / math.log(2) * tokens_per_character(task, batches)


def train(how: dict[str, Any], seed: int, seconds: float = math.inf, steps: float = math.inf) -> dict:
    """Train on one thread until the seconds, which are those of the processor, or the steps are used -> the row."""
    task, rng = text(how["tokens"], how["length"]), np.random.default_rng([seed, 14])
    fields = {name: value for name, value in how.items() if name not in OF_TRAINING}
    model = GPT(gpt_config(task.tokenizer.vocab_size, max_len=how["length"], **fields), seed=seed)
    for layer in model.blocks.layers if how["zeros"] else ():
        for last in (layer.self_attention.sublayer.output, layer.feed_forward.sublayer.contract):
            last.W.data[...] = 0.0
    gradients = PlainGradients(model, CrossEntropyLoss())
    optimizer = Muon(model, ratio=how["muon"]) if how["muon"] else Adam(model.parameters())
    optimizer.weight_decay = how["decay"]
    used, moving, taken = 0.0, 0.0, 0
    curve: list[list[float]] = []
    with limit_threads(1):
        while (share := max(used / seconds, taken / steps)) < 1:
            start, taken = time.process_time(), taken + 1
            optimizer.lr = how["peak"] * min(1.0, taken / how["warmup"]) * falling(share, how["cooling"])
            optimizer.zero_grad()
            task.length = next((tokens for end, tokens in how["windows"] if share < end), how["length"])
            gradients(task.batch(rng, how["batch"] * how["length"] // task.length))
            task.length, moved = how["length"], time.process_time()
            optimizer.step(scale=clip_factor(grad_norm(optimizer.parameters), 1.0))
            moving += time.process_time() - moved
            used += time.process_time() - start
            if share * MARKS >= len(curve) + 1:
                curve.append([used, bits(model, task, GLANCE)])
        result = bits(model, task)
    about = {"seed": seed, "steps": taken, "seconds": used, "parameters": model.num_parameters()}
    return {**about, "moving": moving / used, "curve": curve, "bits": result}


def falling(share: float, cooling: float) -> float:
    """The learning rate after a share of the training, as a part of its peak."""
    return min(1.0, (1 - share) / cooling) if cooling else 0.5 * (1 + math.cos(math.pi * share))


def add_options(parser: Parser) -> None:
    """Which rows, for how many steps, and whether the optimizers are compared."""
    names = [*CHANGES, *LONGER]
    parser.add_argument("--rows", nargs="+", choices=names, metavar="NAME", help=f"of: {', '.join(names)}")
    parser.add_argument("--steps", type=int, help="instead of seconds, which other work on the machine makes longer")
    about = "compare Muon with Adam instead, at three batch sizes"
    parser.add_argument("--optimizers", action="store_true", help=about)


def check(options: Options) -> None:
    """Raise ValueError for an option that cannot be used."""
    if options.steps is not None and options.steps < 1:
        raise ValueError(f"--steps must be at least 1, got {options.steps}")


def rows(options: Options) -> Rows:
    """Every row and seed, saved one by one: start again to go on after an interruption."""
    seeds, path = options.seeds, options.unfinished
    if options.optimizers:
        how = {**setup("Muon, faster start")[0], "length": 64}
        todo = [({**how, "batch": batch}, seed, steps) for seed in seeds for batch, steps in BATCHES.items()]
        return {"rows": [row for found in collect(path, todo, compare) for row in found["rows"]]}
    names = options.rows or CHANGES
    ran = {"steps": options.steps} if options.steps else {"seconds": options.seconds}
    return {"rows": collect(path, [(name, *setup(name), seed, ran) for seed in seeds for name in names], measure)}


def measure(name: str, how: dict[str, Any], base: str, seed: int, ran: dict[str, float]) -> dict[str, Any]:
    """One row of the ledger with one seed."""
    kept = "yes" if {**CHANGES, **LONGER}[name][0] else "no"
    return {"row": name, "base": base, "kept": kept, **train(how, seed, **ran)}


def compare(how: dict[str, Any], seed: int, steps: int) -> dict[str, Any]:
    """Muon for some steps, Adam for as many, and Adam for as long -> {"rows": the three}."""
    muon, adam = train(how, seed, steps=steps), train({**how, "muon": 0.0}, seed, steps=steps)
    longer = train({**how, "muon": 0.0}, seed, seconds=muon["seconds"])
    first, *others = (f"{how['batch']} windows, {name}" for name in ("Muon", "Adam, equal steps", "Adam, equal time"))
    found = [{"row": first, "base": "", **muon}]
    return {"rows": [*found, *({"row": n, "base": first, **r} for n, r in zip(others, (adam, longer), strict=True))]}


def change(rows: Rows, name: str) -> str:
    """By how many bits a row differs from its base, paired by seed, and whether the interval excludes 0."""
    found = by_name(rows["rows"], "row")[name]
    changes = differences(found, "bits", "row", found[0]["base"], rows["rows"]).get(name)
    return f"{plus_minus(changes, '.3f')}: {judged(*interval(changes))}" if changes else ""


def means(rows: Rows) -> dict[str, dict[str, float]]:
    """The mean of the seeds of every number of a row, by its name."""
    keys = ("parameters", "seconds", "steps", "moving", "bits")
    groups = by_name(rows["rows"], "row").items()
    return {name: {key: float(np.mean([row[key] for row in found])) for key in keys} for name, found in groups}


def tables(rows: Rows) -> list[Table]:
    """What every row reached."""
    names = ["change", "parameters", "seconds", "steps", "ms a step", "of it to move the weights", "bits per character"]
    kept, cells = {row["row"]: row.get("kept", "") for row in rows["rows"]}, []
    for name, mean in means(rows).items():
        a_step = f"{1000 * mean['seconds'] / mean['steps']:.0f}"
        numbers = [f"{mean['parameters']:,.0f}", f"{mean['seconds']:.1f}", f"{mean['steps']:,.0f}", a_step]
        cells.append([name, *numbers, f"{mean['moving']:.0%}", f"{mean['bits']:.3f}", change(rows, name), kept[name]])
    return [Table("ledger", [*names, "difference", "kept"], cells)]


def findings(rows: Rows) -> list[str]:
    """Whether the target is reached, and which changes are decided."""
    lines = []
    for name, mean in means(rows).items():
        reached = f"{TARGET} {'reached' if mean['bits'] <= TARGET else 'not reached'}"
        about = [f"{mean['bits']:.3f} bits after {mean['seconds']:.0f} s", reached, change(rows, name)]
        lines.append(f"{name}: {'; '.join(filter(None, about))}.")
    return lines


def draw(rows: Rows) -> Figure:
    """The bits during training, the mean of the seeds."""
    figure, axis = pyplot().subplots(figsize=(8, 4.5))
    for i, (name, found) in enumerate(by_name(rows["rows"], "row").items()):
        curve = np.mean([row["curve"][: min(len(row["curve"]) for row in found)] for row in found], axis=0)
        style = {"linestyle": "--" if found[0].get("kept") == "no" else "-", "linewidth": 1 + i // len(COLORS)}
        axis.plot(*curve.T, color=COLORS[i % len(COLORS)], marker=".", label=name, **style)
    axis.set(xlabel="seconds of one processor", ylabel=f"bits per character ({GLANCE} windows)")
    axis.legend()
    return figure
