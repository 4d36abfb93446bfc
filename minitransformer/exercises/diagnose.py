"""From a learner's function to the mistake in it.

The checks, in this order: the function exists, runs, returns arrays of the right kind, and does not change its inputs;
the given forward still gives the right result; the shapes are right; the numbers are right. If they are wrong, the
diagnosis says where and by which factor, whether the function is linear in dy, as every backward is, which laws it
breaks, and which known mistakes give the same numbers.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.exercises.calling import StillOpenError, as_arrays, call, crash
from minitransformer.exercises.clues import (
    place_clue,
    ratio_clue,
    shape_clue,
    worst_clue,
    wrong_entries,
)
from minitransformer.exercises.exercise import Exercise, Mistake, Output, Problem, Task, load
from minitransformer.gradcheck import relative_error

SEEDS = (0, 1, 2)  # of the problems that a function is tested on
SAME = 1e-7  # results whose relative difference is less than this are the same


@dataclass(frozen=True)
class Diagnosis:
    """The result of checking one function."""

    function: str
    status: str  # "passed", "open" (still the stub) or "wrong"
    # {name of an output: relative error, or None if the shape is wrong}
    outputs: dict[str, float | None] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()  # names of the outputs that are wrong
    clues: tuple[str, ...] = ()  # sentences
    mistakes: tuple[tuple[str, str], ...] = ()  # (name, question) of the known mistakes that explain it


class Trial(NamedTuple):
    """One call that returned, with all that is needed to judge its results."""

    exercise: Exercise
    task: Task
    problem: Problem
    outputs: tuple[np.ndarray, ...]  # as the function returned them, as arrays
    observed: tuple[np.ndarray, ...]  # the arrays that are compared with the expected ones
    repeat: Callable[[np.ndarray], tuple[np.ndarray, ...] | None]  # repeat(dy) calls the function again


def diagnose(exercise: Exercise, path: Path, seeds: Sequence[int] = SEEDS) -> list[Diagnosis]:
    """Check the file at `path`: one diagnosis for each function that the learner writes."""
    given = load(exercise.path, "given")
    try:
        mine = load(path, "mine")
    except Exception as error:  # a learner's file may raise anything
        complaint = f"the file does not run: {crash(error, path)}"
        return [Diagnosis(task.function, "wrong", clues=(complaint,)) for task in exercise.tasks]
    return [diagnose_task(exercise, task, mine, given, path, seeds) for task in exercise.tasks]


def diagnose_task(
    exercise: Exercise, task: Task, mine: Any, given: Any, path: Path, seeds: Sequence[int] = SEEDS
) -> Diagnosis:
    """Test one function on a problem for each seed, until one fails.

    `mine` has the functions of the learner's file as attributes, `given` those of the file as it is handed out.
    """
    function = getattr(mine, task.function, None)
    if not callable(function):
        return Diagnosis(task.function, "wrong", clues=(f"there is no function {task.function} in the file any more",))
    worst: dict[str, float | None] = {}
    for seed in seeds:
        problem = task.make(np.random.default_rng(seed), given)
        try:
            args, broken = own_args(task, problem, mine, path)
            outputs, complaint = (None, broken) if broken else call(function, args, task, path)
        except StillOpenError as stub:
            return Diagnosis(task.function, "open", clues=(str(stub),))
        if complaint or outputs is None:
            return Diagnosis(task.function, "wrong", clues=(complaint or "",))

        def repeat(dy: np.ndarray, args: tuple = args) -> tuple[np.ndarray, ...] | None:
            try:
                return call(function, (dy, *args[1:]), task, path).outputs
            except StillOpenError:
                return None

        diagnosis = judge(Trial(exercise, task, problem, outputs, observe(task, problem, outputs), repeat))
        if diagnosis.status != "passed":
            return diagnosis
        worst = {name: max(error or 0.0, worst.get(name) or 0.0) for name, error in diagnosis.outputs.items()}
    return Diagnosis(task.function, "passed", worst)


def own_args(task: Task, problem: Problem, mine: Any, path: Path) -> tuple[tuple, str]:
    """The problem's arguments, with the cache of the learner's copy of the forward -> (args, complaint or "")."""
    forward = getattr(mine, task.forward, None) if task.forward else None
    if forward is None:
        return problem.args, ""
    try:
        y, cache = forward(**problem.inputs)
        wrong = np.shape(y) != np.shape(problem.y) or wrong_entries(np.asarray(y), problem.y, task.tolerance).any()
    except Exception as error:
        return (), f"the given function {task.forward} fails now: {crash(error, path)}"
    if wrong:
        return (), f"the given function {task.forward} no longer returns what it did: undo your changes to it"
    return (problem.args[0], cache), ""


def observe(task: Task, problem: Problem, outputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The arrays that are compared with the expected ones: `task.observe(outputs)` if it is given, else the outputs."""
    if task.observe is None:
        return outputs
    observed, complaint = as_arrays(task.observe(outputs, problem), task.outputs)
    if observed is None:
        raise AssertionError(f"{task.function}: what is observed is wrong: {complaint}")
    return observed


