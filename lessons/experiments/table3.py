"""Which parts of the Transformer matter, row by row of the paper's table 3, when it parses instead of translating?

Each row changes one thing of a small base model, which learns to write the trees of Python's own expressions
(data/parsing.py). The paper has one run for each row; here base and row are paired by the seed of weights and batches,
and a row is decided only if the 95 % interval of the differences excludes 0. Held-out loss (nats a token, without
smoothing) stands beside the paper's perplexity, and exact match beside its BLEU. Dropout matters where examples are
read often, so its rows are also measured with FEW examples.
"""

import itertools
import math
import statistics
from typing import Any, NamedTuple

from experiments.measuring.paired import collect, differences, interval, plus_minus, score, train_steps
from experiments.report import Figure, Options, Rows, Table, by_name
from minitransformer import Transformer, TransformerConfig
from minitransformer.data.parsing import VOCABULARY, ParsingTask, encoded
from minitransformer.plotting import COLORS, GREY, pyplot

SECONDS = {True: 60, False: 1800}
STEPS = {True: 60, False: 1200}
SEEDS = {True: 2, False: 3}
TESTED = {True: 200, False: 10**6}  # held-out examples, at most
PEAK = 5e-3
FEW = 500  # examples
BASE: dict[str, Any] = {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "dropout": 0.1, "max_len": 64}
SMOOTHING = 0.1
PAPER_BASE = (4.92, 25.8)  # perplexity and BLEU of the paper's base model (arXiv 1706.03762, table 3)


class Variation(NamedTuple):
    """One row: what changes here, and what the paper has in the row that it stands for."""

    row: str
    changes: dict[str, Any]  # fields of the configuration, "smoothing" and "few"
    in_paper: str
    perplexity: float
    bleu: float


VARIATIONS = {
    "base": Variation("", {}, "base", *PAPER_BASE),
    "1 head": Variation("A", {"num_heads": 1}, "1 head of 8", 5.29, 24.9),
    "2 heads": Variation("A", {"num_heads": 2}, "4 heads of 8", 5.00, 25.5),
    "8 heads": Variation("A", {"num_heads": 8}, "16 heads of 8", 4.91, 25.8),
    "16 heads": Variation("A", {"num_heads": 16}, "32 heads of 8", 5.01, 25.4),
    "d_k 4 of 16": Variation("B", {"d_k": 4}, "d_k 16 of 64", 5.16, 25.1),
    "d_k 8 of 16": Variation("B", {"d_k": 8}, "d_k 32 of 64", 5.01, 25.4),
    "1 layer of 2": Variation("C", {"num_layers": 1}, "4 layers of 6", 5.19, 25.3),
    "3 layers of 2": Variation("C", {"num_layers": 3}, "8 layers of 6", 4.88, 25.5),
    "d_model 32": Variation("C", {"d_model": 32}, "d_model 256 of 512", 5.75, 24.5),
    "d_model 128": Variation("C", {"d_model": 128}, "d_model 1024 of 512", 4.66, 26.0),
    "d_ff 128": Variation("C", {"d_ff": 128}, "d_ff 1024 of 2048", 5.12, 25.4),
    "d_ff 512": Variation("C", {"d_ff": 512}, "d_ff 4096 of 2048", 4.75, 26.2),
    "dropout 0": Variation("D", {"dropout": 0.0}, "dropout 0", 5.77, 24.6),
    "dropout 0.2": Variation("D", {"dropout": 0.2}, "dropout 0.2", 4.95, 25.5),
    "smoothing 0": Variation("D", {"smoothing": 0.0}, "smoothing 0", 4.67, 25.3),
    "smoothing 0.2": Variation("D", {"smoothing": 0.2}, "smoothing 0.2", 5.47, 25.7),
    "learned positions": Variation("E", {"positions": "learned"}, "learned positions", 4.92, 25.7),
    "few: base": Variation("", {"few": True}, "base", *PAPER_BASE),
    "few: dropout 0": Variation("D", {"few": True, "dropout": 0.0}, "dropout 0", 5.77, 24.6),
    "few: dropout 0.2": Variation("D", {"few": True, "dropout": 0.2}, "dropout 0.2", 4.95, 25.5),
}
QUICK = ("base", "1 head", "d_k 4 of 16", "1 layer of 2", "learned positions")


def rows(options: Options) -> Rows:
    """The scores of every row and seed, saved one by one: start again to go on after an interruption."""
    how = STEPS[options.quick], TESTED[options.quick]
    names = QUICK if options.quick else tuple(VARIATIONS)
    todo = [(name, seed, *how) for seed in options.seeds for name in names]
    return {"variations": collect(options.unfinished, todo, train_and_test)}


