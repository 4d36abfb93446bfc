"""The checker's own proof: every known mistake is named, none is taken for another, no wrong answer passes.

By default a share of the exercises is tried. `--exhaustive` tries all of them, and each mistake on another problem;
`--weekly` adds three more problems for each mistake, and a third of all pairs of mistakes.
"""

import ast
import contextlib
import copy
import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.exercises.calling import as_arrays
from minitransformer.exercises.cases import Case, cases_of, make_problem
from minitransformer.exercises.collection import find_exercise
from minitransformer.exercises.diagnose import diagnose, diagnose_task
from minitransformer.exercises.exercise import Mistake, load
from minitransformer.exercises.judging import alike, observe
from minitransformer.exercises.known import Known, known_mistakes
from minitransformer.exercises.report import print_diagnoses
from minitransformer.exercises.runner import check
from tests.exercises.answers import ANSWERS, EXERCISES, hand_in
from tests.mutation.mutants import definitions, difference, header, places
from tests.mutation.operators import changes
from tests.tiers import some

every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
TASKS = [(exercise, task) for exercise in EXERCISES for task in exercise.tasks]
every_task = pytest.mark.parametrize(
    ("exercise", "task"), TASKS, ids=[f"{exercise.name}-{task.function}" for exercise, task in TASKS]
)
ignore_warnings = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a wrong answer may divide by 0
MARKS = (pytest.mark.exhaustive, *[pytest.mark.weekly] * 3)
SEEDS = [pytest.param(seed, marks=mark) for seed, mark in enumerate(MARKS, 1)]  # of further problems; learners' is 0


def diagnose_mistake(exercise, task, mistake, given, seed=0):
    """The diagnosis of a file in which somebody has made a known mistake."""
    return diagnose_function(exercise, task, exercise.mistaken(task, mistake), given, seed)


def diagnose_function(exercise, task, function, given, seed=0):
    """The diagnosis of a file with this function, on rich problems."""
    mine = SimpleNamespace(**{task.function: function})
    cases = [Case(100 * seed + number, sizes) for number, sizes in enumerate(task.sizes[: task.rich])]
    return diagnose_task(exercise, task, mine, given, exercise.path, cases)


@every_exercise
def test_handed_out_file_is_open_and_says_what_to_do(exercise):
    for diagnosis in diagnose(exercise, exercise.path):
        assert diagnosis.status == "open"
        assert len(diagnosis.clues[0]) > 15


@every_exercise
def test_our_solution_passes(exercise, tmp_path):
    for diagnosis in diagnose(exercise, hand_in(exercise, exercise.solution, tmp_path)):
        assert diagnosis.status == "passed", diagnosis
        assert not diagnosis.clues  # no remark about its dtypes
        assert diagnosis.outputs.keys() == {
            output.name for task in exercise.tasks if task.function == diagnosis.function for output in task.outputs
        }


@pytest.mark.parametrize("answer", some([answer for answer in ANSWERS if answer.is_right], 4), ids=str)
def test_right_answer_passes_in_another_style(answer, tmp_path):
    for diagnosis in diagnose(answer.exercise, hand_in(answer.exercise, answer.text, tmp_path)):
        assert diagnosis.status == "passed", diagnosis


@pytest.mark.parametrize("exercise", some(EXERCISES, 3), ids=lambda exercise: exercise.name)
@ignore_warnings
def test_every_known_mistake_is_named_and_no_line_of_the_solution_is_ever_shown(exercise, capsys):
    given, handed_out = load(exercise.path), exercise.path.read_text("utf-8")
    shown = list(exercise.hints)
    for task in exercise.tasks:
        for mistake in task.mistakes:
            diagnosis = diagnose_mistake(exercise, task, mistake, given)
            assert diagnosis.status == "wrong", mistake.name
            assert diagnosis.mistakes == ((mistake.name, mistake.question),), diagnosis
            print_diagnoses(exercise, [diagnosis])
            shown.append(capsys.readouterr().out)
    lines = {line.strip() for line in exercise.solution.splitlines()}
    secret = [line for line in lines if len(line) > 12 and line not in handed_out]
    assert secret
    assert not [line for line in secret if any(line in text for text in shown)]


@pytest.mark.parametrize("seed", SEEDS)
@every_task
@ignore_warnings
def test_no_known_mistake_is_taken_for_another_on_other_problems(exercise, task, seed):
    given = load(exercise.path)
    for mistake in task.mistakes:
        diagnosis = diagnose_mistake(exercise, task, mistake, given, seed)
        names = [name for name, _ in diagnosis.mistakes]
        assert names == [mistake.name], f"{mistake.name} was taken for {names}"


