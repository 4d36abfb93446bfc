"""The checker's own proof: every known mistake is named, none is taken for another, no wrong answer passes."""

import itertools

import numpy as np
import pytest

from minitransformer.exercises.diagnose import alike, diagnose, diagnose_task
from minitransformer.exercises.exercise import load
from tests.exercises.answers import EXERCISES, hand_in, solution_text, style_files
from tests.exercises.mutants import mutants

every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
TASKS = [(exercise, task) for exercise in EXERCISES for task in exercise.tasks]
every_task = pytest.mark.parametrize(
    ("exercise", "task"), TASKS, ids=[f"{exercise.name}-{task.function}" for exercise, task in TASKS]
)
SEEDS = range(20)


class Mine:
    """A learner's file with one function in it."""

    def __init__(self, **functions):
        vars(self).update(functions)


@every_exercise
def test_handed_out_file_is_open_and_says_what_to_do(exercise):
    for finding in diagnose(exercise, exercise.path):
        assert finding.status == "open"
        assert len(finding.clues[0]) > 15


@every_exercise
def test_our_solution_passes(exercise, tmp_path):
    for finding in diagnose(exercise, hand_in(exercise, solution_text(exercise), tmp_path)):
        assert finding.status == "passed", finding
        assert finding.outputs.keys() == {
            output.name for task in exercise.tasks if task.function == finding.function for output in task.outputs
        }


@every_exercise
def test_right_answer_passes_in_every_style(exercise, tmp_path):
    for style in style_files(exercise):
        for finding in diagnose(exercise, hand_in(exercise, style.read_text("utf-8"), tmp_path)):
            assert finding.status == "passed", (style.name, finding)


@every_task
def test_every_known_mistake_is_named_and_none_is_taken_for_another(exercise, task):
    given = load(exercise.path)
    for mistake in task.mistakes:
        finding = diagnose_task(task, Mine(**{task.function: mistake.answer}), given, exercise.path)
        assert finding.status == "wrong", mistake.name
        assert finding.mistakes == ((mistake.name, mistake.question),), finding


@every_task
def test_no_two_known_mistakes_give_the_same_on_any_of_twenty_problems(exercise, task):
    given = load(exercise.path)
    for seed in SEEDS:
        problem = task.make(np.random.default_rng(seed), given)
        for mistake in task.mistakes:
            finding = diagnose_task(task, Mine(**{task.function: mistake.answer}), given, exercise.path, seeds=[seed])
            names = [name for name, _ in finding.mistakes]
            assert names == [mistake.name], f"seed {seed}: {mistake.name} was taken for {names}"
        assert problem.expected


@every_exercise
def test_three_hints_a_place_to_read_and_the_header(exercise):
    title, difficulty, minutes = exercise.about()
    assert title
    assert 1 <= difficulty <= 5
    assert 1 <= minutes <= 90
    assert len(exercise.hints) == 3
    assert f"lesson {exercise.lesson}" in exercise.see


def test_there_are_enough_exercises_and_known_mistakes():
    assert len(EXERCISES) >= 24
    assert {exercise.lesson for exercise in EXERCISES} == {f"{number:02d}" for number in range(1, 17)}
    mistakes = [mistake for _, task in TASKS for mistake in task.mistakes]
    assert len(mistakes) >= 60
    assert all("?" in mistake.question for mistake in mistakes)
    names = [(exercise.name, task.function, mistake.name) for exercise, task in TASKS for mistake in task.mistakes]
    assert len(set(names)) == len(names)
    assert len({exercise.name for exercise in EXERCISES}) == len(EXERCISES)


def all_mutants():
    """Every single change of every solution, in an order that looks random and is the same each time."""
    every = [(exercise, what, text) for exercise in EXERCISES for what, text in mutants(solution_text(exercise))]
    return [every[i] for i in np.random.default_rng(0).permutation(len(every))]


def outputs_of(exercise, path, seed=3):
    """What the functions of a file give on one problem, or None where one fails."""
    given, mine = load(exercise.path), load(path)
    results = []
    for task in exercise.tasks:
        problem = task.make(np.random.default_rng(seed), given)
        try:
            value = getattr(mine, task.function)(*problem.args)
            value = task.observe((value,) if len(task.outputs) == 1 else value, problem) if task.observe else value
            results += [np.asarray(v, dtype=float) for v in (value if isinstance(value, tuple) else (value,))]
        except Exception:
            return None
    return results


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of what a wrong answer divides by
def test_two_hundred_unknown_mistakes_are_flagged_and_none_passes(tmp_path):
    flagged = 0
    for exercise, what, text in all_mutants():
        path = hand_in(exercise, text, tmp_path)
        findings = diagnose(exercise, path)
        if all(finding.status == "passed" for finding in findings):
            right = outputs_of(exercise, hand_in(exercise, solution_text(exercise), tmp_path))
            wrong = outputs_of(exercise, hand_in(exercise, text, tmp_path))
            assert wrong is not None
            same = all(alike(a, b) for a, b in itertools.zip_longest(right, wrong, fillvalue=np.zeros(0)))
            assert same, f"{exercise.name} passes although somebody {what}"
            continue  # a change that changes nothing
        flagged += 1
        if flagged == 200:
            return
    pytest.fail(f"only {flagged} mutants were flagged")