def train_and_test(name: str, seed: int, steps: int, tested: int) -> dict[str, Any]:
    """Train one row with one seed -> its scores."""
    changes = dict(VARIATIONS[name].changes)
    few, smoothing = changes.pop("few", False), changes.pop("smoothing", SMOOTHING)
    examples = min(FEW if few else 10**6, len(encoded(False)[0]))
    task = ParsingTask(examples)
    model = Transformer(TransformerConfig(len(VOCABULARY), **{**BASE, **changes}), seed=seed)
    peak = PEAK * (BASE["d_model"] / model.config.d_model) ** 0.5  # as in the paper's schedule
    trained = train_steps(model, task, steps, seed, peak, smoothing)
    scores, _ = score(model, task, tested)
    about = {"variation": name, "seed": seed, "parameters": model.num_parameters(), "examples": examples}
    return {**about, **trained, **scores}


def from_base(rows: Rows, key: str) -> dict[str, list[float]]:
    """{row: the differences from its base, paired by seed} of all but the bases."""
    found: dict[str, list[float]] = {}
    for few, base in ((False, "base"), (True, "few: base")):
        group = [row for row in rows["variations"] if row["variation"].startswith("few") == few]
        found |= differences(group, key, "variation", base)
    return found


def verdict(ours: list[float], paper: float) -> str:
    """What our differences say about the paper's, both counted so that more is better."""
    mean, half = interval(ours)
    if abs(mean) <= half:
        return "undecided"
    if abs(paper) < 1e-9:
        return "the paper has none"
    return "same direction" if (mean > 0) == (paper > 0) else "other direction"


def verdicts(rows: Rows) -> dict[str, tuple[str, str]]:
    """{row: (verdict on loss and perplexity, verdict on exact match and BLEU)} of all but the bases."""
    found: dict[str, tuple[str, str]] = {}
    loss, exact = from_base(rows, "loss"), from_base(rows, "exact")
    for name in loss:
        fall = math.log(PAPER_BASE[0]) - math.log(VARIATIONS[name].perplexity)
        more = VARIATIONS[name].bleu - PAPER_BASE[1]
        found[name] = verdict([-change for change in loss[name]], fall), verdict(exact[name], more)
    return found


def tables(rows: Rows) -> list[Table]:
    """Our rows and the paper's, side by side."""
    cells, judged = [], verdicts(rows)
    loss, exact = from_base(rows, "loss"), from_base(rows, "exact")
    groups = by_name(rows["variations"], "variation")
    for name, found in groups.items():
        variation = VARIATIONS[name]
        nats = math.log(variation.perplexity)
        if name in judged:
            ours = plus_minus(loss[name], "+.4f"), plus_minus(exact[name], "+.3f")
            paper = f"{nats - math.log(PAPER_BASE[0]):+.3f}", f"{variation.bleu - PAPER_BASE[1]:+.1f}"
        else:
            means = [statistics.fmean(row[key] for row in found) for key in ("loss", "exact")]
            ours, paper = (f"{means[0]:.4f}", f"{means[1]:.3f}"), (f"{nats:.3f}", f"{variation.bleu:.1f}")
        both = zip(ours, paper, judged.get(name, ("", "")), strict=True)
        cells.append([variation.row, name, *itertools.chain.from_iterable(both), variation.in_paper])
    columns = [
        "row",
        "here",
        "loss",
        "paper's loss",
        "verdict",
        "exact match",
        "paper's BLEU",
        "verdict",
        "paper's row",
    ]
    title = f"differences from the base, {len(groups['base'])} seeds, with 95 % intervals of the paired difference"
    return [Table(title, columns, cells)]


def findings(rows: Rows) -> list[str]:
    """How many rows go which way, and which."""
    found = []
    for i, what in enumerate(("loss against the paper's perplexity", "exact match against the paper's BLEU")):
        groups: dict[str, list[str]] = {}
        for name, both in verdicts(rows).items():
            groups.setdefault(both[i], []).append(name)
        parts = "; ".join(f"{group}: {len(names)} ({', '.join(names)})" for group, names in sorted(groups.items()))
        found.append(f"By {what}: {parts}.")
    return found


def draw(rows: Rows) -> Figure:
    """The paired differences in loss and exact match with their intervals."""
    figure, axes = pyplot().subplots(1, 2, figsize=(9.0, 5.4), sharey=True)
    for axis, key, label in zip(axes, ("loss", "exact"), ("held-out loss", "exact match"), strict=True):
        shown = from_base(rows, key)
        places = [-i for i in range(len(shown))]  # the first on top
        for place, (mean, half) in zip(places, map(interval, shown.values()), strict=True):
            color = GREY if abs(mean) <= half else COLORS[2] if (mean > 0) == (key == "exact") else COLORS[1]
            axis.errorbar(mean, place, xerr=half, fmt="o", color=color, capsize=3, markersize=4)
        axis.axvline(0, color=GREY, linewidth=1, linestyle="--")
        axis.set_yticks(places, list(shown))
        axis.set(xlabel=f"difference in {label}", ylabel="what is changed", title=f"{label}, paired by seed")
    return figure
