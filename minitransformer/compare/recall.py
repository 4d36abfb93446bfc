"""Recall: pairs of a key and a value in the context, and at its end the question which value belongs to one key.

A model with one fixed vector must compress all pairs before it knows the question. Attention keeps every token, and
compares it with the question. See `data.tasks.Recall`; the answer is one of ten digits.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.bench.lengths import train_all
from minitransformer.compare.figures import plot_recall
from minitransformer.compare.training import MODELS, PARAMETERS, PEAK, make_model, train_for
from minitransformer.data.tasks import Recall
from minitransformer.evaluation import decode_and_score
from minitransformer.system.process import keep_freed_memory

NAME = "recall"
DESCRIPTION = "key-value pairs, asked at the end: compress (one fixed vector) against compare (attention)"
SECONDS = {True: 10, False: 105}
TRAINING = {True: 3.0, False: 45.0}  # seconds of CPU time of each model
PEAKS = {"Transformer": 2e-3}  # of the learning rate: at 6e-3 it still guesses after 80 s
PAIRS = {True: (1, 2, 4, 8), False: (1, 2, 4, 8, 12, 16, 20, 26)}  # up to the last one in training
SEQUENCES = 300
PROCESSES = 2


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Train and test all models, print a table, and draw recall.png into `directory` -> the numbers."""
    todo = [("recall", name) for name in MODELS]
    rows = train_all(partial(train_and_test, quick=quick, seed=seed), todo, PROCESSES)
    rows.sort(key=lambda row: list(MODELS).index(row["model"]))
    pairs = PAIRS[quick]
    print(
        f"right answers to {SEQUENCES} held-out sources for each number of pairs, after {TRAINING[quick]:.0f} s of "
        f"training in CPU time,\nat most {PARAMETERS:,} parameters; a guess is right in 0.10\n"
    )
    print(f"{'model':<14}{'parameters':>11}{'steps':>8}" + "".join(f"{count:>6}" for count in pairs))
    for row in rows:
        scores = "".join(f"{score:>6.2f}" for score in row["exact_match"])
        print(f"{row['model']:<14}{row['parameters']:>11,}{row['steps']:>8,}{scores}")
    figure = directory / "recall.png"
    plot_recall(rows, pairs, figure)
    print(f"\nsaved {figure}")
    return {"pairs": pairs, "rows": rows}


def train_and_test(task_name: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> a row with the share of right answers for each number of pairs."""
    keep_freed_memory()
    task = Recall(PAIRS[quick][-1])
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick], seed, PEAKS.get(name, PEAK))
    scores = [score_at(model, count, seed) for count in PAIRS[quick]]
    return {"model": name, "parameters": model.num_parameters(), **trained, "exact_match": scores}


def score_at(model: Any, pairs: int, seed: int) -> float:
    """The share of right answers to sources with so many pairs. Of one pair there are only 260 sources in all."""
    task = Recall(pairs)
    batch = task.batch(np.random.default_rng([seed, 6, pairs]), SEQUENCES, held_out=True, min_len=pairs + 1)
    return decode_and_score(model, batch)[1]
