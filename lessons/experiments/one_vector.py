"""Why was one vector not enough: what do copy, reverse and recall lose with the length of the source?

Four models have equal numbers of parameters and equal training time.

Without attention, the whole source must fit into the state that the encoder ends with, however long it is. Attention
looks at the tokens themselves, so the longest source matters less. In copy and reverse all models see sources of 1 to
LONGEST letters. In recall (`data.tasks.Recall`) one of up to PAIRS pairs is asked for at the end, so one vector must
compress all pairs before it knows the question; the answer is one of ten digits.

`alignment` is the picture of Bahdanau et al. 2015, figure 3: which source token each output token was made from, in an
additive model that reverses and sorts. Nobody tells a model with attention where to look; training finds it.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import MODELS, PARAMETERS, PEAK, make_model, score_at, train_all, train_for
from experiments.report import (
    Figure,
    Options,
    Parser,
    Rows,
    Table,
    by_name,
    draw_kinds,
    draw_map,
    entries,
    legend_below,
    listed,
    unrolled,
)
from minitransformer import get_task, to_host
from minitransformer.data.tasks import Recall
from minitransformer.plotting import GREY, pyplot

SECONDS = {True: 35, False: 380}
PARTS = ("copy", "reverse", "recall", "alignment")
TRAINING = {  # seconds of CPU time of each model
    True: {"copy": 4.0, "reverse": 4.0, "recall": 3.0, "alignment": 5.0},
    False: {"copy": 40.0, "reverse": 40.0, "recall": 45.0, "alignment": 30.0},
}
LONGEST = {True: 8, False: 16}  # letters of a source in training
LENGTHS = {True: (2, 4, 6, 8, 10), False: (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)}  # letters of a source in the tests
PAIRS = {True: (1, 2, 4, 8), False: (1, 2, 4, 8, 12, 16, 20, 26)}  # up to the last one in training
RECALL_PEAKS = {"Transformer": 2e-3}  # of the learning rate: at 6e-3 it still guesses after 80 s
RECALLED = 300  # sequences of each number of pairs; of one pair there are only 260 sources in all
ALIGNED, LENGTH, SEQUENCES = ("reverse", "sort"), 10, 200  # tasks, letters of a source, sources


def add_options(parser: Parser) -> None:
    """Which of the four."""
    help = f"one or more of {', '.join(PARTS)} (default: all; with --quick all but the first)"
    parser.add_argument("parts", nargs="*", metavar="PART", help=help)


def check(options: Options) -> None:
    """Raise ValueError for an unknown part."""
    for part in options.parts:
        if part not in PARTS:
            raise ValueError(f"unknown part {part!r}; known parts: {', '.join(PARTS)}")


def rows(options: Options) -> Rows:
    """The exact match of every model at every length and number of pairs; and how the additive models look."""
    parts = options.parts or PARTS[int(options.quick) :]  # the quick form leaves out copy
    todo = {
        "models": [(task, name) for task in ("copy", "reverse") if task in parts for name in MODELS],
        "recall": [("recall", name) for name in MODELS if "recall" in parts],
        "tasks": [(task, "additive") for task in ALIGNED if "alignment" in parts],
    }
    work = {"models": train_and_test, "recall": train_and_recall, "tasks": train_and_align}
    how = {"quick": options.quick, "seed": options.seed}
    return {name: train_all(partial(work[name], **how), jobs) for name, jobs in todo.items() if jobs}


def train_and_test(task_name: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> a row with the share of exact answers at each length."""
    task = get_task(task_name)
    task.max_len = LONGEST[quick]
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick][task_name], seed)
    scores = [score_at(model, get_task(task_name), length, seed) for length in LENGTHS[quick]]
    about = {"task": task_name, "model": name, "parameters": model.num_parameters(), "longest": LONGEST[quick]}
    return {**about, **trained, "lengths": LENGTHS[quick], "exact_match": scores}


