"""Where does a trained additive model look while it reverses and sorts?

The picture of Bahdanau et al. 2015, figure 3: which source token each output token was made from.

Nobody tells a model with attention where to look. That it looks at the letter that it writes is found by training.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import make_model, score_at, train_all, train_for
from experiments.report import Figure, Options, Rows, Table
from minitransformer.backend import to_host
from minitransformer.data import get_task
from minitransformer.plotting import pyplot
from minitransformer.system.process import keep_freed_memory

SECONDS = {True: 10, False: 50}
TASKS = ("reverse", "sort")
TRAINING = {True: 5.0, False: 30.0}  # seconds of CPU time of each model
LENGTH, SEQUENCES = 10, 200  # letters of the sources in the test


def rows(options: Options) -> Rows:
    """How well each model looks, and one answer with its weights (T, S)."""
    todo = [(task, "additive") for task in TASKS]
    return {"tasks": train_all(partial(train_and_align, quick=options.quick, seed=options.seed), todo)}


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
        "weights": weights[0].tolist(),
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


def tables(rows: Rows) -> list[Table]:
    """One line for each task."""
    columns = ["task", "exact match", "largest weight on the letter that is written", "mean weight on it"]
    keys = ("exact_match", "found", "weight")
    cells = [[row["task"], *(f"{row[key]:.2f}" for key in keys)] for row in rows["tasks"]]
    return [Table(f"held-out sources of {LENGTH} letters", columns, cells)]


def findings(rows: Rows) -> list[str]:
    """Where the weights lie."""
    return [
        f"{row['task']}: {1 - row['weight']:.2f} of the weight lies on other letters than the one that is written."
        for row in rows["tasks"]
    ]


def draw(rows: Rows) -> Figure:
    """The attention weights of one answer of each task: the source along the top, the answer down the side."""
    count = len(rows["tasks"])
    figure, axes = pyplot().subplots(1, count, figsize=(3.6 * count + 0.8, 3.7), squeeze=False)
    for axis, row in zip(axes[0], rows["tasks"], strict=True):
        example = row["example"]
        image = axis.imshow(example["weights"], vmin=0.0, vmax=1.0, aspect="auto")
        axis.set_xticks(range(len(example["source"])), example["source"])
        axis.set_yticks(range(len(example["target"])), example["target"])
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.spines[:].set_visible(False)
        axis.set(title=row["task"], xlabel="letter attended to", ylabel="letter to be written")
    figure.colorbar(image, ax=axes[0].tolist(), label="attention weight")
    return figure