def judge(trial: Trial) -> Diagnosis:
    """Compare the results with the expected ones, and collect all clues."""
    task, problem = trial.task, trial.problem
    errors: dict[str, float | None] = {}
    clues: list[str] = []
    wrong: list[str] = []
    for output, got, expected in zip(task.outputs, trial.observed, problem.expected, strict=True):
        expected = np.asarray(expected, dtype=np.float64)
        fits = got.shape == expected.shape
        errors[output.name] = relative_error(got, expected) if fits else None
        if not fits or wrong_entries(got, expected, task.tolerance).any():
            wrong.append(output.name)
            clues += (
                clues_on_one(output, got, expected, problem, task) if fits else [shape_clue(got, expected, output.name)]
            )
    if not wrong:
        return Diagnosis(task.function, "passed", errors)
    clues += linearity_clues(trial)
    if None not in errors.values():  # laws are about arrays of the right shapes
        clues += broken_laws(trial)
    mistakes = known_mistakes(trial, wrong)
    if not mistakes:
        clues.append("this is not one of the known mistakes")
    return Diagnosis(task.function, "wrong", errors, tuple(wrong), tuple(clues), mistakes)


def clues_on_one(output: Output, got: np.ndarray, expected: np.ndarray, problem: Problem, task: Task) -> list[str]:
    """Clues from one wrong output of the right shape -> [sentence]."""
    if not np.isfinite(got).all():
        return [f"{output.name} has {np.count_nonzero(~np.isfinite(got))} entries that are infinite or NaN"]
    wrong = wrong_entries(got, expected, task.tolerance)
    sizes = {
        letter: float(size)
        for one, array in zip(task.outputs, problem.expected, strict=True)
        for letter, size in zip(one.axes, np.shape(array), strict=True)
    }
    found = [worst_clue(got, expected, output.name), place_clue(wrong, output.axes, problem.places, output.name)]
    if not got.any():
        found.append(f"{output.name} is 0 everywhere")
    else:
        found.append(ratio_clue(got, expected, problem.ratios, sizes))
    return [clue for clue in found if clue]


def linearity_clues(trial: Trial) -> list[str]:
    """Every backward is linear in dy: 0 gives 0, and twice as much gives twice as much -> [sentence]."""
    if not trial.task.linear:
        return []
    dy = trial.problem.args[0]
    at_zero, doubled = trial.repeat(np.zeros_like(dy)), trial.repeat(2.0 * dy)
    if at_zero is None or doubled is None:
        return []
    clues = []
    for output, once, zero, twice in zip(trial.task.outputs, trial.outputs, at_zero, doubled, strict=True):
        if np.array_equal(once, twice) and once.any():
            clues.append(f"{output.name} does not depend on dy, the gradient that comes in")
        elif zero.any():
            clues.append(f"{output.name} is not 0 when dy is 0: something is added that does not come from dy")
        elif once.shape == twice.shape and wrong_entries(twice, 2.0 * once, 1e-9).any():
            clues.append(f"{output.name} does not double when dy doubles: dy must enter once, and linearly")
    return clues


def broken_laws(trial: Trial) -> list[str]:
    """Laws that hold for every right answer but not for this one -> [sentence]."""
    laws = trial.task.invariants
    return [f"this should hold but does not: {law.name}" for law in laws if not law.holds(trial.outputs, trial.problem)]


def known_mistakes(trial: Trial, wrong: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """The known mistakes that give exactly these results -> ((name, question), ...).

    If one mistake explains all outputs, it is the only one. Otherwise each wrong output may have its own mistake: the
    mistake that explains the most outputs comes first, then those that explain the others.
    """
    names = [output.name for output in trial.task.outputs]
    expected = dict(zip(names, trial.problem.expected, strict=True))
    partly: list[tuple[Mistake, list[str]]] = []
    for mistake in trial.task.mistakes:
        results = results_of(mistake, trial)
        if results is None:
            continue
        theirs = dict(zip(names, results, strict=True))
        same = {name for name, got in zip(names, trial.observed, strict=True) if alike(got, theirs[name])}
        if len(same) == len(names):
            return ((mistake.name, mistake.question),)
        partly.append(
            (mistake, [n for n in wrong if n in same and not alike(theirs[n], np.asarray(expected[n], float))])
        )
    chosen, left = [], set(wrong)
    for mistake, explained in sorted(partly, key=lambda pair: -len(pair[1])):
        if left.intersection(explained):
            left.difference_update(explained)
            chosen.append((f"{', '.join(explained)}: {mistake.name}", mistake.question))
    return tuple(chosen)


def results_of(mistake: Mistake, trial: Trial) -> tuple[np.ndarray, ...] | None:
    """What a known mistake gives on the same problem -> observed arrays, or None if it cannot be called."""
    answer = trial.exercise.mistaken(trial.task, mistake)
    try:
        with np.errstate(all="ignore"):
            outputs, _ = as_arrays(answer(*copy.deepcopy(trial.problem.args)), trial.task.outputs)
            return None if outputs is None else observe(trial.task, trial.problem, outputs)
    except Exception:  # some mistakes raise exceptions
        return None


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are the same up to rounding."""
    if a.shape != b.shape:
        return False
    if not np.isfinite(a).all():
        return np.array_equal(np.isfinite(a), np.isfinite(b))
    return not wrong_entries(a, b, SAME).any()
