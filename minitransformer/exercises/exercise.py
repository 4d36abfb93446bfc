"""The parts of an exercise: functions to write, problems to test them on, and known mistakes.

Each exercise is a folder of lessons/exercises: exercise.py is the file that learners get, solution.py is a right
answer, and mistakes.py holds the rest. The checker never compares an answer with the solution. It computes the right
results from derivatives, from measurements, or with the library itself. The solution only serves to describe the known
mistakes: each of them is a small change of it.
"""

import ast
import functools
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from minitransformer.course import EXERCISES
from minitransformer.exercises.known import Listed
from minitransformer.gradcheck.judge.clues import Output
from minitransformer.system.files import read_bytes

HEADER = re.compile(
    r'^"""Exercise (?P<lesson>\d\d): (?P<title>.+)\.\n\n'
    r"Difficulty (?P<difficulty>[1-5]) of 5, (?P<minutes>\d+) minutes\. See (?P<see>lesson .+)\.\n\n"
)


@dataclass(frozen=True)
class Problem:
    """One test of a function."""

    args: tuple  # what it is called with; for the backward of a given forward: (dy, cache)
    expected: tuple  # what it must return, one array for each output
    inputs: dict[str, Any] = field(default_factory=dict)  # of the forward that made the cache: {name: value}
    y: Any = None  # what that forward returned
    ratios: dict[str, float] = field(default_factory=dict)  # {"sqrt(D)": 2.236}: factors an answer may be off by
    places: dict[str, dict[str, Any]] = field(default_factory=dict)  # {"where y is 0": {"dx": boolean array}}


@dataclass(frozen=True)
class Mistake(Listed):
    """A common wrong answer, written as a change of the solution."""

    id: str  # in the list of known mistakes, which has its name and its question
    changes: dict[str, str]  # {old text: new text}, made one after another; each old text must occur exactly once


class Invariant(NamedTuple):
    """A law that every right answer obeys. Checking it needs no formula."""

    name: str  # "each row of ds sums to 0"
    holds: Callable[[tuple, Problem], bool]  # holds(outputs, problem)


@dataclass(frozen=True)
class Task:
    """One function of an exercise's file, to be written by the learner.

    It is tried on one problem of each of the `sizes`, so an answer that contains a size as a number fails. All lengths
    of the first problem differ, so a wrong axis shows. The known mistakes are recognized on the first `rich` problems.
    """

    function: str  # its name there
    outputs: tuple[Output, ...]
    make: Callable[..., Problem]  # make(rng, given, **sizes); `given` is the module of the handed-out file
    sizes: tuple[dict[str, int], ...]  # ({"B": 2, "T": 3}, ...)
    mistakes: tuple[Mistake, ...] = ()
    forward: str | None = None  # the given function that makes the cache for this backward
    linear: bool = False  # whether it is linear in its first argument, as every backward is in dy
    invariants: tuple[Invariant, ...] = ()
    observe: Callable[..., Any] | None = None  # observe(outputs, problem) -> what to compare, if not the outputs
    tolerance: float = 1e-9
    rich: int = 1  # how many problems it takes to show every known mistake
    float32: bool = True  # whether it is also tried on float32 and int32 inputs; False if it takes no arrays


@dataclass(frozen=True)
class Replacement:
    """A learner's function that replaces one of the library's, for training with one's own layers."""

    original: Any  # the library's function or method
    adapt: Callable[..., Any]  # adapt(the learner's function) -> a function that is called like the original


@dataclass(frozen=True)
class Exercise:
    """A folder of lessons/exercises."""

    name: str  # of the folder: "06_attention_backward"
    tasks: tuple[Task, ...]
    hints: tuple[str, ...]  # three: a question to ask yourself; what is missing; the shapes in the formula
    replaces: dict[str, Replacement] = field(default_factory=dict)  # {function of the file: what it replaces}

    @property
    def lesson(self) -> str:
        """The number of its lesson, "06"."""
        return self.name[:2]

    @property
    def path(self) -> Path:
        """The file as it is handed out."""
        return EXERCISES / self.name / "exercise.py"

    @property
    def solution(self) -> str:
        """The text of a right answer: the functions to be written, without those that are given."""
        return (EXERCISES / self.name / "solution.py").read_text("utf-8")

    def about(self) -> tuple[str, int, int]:
        """What the file's header says -> (title, difficulty of 5, minutes)."""
        header = self._header()
        return header["title"], int(header["difficulty"]), int(header["minutes"])

    @property
    def see(self) -> str:
        """Where to read, as the file's header says: 'lesson 07, "How would you notice?"'."""
        return self._header()["see"]

    def _header(self) -> re.Match[str]:
        match = HEADER.search(self.path.read_text("utf-8"))
        if not match or match["lesson"] != self.lesson:
            raise ValueError(f"{self.path} has no header of an exercise")
        return match

    def mistaken(self, task: Task, *mistakes: Mistake) -> Callable[..., Any]:
        """The task's function with these mistakes, made one after another.

        Each change is made in the task's function, or elsewhere in the solution if its text does not occur there.
        Raises ValueError unless the text occurs exactly once. The message shows nothing of the solution.
        """
        text = self.solution
        for id, old, new in ((mistake.id, *change) for mistake in mistakes for change in mistake.changes.items()):
            function = _definition(text, task.function)
            within = function if old in function else text
            if within.count(old) != 1:
                raise ValueError(f"{self.name}: a change of the mistake {id!r} cannot be made exactly once")
            text = text.replace(within, within.replace(old, new))
        return getattr(_module(self.path.read_text("utf-8") + "\n\n" + text), task.function)


@functools.lru_cache(maxsize=512)
def _definition(text: str, name: str) -> str:
    """The source text of the function `name`, or "" if `text` does not define it."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_source_segment(text, node) or ""
    return ""


@functools.lru_cache(maxsize=512)
def _module(text: str) -> ModuleType:
    return run_source(text, "mistaken", "<known mistake>")


def load(path: Path | str, name: str = "exercise") -> ModuleType:
    """Run the file at `path` -> its module. Raises what the file raises."""
    return run_source(read_bytes(path), name, str(path))


def run_source(source: str | bytes, name: str, file: str) -> ModuleType:
    """Run a module's source -> the module, which is not in sys.modules. Bytes may declare their encoding."""
    module = ModuleType(name)
    module.__file__ = file
    module.__spec__ = importlib.util.spec_from_loader(name, loader=None)
    exec(compile(source, file, "exec"), module.__dict__)
    return module
