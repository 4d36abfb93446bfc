"""Which models find one of many key-value pairs again, when they are asked at the end?

A model with one fixed vector must compress all pairs before it knows the question. Attention keeps every token, and
compares it with the question. See `data.tasks.Recall`; the answer is one of ten digits.
"""

from functools import partial
from typing import Any

import numpy as np

from experiments.measuring.equal_terms import (
    MODELS,
    PARAMETERS,
    PEAK,
    make_model,
    train_all,
    train_for,
)
from experiments.report import Figure, Options, Rows, Table
from minitransformer.data.tasks import Recall
from minitransformer.evaluation import decode_and_score
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.process import keep_freed_memory

SECONDS = {True: 10, False: 105}
TRAINING = {True: 3.0, False: 45.0}  # seconds of CPU time of each model
PEAKS = {"Transformer": 2e-3}  # of the learning rate: at 6e-3 it still guesses after 80 s
PAIRS = {True: (1, 2, 4, 8), False: (1, 2, 4, 8, 12, 16, 20, 26)}  # up to the last one in training
SEQUENCES = 300


def rows(options: Options) -> Rows:
    """The share of right answers of every model for each number of pairs."""
    work = partial(train_and_test, quick=options.quick, seed=options.seed)
    return {"models": train_all(work, [(name,) for name in MODELS])}


def train_and_test(name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> a row with the share of right answers for each number of pairs."""
    keep_freed_memory()
    task = Recall(PAIRS[quick][-1])
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick], seed, PEAKS.get(name, PEAK))
    scores = [score_at(model, count, seed) for count in PAIRS[quick]]
    about = {"model": name, "parameters": model.num_parameters(), "seconds": TRAINING[quick]}
    return {**about, **trained, "pairs": PAIRS[quick], "exact_match": scores}


def tables(rows: Rows) -> list[Table]:
    """One line for each model."""
    cells = [
        [row["model"], f"{row['steps']:,}", *(f"{score:.2f}" for score in row["exact_match"])] for row in rows["models"]
    ]
    title = f"right answers by pairs, at most {PARAMETERS:,} parameters; a guess is right in 0.10"
    return [Table(title, ["model", "steps", *map(str, rows["models"][0]["pairs"])], cells)]


def findings(rows: Rows) -> list[str]:
    """What each model finds among the most pairs."""
    return [
        f"{row['model']}: {row['exact_match'][-1]:.2f} of the answers are right with {row['pairs'][-1]} pairs."
        for row in rows["models"]
    ]


def draw(rows: Rows) -> Figure:
    """The share of right answers of every model over the number of pairs."""
    figure, axis = pyplot().subplots()
    for color, row in zip(COLORS, rows["models"], strict=False):
        axis.plot(row["pairs"], row["exact_match"], "o-", color=color, markersize=4, label=row["model"])
    axis.axhline(0.1, color=GREY, linewidth=1, linestyle="--", label="a guess")
    axis.set_xticks(rows["models"][0]["pairs"])
    axis.set(
        title="Recall: the value of one of many keys, asked at the end",
        xlabel="key-value pairs in the source",
        ylabel="right answers, held out",
        ylim=(-0.03, 1.06),
    )
    axis.legend()
    return figure


def score_at(model: Any, pairs: int, seed: int) -> float:
    """The share of right answers to sources with so many pairs. Of one pair there are only 260 sources in all."""
    task = Recall(pairs)
    batch = task.batch(np.random.default_rng([seed, 6, pairs]), SEQUENCES, held_out=True, min_len=pairs + 1)
    return decode_and_score(model, batch)[1]
