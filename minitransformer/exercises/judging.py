"""Judging what a learner's function returned: right or wrong, where, by which factor, and which mistake explains it."""

import contextlib
import copy
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from minitransformer.exercises.calling import Called, as_arrays
from minitransformer.exercises.exercise import Exercise, Mistake, Problem, Task
from minitransformer.gradcheck.judge.clues import (
    PRECISE,
    Output,
    error_of,
    linearity_clue,
    path_clue,
    place_clue,
    precision_clue,
    ratio_clue,
    shape_clue,
    transpose_clue,
    worst_clue,
    wrong_entries,
)

STATUSES = ("passed", "open", "wrong")  # "open": still the stub
SAME = 1e-7  # results whose relative difference is less than this are the same


@dataclass(frozen=True)
class Diagnosis:
    """The result of checking one function."""

    function: str
    status: str  # one of STATUSES
    # {name of an output: relative error, or None if the shape is wrong}
    outputs: dict[str, float | None] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()  # names of the outputs that are wrong
    clues: tuple[str, ...] = ()  # sentences; if it passed, remarks
    mistakes: tuple[tuple[str, str], ...] = ()  # (name, question) of the known mistakes that explain it


def failed(exercise: Exercise, clue: str) -> list[Diagnosis]:
    """The same clue for every function of the exercise."""
    return [Diagnosis(task.function, "wrong", clues=(clue.strip(),)) for task in exercise.tasks]


class Attempt(NamedTuple):
    """A problem, and what the function made of it: the arrays that are compared with the expected ones."""

    problem: Problem
    observed: tuple[np.ndarray, ...]


class Trial(NamedTuple):
    """One call that returned, with everything needed to judge its results."""

    exercise: Exercise
    task: Task
    attempt: Attempt
    called: Called
    repeat: Callable[[np.ndarray], tuple[np.ndarray, ...] | None]  # repeat(dy) calls the function again
    others: Callable[[], list[Attempt]] | None  # further attempts by which mistakes are recognized; None: do not try
    upstream: str  # the name of the function's first argument, such as "dy"
    tolerance: float

    @property
    def problem(self) -> Problem:
        """The problem of the attempt."""
        return self.attempt.problem


