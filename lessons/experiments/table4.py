"""Does the Transformer parse better than what it replaced, at equal time and equal size, as the paper's table 4 says?

Three models with as many parameters learn to write the trees of Python's own expressions (data/parsing.py): an LSTM
with one vector, a bidirectional LSTM with additive attention (as in Vinyals et al. 2015, with which the paper
compares), and the Transformer. The data and the time grow by factors of four. Time is counted in steps, as many as fit
into it by the speed that is measured first, with all models in turn: so other work on the machine changes no result. No
example is in both training and test, and the differences are paired by the seed of weights and batches.
"""

import itertools
import textwrap
import time
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import PARAMETERS, widest
from experiments.measuring.paired import BATCH, collect, interval, score, train_steps
from experiments.measuring.steps import make_training_step
from experiments.report import Figure, Options, Parser, Rows, Table
from minitransformer.data.parsing import VOCABULARY, ParsingTask, draw_tree, encoded, read_trees
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.plotting import COLORS, pyplot
from minitransformer.system.process import limit_threads

SECONDS = {True: 60, False: 900}
UNIT = {True: 0.3, False: 1.0}  # seconds of CPU time at time 1
SEEDS = {True: 1, False: 3}
DATA = {"1/4": 1 / 16, "1": 1 / 4, "4": 1.0}  # shares of all training examples
CELLS = {  # (data, time, dropout)
    True: (("4", 4, 0.0), ("4", 16, 0.0)),
    False: (("1/4", 4, 0.0), ("1", 4, 0.0), ("4", 1, 0.0), ("4", 4, 0.0), ("4", 16, 0.0)),
}
ONE, LSTM, TRANSFORMER = "LSTM, one vector", "LSTM, attention", "Transformer"
PEAKS = {ONE: 1e-2, LSTM: 1e-2, TRANSFORMER: 5e-3}  # each the best of three after 1,200 steps with seed 0
PACED, ROUNDS = 16, {True: 3, False: 15}  # batches whose time is measured, and how often
BOUNDS = (8, 12, 16, 20)  # words of a source: groups for the exact match by length
TREES = (8, 12)  # words of the sources whose trees are drawn


def add_options(parser: Parser) -> None:
    """How many seeds, and further steps of time."""
    parser.add_argument("--seeds", type=int, metavar="N", help=f"number of seeds (default {SEEDS[False]})")
    about = "also compare the attention LSTM and the Transformer at this time, with one seed, without dropout and with"
    parser.add_argument("--longer", type=int, metavar="TIME", help=about)


def check(options: Options) -> None:
    """ValueError for seeds that are no number of them."""
    if options.seeds is not None and not 1 <= options.seeds <= 10:
        raise ValueError(f"--seeds must be from 1 to 10, got {options.seeds}")


def rows(options: Options) -> Rows:
    """The scores of every model in every cell, saved one by one: start again to go on after an interruption."""
    seeds = range(options.seed, options.seed + (options.seeds or SEEDS[options.quick]))
    path = options.runs / "experiments" / f"table4{'-quick' if options.quick else ''}.jsonl"
    (pace,) = collect(path, [("pace",)], lambda _: measure_pace(ROUNDS[options.quick]))
    todo = [
        (name, *cell, seed)
        for seed, cell, name in itertools.product(seeds, CELLS[options.quick], (ONE, LSTM, TRANSFORMER))
    ]
    if options.longer:
        cells = [("4", options.longer, dropout) for dropout in (0.0, 0.1)]
        todo += [(name, *cell, options.seed) for cell in cells for name in (LSTM, TRANSFORMER)]

    def work(name: str, data: str, units: int, dropout: float, seed: int) -> dict[str, Any]:
        return train_and_test(name, data, units, dropout, seed, max(1, round(units * UNIT[options.quick] / pace[name])))

    models = collect(path, todo, work)
    path.unlink()
    return {"models": models, "pace": [pace]}


def make(name: str, seed: int | None, dropout: float = 0.0) -> Any:
    """A new model with at most PARAMETERS parameters."""
    common: dict[str, Any] = {"vocab_size": len(VOCABULARY), "max_len": 64, "dropout": dropout}

    def of_width(width: int, seed: int | None) -> Any:
        if name == TRANSFORMER:
            config = TransformerConfig(**common, d_model=width, num_heads=4, d_ff=4 * width, num_layers=2)
            return Transformer(config, seed=seed)
        sizes = {**common, "d_model": width, "hidden_size": width, "num_layers": 1}
        sizes |= {"attention": "additive" if name == LSTM else "none", "bidirectional": True}
        return Seq2Seq(Seq2SeqConfig(**sizes), seed=seed)

    return of_width(widest(lambda width: of_width(width, None), PARAMETERS), seed)


