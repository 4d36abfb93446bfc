"""Where a learner's function goes in the library, for training with one's own."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Replacement:
    """A function of an exercise in the place of one of the library's."""

    original: Any  # the library's function, as others import it; of a method, the function in its class
    adapt: Any  # adapt(the learner's function) -> a function that is called as the original is
    owner: Any = None  # the class, of a method
