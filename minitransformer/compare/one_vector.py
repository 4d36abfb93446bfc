"""Why one vector was not enough: copy and reverse, with equal numbers of parameters and equal training time.

Without attention, the whole source must fit into the state that the encoder ends with, however long it is. Attention
looks at the tokens themselves, so the longest source matters less. All models see sources of 1 to LONGEST letters.
"""

from functools import partial
from pathlib import Path
from typing import Any

from minitransformer.bench.lengths import score_at, train_all
from minitransformer.compare.figures import plot_one_vector
from minitransformer.compare.training import MODELS, PARAMETERS, make_model, train_for
from minitransformer.data import get_task
from minitransformer.system.process import keep_freed_memory

NAME = "one-vector"
DESCRIPTION = "copy and reverse by length: one fixed vector, additive and dot attention, Transformer"
SECONDS = {True: 15, False: 220}
TASKS = {True: ("reverse",), False: ("copy", "reverse")}
TRAINING = {True: 4.0, False: 40.0}  # seconds of CPU time of each model
LONGEST = {True: 8, False: 16}  # letters of a source in training
LENGTHS = {True: (2, 4, 6, 8, 10), False: (2, 4, 6, 8, 10, 12, 14, 16, 18, 20)}  # letters of a source in the tests
PROCESSES = 2


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Train and test all models, print a table, and draw one_vector.png into `directory` -> the numbers."""
    todo = [(task, name) for task in TASKS[quick] for name in MODELS]
    rows = train_all(partial(train_and_test, quick=quick, seed=seed), todo, PROCESSES)
    rows.sort(key=lambda row: todo.index((row["task"], row["model"])))
    lengths, longest = LENGTHS[quick], LONGEST[quick]
    print(
        f"exact match on 200 held-out sources of each length, trained on 1 to {longest} letters for "
        f"{TRAINING[quick]:.0f} s of CPU time,\nat most {PARAMETERS:,} parameters\n"
    )
    print(f"{'task':<9}{'model':<14}{'parameters':>11}{'steps':>8}" + "".join(f"{length:>6}" for length in lengths))
    for row in rows:
        scores = "".join(f"{score:>6.2f}" for score in row["exact_match"])
        print(f"{row['task']:<9}{row['model']:<14}{row['parameters']:>11,}{row['steps']:>8,}{scores}")
    figure = directory / "one_vector.png"
    plot_one_vector(rows, lengths, longest, figure)
    print(f"\nsaved {figure}")
    return {"lengths": lengths, "rows": rows}


def train_and_test(task_name: str, name: str, quick: bool, seed: int) -> dict[str, Any]:
    """Train one model -> a row with the share of exact answers at each length."""
    keep_freed_memory()
    task = get_task(task_name)
    task.max_len = LONGEST[quick]
    model = make_model(name, len(task.vocabulary), seed)
    trained = train_for(model, task, TRAINING[quick], seed)
    scores = [score_at(model, task_name, length, seed) for length in LENGTHS[quick]]
    return {
        "task": task_name,
        "model": name,
        "parameters": model.num_parameters(),
        **trained,
        "exact_match": scores,
    }