def combined(exercise, task, *pair):
    """The functions with two mistakes, made in either order: one, two if the order matters, or none."""
    found = []
    for order in (pair, pair[::-1]):
        with contextlib.suppress(ValueError, SyntaxError):
            found.append(exercise.mistaken(task, *order))
    return list(dict.fromkeys(found))


def results_of(task, function, problems):
    """What a function gives on all problems -> {name of an output: [array, ...]}, or {} if it fails."""
    results = {output.name: [] for output in task.outputs}
    for problem in problems:
        try:
            outputs = as_arrays(function(*copy.deepcopy(problem.args)), task.outputs).outputs
            observed = observe(task, problem, outputs)
        except Exception:
            return {}
        for name, array in zip(results, observed, strict=True):
            results[name].append(array)
    return results


def same(got, theirs, names):
    """Whether the outputs called `names` are alike in two results, and neither is missing."""
    return bool(got and theirs) and all(all(map(alike, got[name], theirs[name])) for name in names)


def assert_explained(diagnosis, exercise, task, got, problems):
    """The named mistakes give the results `got`: two in one text, or one for each output that is wrong."""
    mistakes = {mistake.name: mistake for mistake in task.mistakes}
    named = {label: mistakes[name] for label, name in (name.split(": ", 1) for name, _ in diagnosis.mistakes)}
    if set(named) == {"1 of 2", "2 of 2"}:
        theirs = [results_of(task, function, problems) for function in combined(exercise, task, *named.values())]
        assert any(same(got, each, got) for each in theirs), diagnosis
        return
    assert len(named) <= 2
    assert {name for label in named for name in label.split(", ")} == set(diagnosis.wrong)
    for label, mistake in named.items():
        theirs = results_of(task, exercise.mistaken(task, mistake), problems)
        assert same(got, theirs, label.split(", ")), diagnosis


def some_pairs(mistakes, share):
    """A share of all pairs, at least one, of which each mistake has one unless `share` is 0; always the same."""
    pairs, found = list(itertools.combinations(mistakes, 2)), []
    order = np.random.default_rng(0).permutation(len(pairs))
    for place, (first, second) in enumerate(pairs[i] for i in order):
        seen = {mistake.name for pair in found for mistake in pair}
        if place <= share * len(pairs) or (share and not {first.name, second.name} <= seen):
            found.append((first, second))
    return found


@pytest.mark.parametrize("share", [0, pytest.param(1 / 3, marks=pytest.mark.weekly)], ids=["one", "a third"])
@pytest.mark.parametrize(("exercise", "task"), some(TASKS, 6))
@ignore_warnings
def test_two_known_mistakes_in_one_answer_are_named(exercise, task, share):
    given = load(exercise.path)
    problems = [make_problem(task, given, case) for case in cases_of(task)[: task.rich]]
    single = itertools.combinations(task.mistakes, 1)
    right, *one = (results_of(task, exercise.mistaken(task, *made), problems) for made in [(), *single])
    for pair in some_pairs(task.mistakes, share):
        for function in combined(exercise, task, *pair):
            got = results_of(task, function, problems)
            diagnosis = diagnose_function(exercise, task, function, given)
            assert (diagnosis.status == "passed") == same(got, right, got)
            nothing = not any(array.any() for arrays in got.values() for array in arrays)  # it fails, or is 0
            if diagnosis.status == "passed" or nothing or any(same(got, theirs, got) for theirs in one):
                assert not any("of 2: " in name for name, _ in diagnosis.mistakes)
            else:
                assert_explained(diagnosis, exercise, task, got, problems)


RELU = find_exercise("02_relu_backward")


@pytest.mark.parametrize(
    ("known", "made", "named"),
    [
        ("2.0 3.0 5.0", 15.0, "1 of 2: 3.0, 2 of 2: 5.0"),
        ("3 2.0 5.0 3.0", 6.0, "1 of 2: 2.0, 2 of 2: 3"),  # 2.0 · 3 or 2.0 · 3.0
        ("2.0 3.0 1.5 4.0", 6.0, ""),  # 2.0 · 3.0 or 1.5 · 4.0
        ("2.0 3.0 5.0", 5.0, "5.0"),
        ("1.5 2.0 3.0", 3.0, "3.0"),  # not 1.5 · 2.0
        ("2.0 3.0 0.5", 1 + 1e-8, ""),  # 2.0 · 0.5 = 1 is right
        ("0.0 3.0 5.0", 0.0, "0.0"),
        ("1e-200 1e-201 5.0", 0.0, ""),
        ("2.0 3.0 5.0", 7.0, ""),
        ("2.0 3.0 5.0", 5.00001, ""),
    ],
)
def test_pair_is_named_if_no_other_gives_the_same_numbers_or_all_share_a_mistake(known, made, named, monkeypatch):
    mistakes = tuple(Mistake(factor, {"(y > 0)": f"(y > 0) * {factor}"}) for factor in known.split())
    for factor in known.split():
        monkeypatch.setitem(known_mistakes(), factor, Known(factor, "why?", ""))
    task = dataclasses.replace(RELU.tasks[0], mistakes=mistakes)
    diagnosis = diagnose_function(RELU, task, lambda dy, y: made * dy * (y > 0), load(RELU.path))
    assert diagnosis.status == "wrong"
    assert ", ".join(name for name, _ in diagnosis.mistakes) == named