def measure_pace(rounds: int) -> dict[str, float]:
    """{model: seconds of CPU time of a training step}: the least of several rounds, in which all models take turns."""
    batches = list(itertools.islice(ParsingTask().epoch(np.random.default_rng(0), BATCH), PACED))
    least = dict.fromkeys((ONE, LSTM, TRANSFORMER), float("inf"))
    with limit_threads(1):
        steps = {name: make_training_step(make(name, 0), 0.0, threads=1) for name in least}
        for name in rounds * list(least):
            start = time.process_time()
            for batch in batches:
                steps[name](batch, 1e-4)
            least[name] = min(least[name], (time.process_time() - start) / PACED)
    return least


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


def differences(rows: Rows, key: str = "exact") -> list[dict[str, Any]]:
    """For each cell, the scores of all models by seed, and those of the Transformer less those of the LSTM, paired."""
    cells: dict[tuple, dict[str, dict[int, float]]] = {}
    for row in rows["models"]:
        cell = cells.setdefault((row["data"], row["time"], row["dropout"]), {})
        cell.setdefault(row["model"], {})[row["seed"]] = row[key]
    found = []
    for (data, units, dropout), models in cells.items():
        seeds = [seed for seed in models[TRANSFORMER] if seed in models[LSTM]]
        mean, half = interval([models[TRANSFORMER][seed] - models[LSTM][seed] for seed in seeds])
        about = {"data": data, "time": units, "dropout": dropout, "seeds": len(seeds), "mean": mean, "half": half}
        found.append({**about, "models": {name: list(of_seed.values()) for name, of_seed in models.items()}})
    return found


def tables(rows: Rows) -> list[Table]:
    """The scores in each cell, what the models are, the exact match by length, and some trees."""
    cells = []
    for exact, f1 in zip(differences(rows), differences(rows, "f1"), strict=True):
        both = [[interval(cell["models"][name])[0] if name in cell["models"] else None for cell in (exact, f1)]
                for name in (ONE, LSTM, TRANSFORMER)]  # fmt: skip
        numbers = ["" if value[0] is None else f"{value[0]:.3f} / {value[1]:.3f}" for value in both]
        difference = f"{exact['mean']:+.3f} ± {exact['half']:.3f}" if exact["seeds"] > 1 else f"{exact['mean']:+.3f}"
        about = [exact["data"], str(exact["time"]), f"{exact['dropout']:g}", str(exact["seeds"])]
        cells.append([*about, *numbers, difference])
    columns = ["data", "time", "dropout", "seeds", ONE, LSTM, TRANSFORMER, "Transformer - LSTM, attention"]
    first = {row["model"]: row for row in rows["models"]}
    sizes = [[name, f"{row['parameters']:,}", f"{1e3 * rows['pace'][0][name]:.1f}"] for name, row in first.items()]
    last = {row["model"]: row for row in rows["models"] if row["time"] == longest(rows) and not row["dropout"]}
    words = [group["words"] for group in rows["models"][0]["by_length"]]
    lengths = [[name, *(f"{group['exact']:.3f}" for group in row["by_length"])] for name, row in last.items()]
    return [
        Table("exact match / bracket F1 on held-out examples, means of the seeds", columns, cells),
        Table("", ["model", "parameters", "ms a step"], sizes),
        Table("", ["exact match by words, one seed", *words], lengths),
        Table("", ["text", "the Transformer", "ast"], [[*texts] for texts in shown(rows)]),
    ]


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
    found = []
    for cell in differences(rows):
        where = f"data {cell['data']}, time {cell['time']}" + (
            f", dropout {cell['dropout']}" if cell["dropout"] else ""
        )
        mean, half = cell["mean"], cell["half"]
        ahead = "the Transformer is ahead" if mean > 0 else "the LSTM with attention is ahead"
        certain = f"by {abs(mean):.3f} ± {half:.3f}" if cell["seeds"] > 1 else f"by {abs(mean):.3f}, with one seed"
        open_ = cell["seeds"] > 1 and abs(mean) <= half
        found.append(f"{where}: {'undecided, ' if open_ else ''}{ahead} {certain} in exact match.")
    best = max(rows["models"], key=lambda row: row["exact"])
    return [*found, f"The best exact match is {best['exact']:.3f}: {best['model']}, time {best['time']}."]


def draw(rows: Rows) -> Figure:
    """The exact match over time and over data, and the trees of some held-out expressions."""
    figure = pyplot().figure(figsize=(9.0, 7.6))
    top, bottom = figure.subfigures(2, 1, height_ratios=(3, 4))
    axes = top.subplots(1, 2)
    without = [row for row in rows["models"] if not row["dropout"]]
    panels = [("time", "training time, CPU seconds", [row for row in without if row["data"] == "4"])]
    panels += [("examples", "examples", [row for row in without if row["time"] == 4])]
    for axis, (key, label, found) in zip(axes, panels, strict=True):
        for color, name in zip(COLORS, (ONE, LSTM, TRANSFORMER), strict=False):
            own = [row for row in found if row["model"] == name]
            ticks = sorted({row[key] for row in own})
            means = [interval([row["exact"] for row in own if row[key] == tick])[0] for tick in ticks]
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
