"""`minitransformer lengths`: which choice of positions carries a toy task beyond the lengths it was learnt on."""

import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path

from minitransformer.bench.lengths import LENGTHS, TASKS, TESTED, jobs, learn_and_test
from minitransformer.progress import tqdm

HELP = "test every choice of positions on sequences longer than those it has learnt"
DESCRIPTION = """\
Train the tiny model on copy and reverse with each of the six choices of positions, on up to 12 letters, and then
test it on up to 48: twelve trainings, shared by the processors (about six minutes on two).

  minitransformer lengths
  minitransformer lengths --steps 500       less thorough
"""


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("--steps", type=int, help="training steps (default: the task's own)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="trainings at a time (default: all processors)"
    )
    parser.add_argument("--plots", type=Path, default=Path("plots"), help="folder for the figure (default plots)")


def run(arguments):
    """Train all, test all, print the table, draw the figure."""
    from minitransformer.plotting import plot_lengths

    for name in ("steps", "jobs"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    todo = jobs()
    work = partial(learn_and_test, seed=arguments.seed, steps=arguments.steps)
    with ProcessPoolExecutor(arguments.jobs) as pool:
        futures = {pool.submit(work, *job): job for job in todo}
        rows = [
            future.result() for future in tqdm(as_completed(futures), total=len(todo), disable=None, unit="training")
        ]
    rows.sort(key=lambda row: todo.index((row["task"], row["positions"])))
    print(f"share of {TESTED} held-out sequences that are right to the last token, by their length\n")
    print(f"{'task':<8} {'positions':<11}" + "".join(f"{length:>6}" for length in LENGTHS))
    for row in rows:
        print(f"{row['task']:<8} {row['positions']:<11}" + "".join(f"{score:>6.2f}" for score in row["exact_match"]))
    figure = arguments.plots / "lengths.png"
    arguments.plots.mkdir(parents=True, exist_ok=True)
    plot_lengths(rows, TASKS, LENGTHS, figure)
    print(f"\nsaved {figure}")
    if arguments.json:
        print(json.dumps({"lengths": LENGTHS, "rows": rows}))
    return 0
