"""Which parts of the Transformer matter, row by row of the paper's table 3, when it parses instead of translating?

Each row changes one thing of a small base model, which learns to write the trees of Python's own expressions
(data/parsing.py). The paper has one run for each row; here base and row are paired by the seed of weights and batches,
and a row is decided only if the 95 % interval of the differences excludes 0. Held-out loss (nats a token, without
smoothing) stands beside the paper's perplexity, and exact match beside its BLEU. Dropout matters where examples are
read often, so its rows are also measured with FEW examples.
"""

import math
from typing import Any, NamedTuple

from experiments.measuring.paired import collect, interval, score, train_steps
from experiments.report import Figure, Options, Parser, Rows, Table
from minitransformer.data.parsing import VOCABULARY, ParsingTask, encoded
from minitransformer.models import Transformer, TransformerConfig
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


def add_options(parser: Parser) -> None:
    """How many seeds."""
    parser.add_argument("--seeds", type=int, metavar="N", help=f"number of seeds (default {SEEDS[False]})")


def check(options: Options) -> None:
    """ValueError for seeds that have no interval."""
    if options.seeds is not None and not 2 <= options.seeds <= 10:
        raise ValueError(f"--seeds must be from 2 to 10, got {options.seeds}")


def rows(options: Options) -> Rows:
    """The scores of every row and seed, saved one by one: start again to go on after an interruption."""
    seeds = range(options.seed, options.seed + (options.seeds or SEEDS[options.quick]))
    names = QUICK if options.quick else tuple(VARIATIONS)
    path = options.runs / "experiments" / f"table3{'-quick' if options.quick else ''}.jsonl"

    def work(name: str, seed: int) -> dict[str, Any]:
        return train_and_test(name, seed, STEPS[options.quick], TESTED[options.quick])

    found = collect(path, [(name, seed) for seed in seeds for name in names], work)
    path.unlink()
    return {"variations": found}


def train_and_test(name: str, seed: int, steps: int, tested: int) -> dict[str, Any]:
    """Train one row with one seed -> its scores."""
    changes = dict(VARIATIONS[name].changes)
    few, smoothing = changes.pop("few", False), changes.pop("smoothing", SMOOTHING)
    examples = min(FEW if few else 10**6, len(encoded(False)[0]))
    task, model = (
        ParsingTask(examples),
        Transformer(TransformerConfig(len(VOCABULARY), **{**BASE, **changes}), seed=seed),
    )
    peak = PEAK * (BASE["d_model"] / model.config.d_model) ** 0.5  # as in the paper's schedule
    trained = train_steps(model, task, steps, seed, peak, smoothing)
    scores, _ = score(model, task, tested)
    about = {"variation": name, "seed": seed, "parameters": model.num_parameters(), "examples": examples}
    return {**about, **trained, **scores}


def differences(rows: Rows, key: str) -> dict[str, tuple[float, float, float]]:
    """{row: (mean, mean difference from its base, half of the 95 % interval of the difference)}, paired by seed."""
    scores: dict[str, dict[int, float]] = {}
    for row in rows["variations"]:
        scores.setdefault(row["variation"], {})[row["seed"]] = row[key]
    found = {}
    for name, by_seed in scores.items():
        base = scores["few: base" if name.startswith("few") else "base"]
        found[name] = (interval(list(by_seed.values()))[0], *interval([by_seed[seed] - base[seed] for seed in by_seed]))
    return found


def verdict(ours: tuple[float, float, float], paper: float) -> str:
    """What our difference says about the paper's, both counted so that more is better."""
    _, mean, half = ours
    if abs(mean) <= half:
        return "undecided"
    if abs(paper) < 1e-9:
        return "the paper has none"
    return "same direction" if (mean > 0) == (paper > 0) else "other direction"


def compared(rows: Rows) -> dict[str, tuple[str, str]]:
    """{row: (verdict on loss and perplexity, verdict on exact match and BLEU)} of all but the bases."""
    loss, exact = differences(rows, "loss"), differences(rows, "exact")
    found = {}
    for name in loss:
        if not name.endswith("base"):
            variation = VARIATIONS[name]
            better = (loss[name][0], -loss[name][1], loss[name][2])
            perplexity = verdict(better, math.log(PAPER_BASE[0]) - math.log(variation.perplexity))
            found[name] = (perplexity, verdict(exact[name], variation.bleu - PAPER_BASE[1]))
    return found


def tables(rows: Rows) -> list[Table]:
    """Our rows and the paper's, side by side."""
    loss, exact, verdicts = differences(rows, "loss"), differences(rows, "exact"), compared(rows)
    cells = []
    for name in loss:
        variation, is_base = VARIATIONS[name], name.endswith("base")
        ours = [
            f"{loss[name][0]:.4f}" if is_base else f"{loss[name][1]:+.4f} ± {loss[name][2]:.4f}",
            f"{exact[name][0]:.3f}" if is_base else f"{exact[name][1]:+.3f} ± {exact[name][2]:.3f}",
        ]
        nats = math.log(variation.perplexity)
        paper = [f"{nats:.3f}" if is_base else f"{nats - math.log(PAPER_BASE[0]):+.3f}"]
        paper += [f"{variation.bleu:.1f}" if is_base else f"{variation.bleu - PAPER_BASE[1]:+.1f}"]
        both = verdicts.get(name, ("", ""))
        cells.append([variation.row, name, ours[0], paper[0], both[0], ours[1], paper[1], both[1], variation.in_paper])
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
    seeds = len({row["seed"] for row in rows["variations"]})
    sizes = {row["variation"]: row for row in rows["variations"]}
    more = [
        [name, f"{row['parameters']:,}", f"{row['examples']:,}", f"{exact[name][0]:.3f}", f"{loss[name][0]:.4f}"]
        for name, row in sizes.items()
    ]
    return [
        Table(
            f"differences from the base, {seeds} seeds, with 95 % intervals of the paired difference", columns, cells
        ),
        Table("", ["here", "parameters", "examples", "exact match", "loss"], more),
    ]


def findings(rows: Rows) -> list[str]:
    """How many rows go which way, and which."""
    found = []
    for i, what in enumerate(("loss against the paper's perplexity", "exact match against the paper's BLEU")):
        groups: dict[str, list[str]] = {}
        for name, verdicts in compared(rows).items():
            groups.setdefault(verdicts[i], []).append(name)
        parts = "; ".join(f"{group}: {len(names)} ({', '.join(names)})" for group, names in sorted(groups.items()))
        found.append(f"By {what}: {parts}.")
    return found


def draw(rows: Rows) -> Figure:
    """The paired differences in loss and exact match with their intervals."""
    figure, axes = pyplot().subplots(1, 2, figsize=(9.0, 5.4), sharey=True)
    for axis, key, label in zip(axes, ("loss", "exact"), ("held-out loss", "exact match"), strict=True):
        shown = {name: values for name, values in differences(rows, key).items() if not name.endswith("base")}
        places = [-i for i in range(len(shown))]  # the first on top
        for place, (_, mean, half) in zip(places, shown.values(), strict=True):
            color = GREY if abs(mean) <= half else COLORS[2] if (mean > 0) == (key == "exact") else COLORS[1]
            axis.errorbar(mean, place, xerr=half, fmt="o", color=color, capsize=3, markersize=4)
        axis.axvline(0, color=GREY, linewidth=1, linestyle="--")
        axis.set_yticks(places, list(shown))
        axis.set(xlabel=f"difference in {label}", ylabel="what is changed", title=f"{label}, paired by seed")
    return figure
