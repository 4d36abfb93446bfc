"""Does the Transformer parse better than what it replaced, at equal time and equal size, as the paper's table 4 says?

Three models with as many parameters learn to write the trees of Python's own expressions (data/parsing.py): an LSTM
with one vector, a bidirectional LSTM with additive attention (as in Vinyals et al. 2015, with which the paper
compares), and the Transformer. The data and the time grow by factors of four. Time is counted in steps, as many as fit
into it by the speed that is measured first, with all models in turn: so other work on the machine changes no result. No
example is in both training and test, and the differences are paired by the seed of weights and batches.
"""

import itertools
import statistics
import textwrap
import time
from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import PARAMETERS, make_model
from experiments.measuring.paired import BATCH, collect, differences, interval, score, train_steps
from experiments.measuring.steps import make_training_step
from experiments.measuring.timing import seconds_of
from experiments.report import Figure, Options, Parser, Rows, Table, by_name, entries, grouped, listed
from minitransformer.data.parsing import VOCABULARY, ParsingTask, draw_tree, encoded, read_trees
from minitransformer.plotting import COLORS, pyplot

SECONDS = {True: 60, False: 900}
UNIT = {True: 0.3, False: 1.0}  # seconds of CPU time at time 1
SEEDS = {True: 1, False: 3}
DATA = {"1/4": 1 / 16, "1": 1 / 4, "4": 1.0}  # shares of all training examples
CELLS = {  # (data, time, dropout)
    True: (("4", 4, 0.0), ("4", 16, 0.0)),
    False: (("1/4", 4, 0.0), ("1", 4, 0.0), ("4", 1, 0.0), ("4", 4, 0.0), ("4", 16, 0.0)),
}
NAMES = ONE, LSTM, TRANSFORMER = "LSTM, one vector", "LSTM, attention", "Transformer"
PEAKS = {ONE: 1e-2, LSTM: 1e-2, TRANSFORMER: 5e-3}  # each the best of three after 1,200 steps with seed 0
PACED, ROUNDS = 16, {True: 3, False: 15}  # batches whose time is measured, and how often
BOUNDS = (8, 12, 16, 20)  # words of a source: groups for the exact match by length
CELL = ("data", "time", "dropout")
TREES = (8, 12)  # words of the sources whose trees are drawn


def add_options(parser: Parser) -> None:
    """Further steps of time."""
    about = "also compare the attention LSTM and the Transformer at this time, with one seed, without dropout and with"
    parser.add_argument("--longer", type=int, metavar="TIME", help=about)


def rows(options: Options) -> Rows:
    """The scores of every model in every cell, saved one by one: start again to go on after an interruption."""
    (pace,) = collect(options.unfinished, [("pace",)], lambda _: measure_pace(ROUNDS[options.quick]))
    found = itertools.product(options.seeds, CELLS[options.quick], NAMES)
    todo = [(name, *cell, seed) for seed, cell, name in found]
    if options.longer:
        cells = [("4", options.longer, dropout) for dropout in (0.0, 0.1)]
        todo += [(name, *cell, options.seed) for cell in cells for name in (LSTM, TRANSFORMER)]

    def work(name: str, data: str, units: int, dropout: float, seed: int) -> dict[str, Any]:
        return train_and_test(name, data, units, dropout, seed, max(1, round(units * UNIT[options.quick] / pace[name])))

    return {"models": collect(options.unfinished, todo, work), "pace": [pace]}


def make(name: str, seed: int | None, dropout: float = 0.0) -> Any:
    """A new model with at most PARAMETERS parameters."""
    kind = {ONE: "fixed vector", LSTM: "additive"}.get(name, name)
    return make_model(kind, len(VOCABULARY), seed, PARAMETERS, dropout, bidirectional=True)


def measure_pace(rounds: int) -> dict[str, float]:
    """{model: seconds of CPU time of a training step}: the least of several rounds, in which all models take turns."""
    batches = list(itertools.islice(ParsingTask().epoch(np.random.default_rng(0), BATCH), PACED))
    steps = {name: make_training_step(make(name, 0), 0.0, threads=1) for name in NAMES}
    calls = {name: partial(lambda step: [step(batch, 1e-4) for batch in batches], steps[name]) for name in NAMES}
    turns = [{name: seconds_of(calls[name], time.process_time) / PACED for name in NAMES} for _ in range(rounds)]
    return {name: min(turn[name] for turn in turns) for name in NAMES}


def train_and_test(name: str, data: str, units: int, dropout: float, seed: int, steps: int) -> dict[str, Any]:
    """Train one model -> a row with its scores, and for one Transformer the trees that are drawn."""
    examples = int(DATA[data] * len(encoded(False)[0]))
    task, model = ParsingTask(examples), make(name, seed, dropout)
    about = {"model": name, "data": data, "time": units, "dropout": dropout, "seed": seed, "examples": examples}
    trained = train_steps(model, task, steps, seed, PEAKS[name])
    scores, texts = score(model, task)
    by_length = []
    for low, high in zip((0, *BOUNDS), BOUNDS, strict=False):
        group = [answer == tree for text, answer, tree in texts if low < len(text.split()) <= high]
        if group:
            row = {"words": f"{low + 1}-{high}", "examples": len(group), "exact": sum(group) / len(group)}
            by_length.append(row)
    fit = [row for row in texts if TREES[0] <= len(row[0].split()) <= TREES[1]]
    trees = [*[row for row in fit if row[1] == row[2]][:3], *[row for row in fit if row[1] != row[2]][:2]]
    parameters = model.num_parameters()
    return {**about, "parameters": parameters, **trained, **scores, "by_length": by_length, "trees": trees}


