"""Which position encodings still work beyond the lengths that a task was trained on?

The tiny model is trained with each of the six position encodings on copy and on reverse, with up to 12 letters, and
then tested with up to 48. The twelve trainings run in parallel.
"""

import os
from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import score_at, train_all
from experiments.measuring.steps import train_toy_task
from experiments.report import Figure, Options, Parser, Rows, Table, by_name, pivot, unrolled
from minitransformer import get_task
from minitransformer.config import POSITIONS
from minitransformer.plotting import ORANGE, pyplot, wrap

SECONDS = {True: 60, False: 400}
TASKS = ("copy", "reverse")
LONGEST_TRAINED = 12  # symbols of a source in training
LENGTHS = (6, 9, 12, 13, 14, 16, 20, 24, 32, 48)  # symbols of a source in the tests
STEPS, QUICK_STEPS = 1000, 100


def add_options(parser: Parser) -> None:
    """The options that only this experiment has."""
    parser.add_argument("--steps", type=int, metavar="N", help="training steps of each model (default: 1000)")
    about = "parallel trainings (default: one per processor)"
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help=about)


def check(options: Options) -> None:
    """Raise ValueError for an option that cannot be used."""
    for name in ("steps", "jobs"):
        if getattr(options, name) is not None and getattr(options, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(options, name)}")


def rows(options: Options) -> Rows:
    """The share of exact answers of every task with every position encoding at every length."""
    steps = options.steps or (QUICK_STEPS if options.quick else STEPS)
    todo = [(task, positions) for task in TASKS for positions in POSITIONS]
    found = train_all(partial(train_and_test, seed=options.seed, steps=steps), todo, options.jobs)
    return {"scores": unrolled(found, "length", "exact_match")}


def train_and_test(task_name: str, positions: str, seed: int = 0, steps: int | None = None) -> dict[str, Any]:
    """Train the tiny model on one thread -> the share of exact answers at LENGTHS."""
    model, _, _ = train_toy_task(task_name, seed, steps, positions=positions, max_len=max(LENGTHS) + 8)
    scores = [score_at(model, get_task(task_name), length, seed) for length in LENGTHS]
    return {"task": task_name, "positions": positions, "length": LENGTHS, "exact_match": scores}


def tables(rows: Rows) -> list[Table]:
    """One table for each task."""
    how, groups = ("positions", "length", "exact_match", "g"), by_name(rows["scores"], "task")
    return [pivot(f"{task}: exact match at each number of letters", found, *how) for task, found in groups.items()]


def findings(rows: Rows) -> list[str]:
    """Who answers any source that is longer than those of training."""
    beyond = [row for row in rows["scores"] if row["length"] > LONGEST_TRAINED]
    best = max(beyond, key=lambda row: (row["exact_match"], row["length"]))
    longest = max((row["length"] for row in beyond if row["exact_match"]), default=LONGEST_TRAINED)
    return [
        f"Beyond {LONGEST_TRAINED} letters the best share is {best['exact_match']:g}, of {best['positions']} on "
        f"{best['task']} at {best['length']} letters; above {longest} letters no answer is exact."
    ]


def draw(rows: Rows) -> Figure:
    """The percentages of exact answers as a table: one panel per task, one row per position encoding.

    Lines instead of a table would hide each other, because most shares are 1 or 0.
    """
    tasks, lengths = by_name(rows["scores"], "task"), list(by_name(rows["scores"], "length"))
    width = 4.4 * len(tasks) + 0.8
    figure, axes = pyplot().subplots(1, len(tasks), figsize=(width, 3.1), sharey=True, squeeze=False)
    within = sum(length <= LONGEST_TRAINED for length in lengths)
    for axis, (task, chosen) in zip(axes[0], tasks.items(), strict=True):
        names = list(by_name(chosen, "positions"))
        shares = np.array([row["exact_match"] for row in chosen]).reshape(len(names), len(lengths))
        image = axis.imshow(100 * shares, vmin=0, vmax=100, aspect="auto")
        for (i, j), share in np.ndenumerate(shares):
            color = "black" if share > 0.6 else "white"
            axis.text(j, i, f"{100 * share:.3g}", ha="center", va="center", fontsize=8, color=color)
        axis.axvline(within - 0.5, color=ORANGE, linewidth=2)
        axis.set_xticks(range(len(lengths)), lengths)
        axis.set_yticks(range(len(names)), names)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        axis.set(title=task, xlabel=f"letters in the source (left of the line: trained, up to {LONGEST_TRAINED})")
    axes[0, 0].set_ylabel("positions")
    figure.colorbar(image, ax=axes, label="exact answers (%)", shrink=0.9)
    figure.suptitle(wrap(f"Exact answers to sources of up to {max(lengths)} letters, in %", width))
    return figure