def observe(task: Task, problem: Problem, outputs: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """The arrays that are compared with the expected ones: `task.observe(outputs)` if it is given, else the outputs."""
    if task.observe is None:
        return outputs
    try:
        observed = as_arrays(task.observe(outputs, problem), task.outputs, single=True)
    except Exception:  # the outputs may have any shape
        return outputs
    if observed.outputs is None:
        raise AssertionError(f"{task.function}: what is observed is wrong: {observed.complaint}")
    return observed.outputs


def judge(trial: Trial) -> Diagnosis:
    """Compare the results with the expected ones, and collect all clues."""
    task, faults = trial.task, dict(trial.called.faults)
    pairs = zip(trial.attempt.observed, trial.problem.expected, strict=True)
    results = [(got, np.asarray(expected, dtype=np.float64)) for got, expected in pairs]
    errors = {
        output.name: error_of(got, expected) if got.shape == expected.shape else None
        for output, (got, expected) in zip(task.outputs, results, strict=True)
    }
    off = [
        (output, got, expected)
        for output, (got, expected) in zip(task.outputs, results, strict=True)
        if errors[output.name] is None or wrong_entries(got, expected, trial.tolerance).any()
    ]
    off_names = [output.name for output, _, _ in off]
    wrong = [output.name for output in task.outputs if output.name in (*faults, *off_names)]
    if not wrong:
        return Diagnosis(task.function, "passed", errors, clues=trial.called.remarks)
    clues = list(faults.values())
    for output, got, expected in off:
        clues += clues_on_one(output, got, expected, trial)
    imprecise = {name: error for name in off_names if (error := errors[name]) is not None and error < PRECISE}
    if imprecise:
        clues.append(precision_clue(imprecise))
    explained = len(imprecise) == len(off)  # all that is wrong is the kind or the precision of the numbers
    if not explained:
        clues += linearity_clues(trial)
        if None not in errors.values() and trial.tolerance < PRECISE:  # laws are about right shapes, and exact numbers
            clues += broken_laws(trial)
    mistakes: tuple[tuple[str, str], ...] = ()
    if off and trial.others is not None:
        mistakes = known_mistakes(trial, wrong, [trial.attempt, *trial.others()])
        clues += [] if mistakes or explained else ["this is not one of the known mistakes"]
    return Diagnosis(task.function, "wrong", errors, tuple(wrong), tuple(clues), mistakes)


def clues_on_one(output: Output, got: np.ndarray, expected: np.ndarray, trial: Trial) -> list[str]:
    """Clues from one wrong output -> [sentence]."""
    task, problem = trial.task, trial.problem
    if got.shape != expected.shape:
        return [shape_clue(got, expected, output)]
    if not np.isfinite(got).all():
        return [f"{output.name} has {np.count_nonzero(~np.isfinite(got))} entries that are infinite or NaN"]
    if error_of(got, expected) < PRECISE:
        return [worst_clue(got, expected, output)]
    wrong = wrong_entries(got, expected, trial.tolerance)
    sizes = {
        letter: float(size)
        for one, array in zip(task.outputs, problem.expected, strict=True)
        for letter, size in zip(one.axes, np.shape(array), strict=True)
    }
    found = [worst_clue(got, expected, output), place_clue(wrong, output, problem.places)]
    if not got.any():
        found.append(f"{output.name} is 0 everywhere")
    elif output.kind == "float":
        found.append(ratio_clue(got, expected, problem.ratios, sizes))
        found.append(transpose_clue(got, expected, output))
        found.append(path_clue(output.name, got, expected, problem.args[0]) if task.linear else None)
    return [clue for clue in found if clue]


def linearity_clues(trial: Trial) -> list[str]:
    """Every backward is linear in dy: 0 gives 0, twice as much gives twice as much, and −dy the opposite -> [sentence].

    The sentences call dy what the function calls its first argument.
    """
    outputs = trial.called.outputs or ()
    if not trial.task.linear or not all(np.isfinite(output).all() for output in outputs):
        return []
    dy, name = trial.problem.args[0], trial.upstream
    at_zero, doubled, opposite = (trial.repeat(factor * dy) for factor in (0.0, 2.0, -1.0))
    if at_zero is None or doubled is None or opposite is None:
        return []
    results = zip(trial.task.outputs, outputs, at_zero, doubled, opposite, strict=True)
    return [clue for output, *arrays in results if (clue := linearity_clue(output.name, name, *arrays))]


def broken_laws(trial: Trial) -> list[str]:
    """Laws that hold for every right answer but not for this one -> [sentence]."""
    outputs = trial.called.outputs or ()
    clues = []
    for law in trial.task.invariants:
        with contextlib.suppress(Exception):  # a law may fail on wrong numbers: that says nothing
            if not law.holds(outputs, trial.problem):
                clues.append(f"this should hold but does not: {law.name}")
    return clues


def known_mistakes(trial: Trial, wrong: Sequence[str], attempts: Sequence[Attempt]) -> tuple[tuple[str, str], ...]:
    """The known mistakes that give exactly these results in all attempts -> ((name, question), ...).

    If one mistake explains all outputs, it is the only one. Otherwise each wrong output may have its own mistake: the
    mistake that explains the most outputs comes first, and of two that explain as many, the one that spoils fewer. If
    this takes more than two mistakes, or leaves an output unexplained, a pair made together is preferred.
    """
    names = [output.name for output in trial.task.outputs]
    partly: list[tuple[Mistake, list[str], int]] = []
    for mistake in trial.task.mistakes:
        same, spoilt = set(names), set()
        for problem, observed in attempts:
            if not same:
                break
            results = results_of((mistake,), trial, problem)
            for name, got, theirs, right in zip(names, observed, results or observed, problem.expected, strict=True):
                same -= set() if results and alike(got, theirs) else {name}
                spoilt |= set() if alike(theirs, np.asarray(right, float)) else {name}
        if len(same) == len(names):
            return ((mistake.name, mistake.question),)
        partly.append((mistake, [name for name in wrong if name in same & spoilt], len(spoilt)))
    chosen, left = [], set(wrong)
    for mistake, explained, _ in sorted(partly, key=lambda part: (-len(part[1]), part[2])):
        if left.intersection(explained):
            left.difference_update(explained)
            chosen.append((f"{', '.join(explained)}: {mistake.name}", mistake.question))
    pair = known_pair(trial, attempts) if left or len(chosen) > 2 else ()
    return pair or tuple(chosen)


def known_pair(trial: Trial, attempts: Sequence[Attempt]) -> tuple[tuple[str, str], ...]:
    """Two known mistakes that together give exactly these results in all attempts -> ((name, question), ...), or ().

    Both are made in one text, one after the other, in either order. Results that are 0 everywhere say too little, and
    those that are right up to rounding, too: no pair is named. Several pairs may give the same results. If all of them
    share a mistake, it comes first, and then the other one of the first pair: once the shared one is mended, the next
    check tells which other it was. If they share none, none is named.
    """
    results = [output for _, observed in attempts for output in observed]
    right = [np.asarray(output, float) for problem, _ in attempts for output in problem.expected]
    if not any(output.any() for output in results) or all(map(alike, results, right)):
        return ()
    pairs = [
        pair
        for pair in itertools.combinations(trial.task.mistakes, 2)
        if any(explains(order, trial, attempts) for order in (pair, pair[::-1]))
    ]
    shared = [mistake for mistake in (pairs[0] if pairs else ()) if all(mistake in pair for pair in pairs)]
    named = sorted(pairs[0], key=lambda mistake: mistake not in shared) if shared else ()
    return tuple((f"{number} of 2: {mistake.name}", mistake.question) for number, mistake in enumerate(named, 1))


def explains(mistakes: Sequence[Mistake], trial: Trial, attempts: Sequence[Attempt]) -> bool:
    """Whether these mistakes, made one after another, can be made and give exactly these results in all attempts."""
    with contextlib.suppress(ValueError, SyntaxError):
        return all(
            (results := results_of(mistakes, trial, problem)) and all(map(alike, observed, results))
            for problem, observed in attempts
        )
    return False


def results_of(mistakes: Sequence[Mistake], trial: Trial, problem: Problem) -> tuple[np.ndarray, ...] | None:
    """What known mistakes, made one after another, give on a problem -> observed arrays, or None if that fails."""
    answer = trial.exercise.mistaken(trial.task, *mistakes)
    try:
        with np.errstate(all="ignore"):
            outputs = as_arrays(answer(*copy.deepcopy(problem.args)), trial.task.outputs).outputs
            return None if outputs is None else observe(trial.task, problem, outputs)
    except Exception:  # some mistakes raise exceptions
        return None


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are the same up to rounding, with entries that are not finite in the same places."""
    if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
        return False
    a, b = a[np.isfinite(a)], b[np.isfinite(b)]
    return bool((np.abs(a - b) <= SAME * (np.abs(b).max(initial=0.0) or 1.0)).all())