def tables(rows: Rows) -> list[Table]:
    """The scores in each cell, what the models are, and the exact match by length."""
    cells = []
    for (data, units, dropout), found in grouped(rows["models"], *CELL).items():
        models = by_name(found, "model")
        means = {
            name: [statistics.fmean(row[key] for row in models[name]) for key in ("exact", "f1")] for name in models
        }
        numbers = ["{:.3f} / {:.3f}".format(*means[name]) if name in means else "" for name in NAMES]
        mean, half = interval(ahead := gains(found))
        difference = f"{mean:+.3f} ± {half:.3f}" if len(ahead) > 1 else f"{mean:+.3f}"
        cells.append([data, str(units), f"{dropout:g}", str(len(ahead)), *numbers, difference])
    columns = [*CELL, "seeds", *NAMES, "Transformer - LSTM, attention"]
    first = [{**found[0], "pace": rows["pace"][0][name]} for name, found in by_name(rows["models"], "model").items()]
    sizes = {"model": ("model",), "parameters": ("parameters", ","), "ms a step": ("pace", ".1f", 1e3)}
    last = [row for row in rows["models"] if row["time"] == longest(rows) and not row["dropout"]]
    last = [
        {**found[-1], "shares": [part["exact"] for part in found[-1]["by_length"]]}
        for found in by_name(last, "model").values()
    ]
    words = [group["words"] for group in rows["models"][0]["by_length"]]
    lengths = {"exact match by words, one seed": ("model",), **entries(words, "shares", ".3f")}
    title = "exact match / bracket F1 on held-out examples, means of the seeds"
    return [Table(title, columns, cells), listed("", first, sizes), listed("", last, lengths)]


def gains(found: list[dict[str, Any]]) -> list[float]:
    """By how much the Transformer's exact match is above that of the LSTM with attention, seed by seed."""
    return differences(found, "exact", "model", LSTM)[TRANSFORMER]


def longest(rows: Rows) -> int:
    """The longest time that all models have."""
    return max(row["time"] for row in rows["models"] if row["model"] == ONE)


def shown(rows: Rows) -> list[list[str]]:
    """[text, answer, tree] of the examples whose trees are drawn."""
    return next(
        row["trees"]
        for row in rows["models"]
        if row["model"] == TRANSFORMER and row["time"] == longest(rows) and not row["dropout"]
    )


def findings(rows: Rows) -> list[str]:
    """Who is ahead in each cell, and the best exact match."""
    lines = []
    for (data, units, dropout), found in grouped(rows["models"], *CELL).items():
        mean, half = interval(gains(found))
        where = f"data {data}, time {units}" + (f", dropout {dropout}" if dropout else "")
        ahead = f"the {'Transformer' if mean > 0 else 'LSTM with attention'} is ahead by {abs(mean):.3f}"
        if half == float("inf"):
            lines.append(f"{where}: {ahead}, with one seed in exact match.")
        else:
            undecided = "undecided, " if abs(mean) <= half else ""
            lines.append(f"{where}: {undecided}{ahead} ± {half:.3f} in exact match.")
    best = max(rows["models"], key=lambda row: row["exact"])
    return [*lines, f"The best exact match is {best['exact']:.3f}: {best['model']}, time {best['time']}."]


def draw(rows: Rows) -> Figure:
    """The exact match over time and over data, and the trees of some held-out expressions."""
    figure = pyplot().figure(figsize=(9.0, 7.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=(3, 4))
    axes = top.subplots(1, 2)
    without = [row for row in rows["models"] if not row["dropout"]]
    panels = [("time", "training time, CPU seconds", [row for row in without if row["data"] == "4"])]
    panels += [("examples", "examples", [row for row in without if row["time"] == 4])]
    for axis, (key, label, found) in zip(axes, panels, strict=True):
        for color, (name, own) in zip(COLORS, by_name(found, "model").items(), strict=False):
            groups = sorted(by_name(own, key).items())
            ticks, means = zip(*((tick, np.mean([row["exact"] for row in each])) for tick, each in groups), strict=True)
            axis.plot([row[key] for row in own], [row["exact"] for row in own], ".", color=color, alpha=0.6)
            axis.plot(ticks, means, "o-", color=color, markersize=4, label=name)
        axis.set_xscale("log")
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.minorticks_off()
        axis.set(xlabel=label, ylabel="exact match, held out", ylim=(0, 1))
    axes[0].set(title="All examples")
    axes[1].set(title="Time 4")
    top.legend(*axes[0].get_legend_handles_labels(), ncols=3, loc="outside upper center")
    for i, (text, answer, tree) in enumerate(shown(rows)):
        lines = [*textwrap.wrap(text, 24), "", *draw_tree(read_trees(answer.split()))]
        if answer != tree:
            lines += ["", "WRONG; the tree of ast:", *draw_tree(read_trees(tree.split()))]
        color = COLORS[2] if answer == tree else COLORS[1]
        bottom.text(0.02 + i / 5, 0.98, "\n".join(lines), va="top", family="monospace", fontsize=7, color=color)
    return figure
