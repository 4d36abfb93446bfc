"""The alignment picture (Bahdanau et al. 2015, figure 3): which source token each output token was made from.

Nobody tells a model with attention where to look. That it looks at the letter that it writes is found by training.
"""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.bench.lengths import score_at, train_all
from minitransformer.compare.figures import plot_alignments
from minitransformer.compare.training import make_model, train_for
from minitransformer.data import get_task
from minitransformer.system.process import keep_freed_memory

NAME = "alignment"
DESCRIPTION = "where a trained additive model looks while it reverses and sorts"
SECONDS = {True: 10, False: 50}
TASKS = ("reverse", "sort")
TRAINING = {True: 5.0, False: 30.0}  # seconds of CPU time of each model
LENGTH, SEQUENCES = 10, 200  # letters of the sources in the test
PROCESSES = 2


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Train a model for each task, print how well they look, and draw alignment.png into `directory` -> the numbers."""
    rows = train_all(
        partial(train_and_align, quick=quick, seed=seed), [(task, "additive") for task in TASKS], PROCESSES
    )
    rows.sort(key=lambda row: TASKS.index(row["task"]))
    print(f"{SEQUENCES} held-out sources of {LENGTH} letters, {TRAINING[quick]:.0f} s of training in CPU time\n")
    print(f"{'task':<10}{'exact match':>12}{'looks at the letter that it writes':>37}{'weight on it':>15}")
    for row in rows:
        print(f"{row['task']:<10}{row['exact_match']:>12.2f}{row['found']:>37.2f}{row['weight']:>15.2f}")
    figure = directory / "alignment.png"
    plot_alignments(rows, figure)
    print(f"\nsaved {figure}")
    return {"rows": [{key: value for key, value in row.items() if key != "example"} for row in rows]}


def train_and_align(task_name: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> its exact match, how it looks, and an example {"weights" (T, S), "source", "target"}."""
    keep_freed_memory()
    task = get_task(task_name)
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick], seed)
    task.max_len = LENGTH
    batch = task.batch(np.random.default_rng([seed, 5]), SEQUENCES, held_out=True, min_len=LENGTH)
    weights = to_host(model.attention_weights(*batch.inputs).cross[-1])[:, 0]  # (B, T, S)
    symbols = task.vocabulary
    example = {
        "weights": weights[0],
        "source": [symbols[i].strip("<>") for i in batch.source[0]],
        "target": [symbols[i].strip("<>") for i in batch.target_out[0]],
    }
    score = score_at(model, task_name, LENGTH, seed)
    return {"task": task_name, **trained, "exact_match": score, **looks(weights, batch), "example": example}


def looks(weights: np.ndarray, batch: Any) -> dict[str, float]:
    """How often the largest of the weights (B, T, S) is on the token that is written, and the mean weight on it.

    Where a letter occurs twice in the source, each of the two counts. The end of the answer does not.
    """
    same = batch.target_out[:, :-1, None] == batch.source[:, None, :]  # (B, T, S)
    weights = weights[:, :-1]
    found = np.take_along_axis(same, weights.argmax(axis=-1)[..., None], axis=-1)
    return {"found": float(found.mean()), "weight": float((weights * same).sum(axis=-1).mean())}
