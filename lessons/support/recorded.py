"""What a lesson measures with a model that not every reader has: measured where the model is, and else recorded.

    measured = Recorded(lesson, folder is not None)
    shares = measured("shares", lambda: look(sentences))

Without the model `measured` returns what the last full run with it has found: support/NN_name.json. Each full run with
the model leaves its numbers in runs/lessons/full/NN_name_numbers.json, from where they are copied by hand.
"""

import json
from collections.abc import Callable
from typing import Any

from support.lab import LESSONS, RECORDS, Lesson

import numpy as np

from minitransformer.system.files import atomic_write


class Recorded:
    """Measures, or returns what was measured."""

    def __init__(self, lesson: Lesson, measures: bool) -> None:
        self.measures, self.path = measures, RECORDS / f"{lesson.name}_numbers.json"
        self.recorded = json.loads((LESSONS / "support" / f"{lesson.name}.json").read_text("utf-8"))
        self.found: dict[str, Any] = {}

    def __call__(self, name: str, measure: Callable[[], Any]) -> np.ndarray:
        """What `measure` returns, an array, a number or a list of words, or else what was recorded as `name`."""
        if not self.measures:
            return np.array(self.recorded[name])
        value = np.asarray(measure())
        rounded = value if value.dtype.kind == "U" else np.vectorize(lambda number: float(f"{number:.6g}"))(value)
        self.found[name] = rounded.tolist()
        with atomic_write(self.path) as partial:
            partial.write_text(json.dumps(self.found) + "\n", "utf-8")
        return value


def interval(values: np.ndarray) -> list[float]:
    """The mean, and between which numbers it lies in 95 of 100 samples of the sentences, drawn with replacement."""
    draws = np.random.default_rng(0).integers(len(values), size=(2000, len(values)))
    return [values.mean(), *np.quantile(values[draws].mean(axis=1), (0.025, 0.975))]
