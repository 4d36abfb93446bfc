"""The problems that a function is tried on: one for each of its task's sizes, and one in float32."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minitransformer.exercises.exercise import Problem, Task

SINGLE = {"float64": "float32", "int64": "int32"}
TOLERANCE_32 = 1e-3  # of results from float32 inputs


class Case(NamedTuple):
    """What decides a problem."""

    seed: int
    sizes: dict[str, int]
    single: bool = False  # whether its arrays are float32 and int32 instead of float64 and int64

    def __str__(self) -> str:
        sizes = ", ".join(f"{letter} = {size}" for letter, size in self.sizes.items())
        return "float32 inputs" if self.single else sizes


def cases_of(task: Task) -> list[Case]:
    """All cases that a function must pass. The first is the one on which the known mistakes are recognized."""
    cases = [Case(seed, sizes) for seed, sizes in enumerate(task.sizes)]
    return [*cases, Case(0, task.sizes[0], single=True)] if task.float32 else cases


def make_problem(task: Task, given: Any, case: Case) -> Problem:
    """The problem of a case. Its expected results are those for float64 inputs."""
    problem = task.make(np.random.default_rng(case.seed), given, **case.sizes)
    if not case.single:
        return problem
    inputs, args = to_single(problem.inputs), to_single(problem.args)
    if task.forward is None:
        return dataclasses.replace(problem, inputs=inputs, args=args)
    y, cache = getattr(given, task.forward)(**inputs)
    return dataclasses.replace(problem, inputs=inputs, args=(args[0], cache), y=y)


def to_single(value: Any) -> Any:
    """`value` with float32 and int32 for float64 and int64, in nested tuples, lists and dictionaries.

    A function becomes one that returns such arrays.
    """
    if isinstance(value, tuple | list):
        return type(value)(to_single(item) for item in value)
    if isinstance(value, dict):
        return {key: to_single(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return value.astype(SINGLE.get(value.dtype.name, value.dtype))
    return _returning_single(value) if callable(value) else value


def _returning_single(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **options: to_single(function(*args, **options))


def has_floats(value: Any) -> bool:
    """Whether there is an array of floats, or a function, in nested tuples, lists and dictionaries."""
    if isinstance(value, tuple | list):
        return any(has_floats(item) for item in value)
    if isinstance(value, dict):
        return has_floats(list(value.values()))
    return callable(value) or (isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f")
