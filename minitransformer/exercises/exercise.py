"""What an exercise is: functions to be written, problems to try them on, and the mistakes that are known.

The right answer is nowhere in here. What is right is found by derivatives, by measuring, or by the library itself; what
is written down are wrong answers, so that they can be named.
"""

import importlib.util
import re
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from minitransformer.curriculum import FOLDER
from minitransformer.gradcheck import complex_step

EXERCISES = FOLDER / "exercises"
HEADER = re.compile(r'^"""Exercise (\d\d): (.+)\.\n\nDifficulty ([1-5]) of 5, (\d+) minutes\b')


class Output(NamedTuple):
    """One thing that a function returns: its name, and a letter for each of its axes, such as "BTC"; "" is a number."""

    name: str
    axes: str


@dataclass(frozen=True)
class Problem:
    """One trial of a function."""

    args: tuple  # what it is called with; after a forward that is given: (dy, cache)
    expected: tuple  # what it must return, one array for each output
    inputs: dict = field(default_factory=dict)  # of the forward that made the cache, by name
    y: Any = None  # what that forward returned
    ratios: dict = field(default_factory=dict)  # {"sqrt(d_k)": 2.236}: factors by which an answer may be off
    places: dict = field(
        default_factory=dict
    )  # {"at ids that come twice": {"dE": boolean array}}: where it may be wrong


class Mistake(NamedTuple):
    """A wrong answer that people give."""

    name: str  # what is wrong, as half a sentence: "the scores' scale is missing"
    question: str  # whose answer is the remedy
    answer: Any  # a function as the learner would have written it


class Invariant(NamedTuple):
    """Something that is true of every right answer, and needs no formula."""

    name: str  # "each row of ds sums to 0"
    holds: Any  # holds(outputs, problem) -> bool


@dataclass(frozen=True)
class Task:
    """One function of an exercise's file, to be written by the learner."""

    function: str  # its name there
    outputs: tuple  # of Output
    make: Any  # make(rng, given) -> Problem, where `given` is the module of the file as it is handed out
    mistakes: tuple = ()
    forward: str | None = None  # the given function that makes the cache; what it returns is for its backward alone
    linear: bool = False  # in its first argument, as every backward is in dy
    invariants: tuple = ()
    observe: Any = None  # observe(outputs, problem) -> what to compare with what is expected, if not the outputs
    tolerance: float = 1e-9


@dataclass(frozen=True)
class Exercise:
    """A file of lessons/exercises, and how it is checked."""

    name: str  # of the file, without .py: "06_attention_backward"
    tasks: tuple
    hints: tuple  # three: a question to ask oneself; which path is missing; the formula's shape
    see: str  # "lesson 06, part 3"
    replaces: dict = field(default_factory=dict)  # {function of the file: Replacement}, for training with one's own

    @property
    def lesson(self):
        """The number of its lesson."""
        return self.name[:2]

    @property
    def path(self):
        """The file as it is handed out."""
        return EXERCISES / f"{self.name}.py"

    def about(self):
        """What the file's header says -> (title, difficulty of 5, minutes)."""
        match = HEADER.search(self.path.read_text("utf-8"))
        if not match or match[1] != self.lesson:
            raise ValueError(f"{self.path} has no header of an exercise")
        return match[2], int(match[3]), int(match[4])


def load(path, name="exercise"):
    """Run the file at `path` -> its module. Whatever the file raises comes out."""
    source = Path(path).read_text("utf-8")
    module = ModuleType(name)
    module.__file__ = str(path)
    module.__spec__ = importlib.util.spec_from_loader(name, loader=None)
    exec(compile(source, str(path), "exec"), module.__dict__)
    return module


def backward_problem(forward, inputs, wrt, rng, **more):
    """A problem for the backward of `forward(**inputs) -> (y, cache)`: the gradients of sum(dy y), by complex step.

    `wrt` names the inputs whose gradients are asked for, in order. dy is drawn; `more` are further fields of Problem.
    """
    y, cache = forward(**inputs)
    dy = rng.standard_normal(np.shape(y))

    def gradient(name):
        return complex_step(lambda value: np.sum(dy * forward(**{**inputs, name: value})[0]), inputs[name])

    return Problem((dy, cache), tuple(gradient(name) for name in wrt), dict(inputs), y, **more)