def test_change_that_does_not_apply_is_an_error_and_shows_no_text_of_the_solution():
    exercise, task = TASKS[0]
    for old in ("gradient[i]  = nothing", "gradient"):  # never, and more than once
        mistake = Mistake("a-slip", {old: "1"})
        with pytest.raises(
            ValueError, match="01_derivatives: a change of the mistake 'a-slip' cannot be made"
        ) as error:
            exercise.mistaken(task, mistake)
        assert old not in str(error.value)


@every_exercise
def test_three_hints_a_place_to_read_and_the_header(exercise):
    title, difficulty, minutes = exercise.about()
    assert title
    assert 1 <= difficulty <= 5
    assert 1 <= minutes <= 90
    assert len(exercise.hints) == 3
    assert f"lesson {exercise.lesson}" in exercise.see


def test_there_are_enough_exercises_and_known_mistakes():
    assert len(EXERCISES) >= 31
    assert {exercise.lesson for exercise in EXERCISES} == {f"{number:02}" for number in range(1, 26)}
    mistakes = [mistake for _, task in TASKS for mistake in task.mistakes]
    assert len(mistakes) >= 285
    assert all("?" in mistake.question for mistake in mistakes)
    names = [(exercise.name, task.function, mistake.name) for exercise, task in TASKS for mistake in task.mistakes]
    assert len(set(names)) == len(names)
    assert len({exercise.name for exercise in EXERCISES}) == len(EXERCISES)


def mutants(text):
    """Every single change of a text that the mutation test would make -> (what was done, the changed text)."""
    tree = ast.parse(text)
    for _, definition in definitions(tree.body):
        for parent, field, index, node, _ in list(places(definition, header(definition))):
            for new in changes(node, parent):
                owner, key = (vars(parent), field) if index is None else (getattr(parent, field), index)
                owner[key] = new
                yield " -> ".join(difference(node, new)), ast.unparse(ast.fix_missing_locations(tree))
                owner[key] = node


def all_mutants():
    """Every single change of every solution, in an order that looks random and is the same each time."""
    every = [(exercise, what, text) for exercise in EXERCISES for what, text in mutants(exercise.solution)]
    return [every[i] for i in np.random.default_rng(0).permutation(len(every))]


def outputs_of(exercise, path, seed=3):
    """What the functions of a file give on one problem, or None where one fails."""
    given, mine = load(exercise.path), load(path)
    results = []
    for task in exercise.tasks:
        problem = make_problem(task, given, Case(seed, task.sizes[0]))
        try:
            value = getattr(mine, task.function)(*problem.args)
            value = task.observe((value,) if len(task.outputs) == 1 else value, problem) if task.observe else value
            results += [np.asarray(v, dtype=float) for v in (value if isinstance(value, tuple) else (value,))]
        except Exception:
            return None
    return results


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", [25, pytest.param(200, marks=pytest.mark.weekly)])
@ignore_warnings
def test_unknown_mistakes_are_flagged_and_none_passes(number, tmp_path):
    flagged = 0
    for exercise, what, text in all_mutants():
        path = hand_in(exercise, text, tmp_path)
        endless = "while " in text  # a mutant that may never end gets a process of its own, which is stopped
        diagnoses = check(exercise, path, limit=10)[0] if endless else diagnose(exercise, path)
        if all(diagnosis.status == "passed" for diagnosis in diagnoses):
            right = outputs_of(exercise, hand_in(exercise, exercise.solution, tmp_path))
            wrong = outputs_of(exercise, hand_in(exercise, text, tmp_path))
            assert wrong is not None
            same = all(alike(a, b) for a, b in itertools.zip_longest(right, wrong, fillvalue=np.zeros(0)))
            assert same, f"{exercise.name} passes with {what}"
            continue  # a change that changes nothing
        flagged += 1
        if flagged == number:
            return
    pytest.fail(f"only {flagged} mutants were flagged")