def train_and_recall(_: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> a row with the share of right answers for each number of pairs."""
    task = Recall(PAIRS[quick][-1])
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick]["recall"], seed, RECALL_PEAKS.get(name, PEAK))
    scores = [score_at(model, Recall(pairs), pairs + 1, [seed, 6, pairs], RECALLED) for pairs in PAIRS[quick]]
    about = {"model": name, "parameters": model.num_parameters(), "seconds": TRAINING[quick]["recall"]}
    return {**about, **trained, "pairs": PAIRS[quick], "exact_match": scores}


def train_and_align(task_name: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> its exact match, how it looks, and an example {"weights" (T, S), "source", "target"}."""
    task = get_task(task_name)
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick]["alignment"], seed)
    task.max_len = LENGTH
    batch = task.batch(np.random.default_rng([seed, 5]), SEQUENCES, held_out=True, min_len=LENGTH)
    weights = to_host(model.attention_weights(*batch.inputs).cross[-1])[:, 0]  # (B, T, S)
    example: dict[str, Any] = {"weights": weights[0].tolist()}
    for side, ids in (("source", batch.source[0]), ("target", batch.target_out[0])):
        example[side] = [task.vocabulary[i].strip("<>") for i in ids]
    score = score_at(model, task, LENGTH, seed)
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
    """The shares of exact answers, a line for each model; and how the additive models look."""
    found = []
    for name, of, about in (
        ("models", "lengths", "exact match by letters"),
        ("recall", "pairs", "right answers by pairs, of which a guess gets 0.10"),
    ):
        if models := rows.get(name):
            columns: dict[str, tuple] = {"model": ("model",), "steps": ("steps", ",")}
            columns |= entries(models[0][of], "exact_match", ".2f")
            columns = {"task": ("task",), **columns} if "task" in models[0] else columns
            found.append(listed(f"{about}; at most {PARAMETERS:,} parameters", models, columns))
    if aligned := rows.get("tasks"):
        shares = {"exact match": "exact_match", "largest weight on the letter that is written": "found"}
        shares["mean weight on it"] = "weight"
        columns = {"task": ("task",), **{heading: (key, ".2f") for heading, key in shares.items()}}
        found.append(listed(f"held-out sources of {LENGTH} letters", aligned, columns))
    return found


def findings(rows: Rows) -> list[str]:
    """What is left at the longest source of training and among the most pairs, and where the weights lie."""
    found = []
    for row in rows.get("models", ()):
        scores = dict(zip(row["lengths"], row["exact_match"], strict=True))
        if row["longest"] in scores:
            share = scores[row["longest"]]
            found.append(f"{row['task']}, {row['model']}: {share:.2f} exact at {row['longest']} letters.")
    for row in rows.get("recall", ()):
        share, pairs = row["exact_match"][-1], row["pairs"][-1]
        found.append(f"{row['model']}: {share:.2f} of the answers are right with {pairs} pairs.")
    for row in rows.get("tasks", ()):
        share = 1 - row["weight"]
        found.append(f"{row['task']}: {share:.2f} of the weight lies on other letters than the one that is written.")
    return found


def draw(rows: Rows) -> Figure:
    """The shares over the length of the source, a panel for each task; and the weights of an answer."""
    panels = [(task, found, "lengths", "letters") for task, found in by_name(rows.get("models", ()), "task").items()]
    panels += [("recall", rows["recall"], "pairs", "pairs")] if "recall" in rows else []
    maps = rows.get("tasks", [])
    count = len(panels) + len(maps)
    figure, axes = pyplot().subplots(1, count, figsize=(1.2 + 4.2 * count, 3.8), squeeze=False)
    for axis, (task, models, of, what) in zip(axes[0], panels, strict=False):
        draw_kinds(axis, unrolled(models, of, "exact_match"), "model", of, "exact_match")
        if longest := models[0].get("longest"):
            axis.axvline(longest, color=GREY, linewidth=1, linestyle="--")
            axis.annotate("longest in training", (longest, 1.03), color=GREY, fontsize=8, ha="right")
        else:
            axis.axhline(0.1, color=GREY, linewidth=1, linestyle="--", label="a guess")
        axis.set_xticks(models[0][of])
        axis.set(title=f"{task}\n", xlabel=f"{what} of the source", ylabel="exact match, held out", ylim=(-0.03, 1.08))
    for axis, row in zip(axes[0, len(panels) :], maps, strict=True):
        example = row["example"]
        image = draw_map(axis, example["weights"], example["source"], example["target"])
        axis.set(title=row["task"], xlabel="letter attended to", ylabel="letter to be written")
    if maps:
        figure.colorbar(image, ax=axes[0, len(panels) :].tolist(), label="attention weight")
    if panels:
        legend_below(figure, axes[0, len(panels) - 1], ncols=5)
    return figure
