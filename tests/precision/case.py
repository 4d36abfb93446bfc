"""One hard input of one function: its arrays, how to run the function on them, and what is right."""

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Case(NamedTuple):
    """A hard input; the table has a row for the output and one for the gradient of each array.

    `inputs` gives the arrays for a format, in float64: they are rounded to the format afterwards. A function that takes
    no arrays has the numbers that it computes by itself here, as numbers of mpmath.
    """

    function: str
    hard: str  # the input in words
    inputs: Callable[[type], dict[str, np.ndarray]]
    run: Callable[..., Any]  # of the arrays -> y, and a function of dy -> the gradients, or None
    define: Callable[..., Any]  # of arrays of Exact numbers -> y
    units: tuple[str, str]  # of y and of the gradients: entry, terms, array or one; see docs/floating-point.md
    long: bool = False  # takes more than about a second
    constants: tuple[str, ...] = ()  # arrays that get no gradient

    @property
    def name(self) -> str:
        return f"{self.function}, {self.hard}"

    def rng(self, purpose: str) -> np.random.Generator:
        """The same numbers on every machine, whatever the other cases are."""
        return np.random.default_rng(zlib.crc32(f"{self.name}, {purpose}".encode()))
