"""From a learner's function to the mistake in it.

The checks, in this order: the function exists, runs, returns arrays of the right kind, and does not change its inputs;
the given forward still gives the right result; the shapes are right; the numbers are right, for inputs of all sizes and
in float32. If the numbers are wrong, the diagnosis says where and by which factor. It says whether the function is
linear in dy, as every backward is, which laws it breaks, and which known mistakes give the same numbers.
"""

import copy
import inspect
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.exercises.calling import Called, StillOpenError, call
from minitransformer.exercises.cases import TOLERANCE_32, Case, cases_of, make_problem
from minitransformer.exercises.exercise import Exercise, Problem, Task, load, run_source
from minitransformer.exercises.judging import Attempt, Diagnosis, Trial, failed, judge, observe
from minitransformer.gradcheck.judge.clues import crash, wrong_entries
from minitransformer.system.files import read_bytes
from minitransformer.system.terminal import error_message


def diagnose(exercise: Exercise, path: Path) -> list[Diagnosis]:
    """Check the file at `path`: one diagnosis for each function that the learner writes."""
    given = load(exercise.path, "given")
    try:
        source = read_bytes(path)
    except OSError as error:
        return failed(exercise, error_message(error))
    try:
        mine = run_source(source, "mine", str(path))
    except (Exception, SystemExit) as error:  # a learner's file may raise anything
        return failed(exercise, f"the file does not run: {crash(error, str(path).__eq__)}")
    return [diagnose_task(exercise, task, mine, given, path) for task in exercise.tasks]


def diagnose_task(
    exercise: Exercise, task: Task, mine: Any, given: Any, path: Path, cases: Sequence[Case] | None = None
) -> Diagnosis:
    """Try one function on one problem after the other, until it fails. By default these are all of the task's cases.

    `mine` has the functions of the learner's file as attributes, `given` those of the file as it is handed out.
    """
    if not callable(getattr(mine, task.function, None)):
        return Diagnosis(task.function, "wrong", clues=(f"there is no function {task.function} in the file any more",))
    answer = Answer(exercise, task, mine, given, path)
    cases = cases_of(task) if cases is None else cases
    errors: dict[str, float | None] = {}
    remarks: list[str] = []
    try:
        for number, case in enumerate(cases):
            diagnosis = answer.diagnose(case, cases[: task.rich] if number < task.rich else ())
            if diagnosis.status == "wrong" and number >= task.rich:
                return replace(diagnosis, clues=(answer.where_it_fails(case, cases[0]), *diagnosis.clues))
            if diagnosis.status == "wrong":
                return diagnosis
            remarks += diagnosis.clues
            if not case.single:
                errors = {name: max(error or 0, errors.get(name) or 0) for name, error in diagnosis.outputs.items()}
    except StillOpenError as stub:
        return Diagnosis(task.function, "open", clues=(str(stub),))
    return Diagnosis(task.function, "passed", errors, clues=tuple(dict.fromkeys(remarks)))


class Answer(NamedTuple):
    """A learner's function, with everything needed to try it. The methods raise StillOpenError for a stub."""

    exercise: Exercise
    task: Task
    mine: Any
    given: Any
    path: Path

    def diagnose(self, case: Case, rich: Sequence[Case] = ()) -> Diagnosis:
        """Try the function in one case. Known mistakes are recognized by what it returns in the `rich` ones."""
        task = self.task
        problem, args, called = self.attempt(case)
        if called.outputs is None:
            return Diagnosis(task.function, "wrong", clues=(called.complaint,))

        def repeat(dy: np.ndarray) -> tuple[np.ndarray, ...] | None:
            return self.call((dy, *args[1:]), case).outputs

        def others() -> list[Attempt]:
            tries = [self.attempt(other) for other in rich if other is not case]
            return [Attempt(p, observe(task, p, c.outputs)) for p, _, c in tries if c.outputs is not None]

        upstream = next(iter(inspect.signature(getattr(self.given, task.function)).parameters))
        attempt = Attempt(problem, observe(task, problem, called.outputs))
        recognise = others if rich else None
        return judge(Trial(self.exercise, task, attempt, called, repeat, recognise, upstream, tolerance_of(task, case)))

    def attempt(self, case: Case) -> tuple[Problem, tuple, Called]:
        """Call the function in one case -> the problem, the arguments, and what came back."""
        problem = make_problem(self.task, self.given, case)
        args, broken = own_args(self.task, problem, self.mine, self.path, tolerance_of(self.task, case))
        return problem, args, Called(complaint=broken) if broken else self.call(args, case)

    def call(self, args: tuple, case: Case) -> Called:
        """Call the function, twice."""
        return call(getattr(self.mine, self.task.function), args, self.task, self.path, case.single)

    def where_it_fails(self, case: Case, first: Case) -> str:
        """A sentence about a function that is right in the first case and wrong in this one."""
        text = f"it is right with {first}, but not with {case}:"
        if case.single or self.diagnose(case._replace(sizes=first.sizes)).status != "passed":
            return text  # the sizes are not to blame
        for letter, size in first.sizes.items():
            changed = case._replace(sizes={**first.sizes, letter: case.sizes[letter]})
            if case.sizes[letter] != size and self.diagnose(changed).status != "passed":
                return f"{text} does it take {letter} = {size} for granted?"
        return text


def tolerance_of(task: Task, case: Case) -> float:
    """The largest relative error of a right answer."""
    return max(task.tolerance, TOLERANCE_32) if case.single else task.tolerance


def own_args(task: Task, problem: Problem, mine: Any, path: Path, tolerance: float) -> tuple[tuple, str]:
    """The problem's arguments, with the cache of the learner's copy of the forward -> (args, complaint or "")."""
    forward = getattr(mine, task.forward, None) if task.forward else None
    if forward is None:
        return problem.args, ""
    try:
        y, cache = forward(**copy.deepcopy(problem.inputs))
        wrong = np.shape(y) != np.shape(problem.y) or wrong_entries(np.asarray(y), problem.y, tolerance).any()
    except (Exception, SystemExit) as error:
        return (), f"the given function {task.forward} fails now: {crash(error, str(path).__eq__)}"
    if wrong:
        return (), f"the given function {task.forward} no longer returns what it did: undo your changes to it"
    return (problem.args[0], cache), ""
