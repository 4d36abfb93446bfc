"""Why was one vector not enough: what do copy and reverse lose with the length of the source?

Four models have equal numbers of parameters and equal training time.

Without attention, the whole source must fit into the state that the encoder ends with, however long it is. Attention
looks at the tokens themselves, so the longest source matters less. All models see sources of 1 to LONGEST letters.
"""

from functools import partial
from typing import Any

from experiments.measuring.equal_terms import (
    MODELS,
    PARAMETERS,
    make_model,
    score_at,
    train_all,
    train_for,
)
from experiments.report import Figure, Options, Rows, Table
from minitransformer.data import get_task
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.process import keep_freed_memory

SECONDS = {True: 15, False: 220}
TASKS = {True: ("reverse",), False: ("copy", "reverse")}
TRAINING = {True: 4.0, False: 40.0}  # seconds of CPU time of each model
LONGEST = {True: 8, False: 16}  # letters of a source in training
LENGTHS = {True: (2, 4, 6, 8, 10), False: (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)}  # letters of a source in the tests


def rows(options: Options) -> Rows:
    """The exact match of every model at every length."""
    todo = [(task, name) for task in TASKS[options.quick] for name in MODELS]
    return {"models": train_all(partial(train_and_test, quick=options.quick, seed=options.seed), todo)}


def train_and_test(task_name: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> a row with the share of exact answers at each length."""
    keep_freed_memory()
    task = get_task(task_name)
    task.max_len = LONGEST[quick]
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick], seed)
    scores = [score_at(model, task_name, length, seed) for length in LENGTHS[quick]]
    about = {"task": task_name, "model": name, "parameters": model.num_parameters(), "longest": LONGEST[quick]}
    return {**about, **trained, "lengths": LENGTHS[quick], "exact_match": scores}


def tables(rows: Rows) -> list[Table]:
    """One line for each task and model."""
    lengths = rows["models"][0]["lengths"]
    cells = [
        [row["task"], row["model"], f"{row['steps']:,}", *(f"{score:.2f}" for score in row["exact_match"])]
        for row in rows["models"]
    ]
    title = (
        f"exact match by letters, at most {PARAMETERS:,} parameters, trained on up to {rows['models'][0]['longest']}"
    )
    return [Table(title, ["task", "model", "steps", *map(str, lengths)], cells)]


def findings(rows: Rows) -> list[str]:
    """What is left at the longest source of training."""
    found = []
    for row in rows["models"]:
        scores = dict(zip(row["lengths"], row["exact_match"], strict=True))
        if row["longest"] in scores:
            share = scores[row["longest"]]
            found.append(f"{row['task']}, {row['model']}: {share:.2f} exact at {row['longest']} letters.")
    return found


def draw(rows: Rows) -> Figure:
    """The exact match of every model over the length of the source, one panel for each task."""
    tasks = list(dict.fromkeys(row["task"] for row in rows["models"]))
    figure, axes = pyplot().subplots(1, len(tasks), figsize=(1.2 + 4.2 * len(tasks), 3.6), sharey=True, squeeze=False)
    for axis, task in zip(axes[0], tasks, strict=True):
        for color, row in zip(COLORS, (row for row in rows["models"] if row["task"] == task), strict=False):
            axis.plot(row["lengths"], row["exact_match"], "o-", color=color, markersize=4, label=row["model"])
        longest = rows["models"][0]["longest"]
        axis.axvline(longest, color=GREY, linewidth=1, linestyle="--")
        axis.annotate("longest in training", (longest, 1.03), color=GREY, fontsize=8, ha="right")
        axis.set_xticks(rows["models"][0]["lengths"])
        axis.set(title=f"{task}\n", xlabel="letters of the source", ylim=(-0.03, 1.08))
    axes[0, 0].set_ylabel("exact match, held out")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    return figure
