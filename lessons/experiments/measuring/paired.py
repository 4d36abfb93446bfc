"""Comparing models by seeds: training for a number of steps, results that survive an interruption, and intervals."""

import json
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.measuring.steps import make_training_step
from experiments.report import by_name
from minitransformer import cosine, mean_loss
from minitransformer.data.parsing import ParsingTask, bracket_f1
from minitransformer.evaluation import decode_and_score
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.training.batches import Batches

BATCH, WARM_UP, TESTED = 32, 100, 10**6  # all that are held out
# quantiles of Student's t: 97.5 % for 1, 2, 3 ... degrees of freedom
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The mean of up to ten values, such as differences paired by seed, and half of its 95 % interval.

    One value has none, and half is infinite.
    """
    mean, n = statistics.fmean(values), len(values)
    return mean, T[n - 2] * statistics.stdev(values) / n**0.5 if n > 1 else float("inf")


def plus_minus(values: Sequence[float], form: str = ".2f") -> str:
    """Such as "0.31 ± 0.04", the mean and half of its 95 % interval; "0.31 in one seed" without an interval."""
    mean, half = interval(values)
    return f"{mean:{form}} ± {half:{form.lstrip('+')}}" if half < float("inf") else f"{mean:{form}} in one seed"


def spread(values: Any, form: str) -> str:
    """Such as "0.31 (0.28 to 0.33)", the mean, the lowest and the highest value; one number if all are the same."""
    low, high = min(values), max(values)
    mean = f"{statistics.fmean(values):{form}}"
    return mean if low == high else f"{mean} ({low:{form}} to {high:{form}})"


def judged(mean: float, half: float, below: str = "better", above: str = "worse", neither: str = "undecided") -> str:
    """What the interval mean ± half says: `neither` if it includes 0, and else which side of 0 it is on."""
    return neither if abs(mean) <= half else below if mean < 0 else above


def differences(
    rows: Sequence[dict[str, Any]], key: str, name: str, base: str, bases: Sequence[dict[str, Any]] = ()
) -> dict[str, list[float]]:
    """{name: by how much `key` differs from that of the rows called `base`, paired by seed}, without the base.

    The base is among the rows, unless it is among `bases`.
    """
    of_seed = {row["seed"]: row[key] for row in bases or rows if row[name] == base}
    groups = {other: group for other, group in by_name(rows, name).items() if other != base}
    return {
        other: [row[key] - of_seed[row["seed"]] for row in group if row["seed"] in of_seed]
        for other, group in groups.items()
    }


def compared(what: str, after: Sequence[float], before: Sequence[float], form: str = ".2f") -> str:
    """A sentence on values that are paired by seed, and whether the interval of their difference excludes 0."""
    gains = [a - b for a, b in zip(after, before, strict=True)]
    mean, half = interval(gains)
    verdict = judged(mean, half, "less", "more")
    means = f"{statistics.fmean(after):{form}} against {statistics.fmean(before):{form}}"
    return f"{what}: {means} ({plus_minus(gains, form)}: {verdict})."


def collect(path: Path, todo: Sequence[tuple], work: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """[work(*job) for job in todo]. Each row is saved in `path` at once, and a row that is there is not measured again.

    So a run that was interrupted goes on where it stopped; `running` deletes the file at the end.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.read_text("utf8").splitlines() if path.exists() else []
    known = {json.dumps(line["job"]): line["row"] for line in map(json.loads, lines)}
    for job in tqdm(todo, unit="training"):
        if json.dumps(job) not in known:
            row = known[json.dumps(job)] = json.loads(json.dumps(work(*job)))
            with path.open("a", encoding="utf8") as file:
                file.write(json.dumps({"job": job, "row": row}) + "\n")
    return [known[json.dumps(job)] for job in todo]


def train_steps(
    model: Any,
    task: Any,
    steps: int,
    seed: int,
    peak: float,
    smoothing: float = 0.0,
    *,
    batch: int | None = None,
    warmup: int | None = None,
) -> dict[str, Any]:
    """Train on one thread -> {"steps", "seconds" of CPU time, "train_loss" of the last 50 steps}.

    The learning rate rises to `peak` in WARM_UP steps, or a tenth of all if that is less, and falls linearly to 0. With
    `warmup`, it rises in so many steps, and falls as a cosine does. The default of `batch` is BATCH.
    """
    batches, losses = Batches(task, batch or BATCH, seed), []
    rising = min(WARM_UP, max(1, steps // 10))
    with limit_threads(1):
        step, start = make_training_step(model, smoothing, threads=1), time.process_time()
        for number in range(1, steps + 1):
            rate = peak * min(number / rising, (steps + 1 - number) / (steps + 1 - rising))
            losses.append(float(step(next(batches), rate if warmup is None else cosine(number, steps, peak, warmup))))
        seconds = time.process_time() - start
    return {"steps": steps, "seconds": seconds, "train_loss": float(np.mean(losses[-50:]))}


def score(model: Any, task: ParsingTask, tested: int = TESTED) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    """{"loss" in nats a token, "exact", "f1"} on held-out examples, and (text, answer, tree) of each of them."""
    batch = task.held_out_batch(np.random.default_rng(0), tested)
    with limit_threads(1):
        decoded, exact = decode_and_score(model, batch)
        parts = [type(batch)(*(ids[i : i + 100] for ids in batch)) for i in range(0, len(batch.source), 100)]
        loss = mean_loss(model, parts)
    texts = [tuple(map(task.decode, row)) for row in zip(batch.source, decoded, batch.target_out, strict=True)]
    f1 = bracket_f1(*([text[i].split() for text in texts] for i in (1, 2)))
    return {"loss": loss, "exact": exact, "f1": f1}, texts
