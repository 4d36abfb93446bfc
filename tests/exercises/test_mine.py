"""Training with one's own layers: they are really called, everywhere, and the library's come back afterwards."""

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.exercises import Diagnosis, Workshop, diagnose, find_exercise
from minitransformer.exercises.mine import (
    can_be_used,
    collect_parts,
    compare_gradients,
    gradient_of,
    installed,
)
from minitransformer.models import Transformer, named_config
from tests.cli.conftest import few_held_out_sequences, undrawn
from tests.cli.run import run
from tests.exercises.answers import EXERCISES, hand_in
from tests.tiers import some

__all__ = ["few_held_out_sequences", "undrawn"]

REPLACING = [exercise for exercise in EXERCISES if exercise.replaces]


@pytest.fixture(scope="module", autouse=True)
def quick_check():
    """Check in this process: a process for each exercise takes long, and test_learners.py shows what it is for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("minitransformer.exercises.mine.check", lambda exercise, path: (diagnose(exercise, path), ""))
        yield


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A workshop in which everything is solved that replaces something."""
    folder = tmp_path_factory.mktemp("mine")
    for exercise in REPLACING:
        hand_in(exercise, exercise.solution, folder)
    return Workshop(folder)


@pytest.fixture(scope="module")
def parts(solved):
    return collect_parts(solved)


def make_model():
    task = get_task("reverse")
    return Transformer(named_config("tiny", len(task.vocabulary), num_layers=1), seed=0)


def make_batch():
    return get_task("reverse").batch(np.random.default_rng(0), 6)


def test_every_replacement_is_the_learners_where_all_is_solved(parts):
    assert len(parts) >= 8
    assert all(part.mine is not None and part.diagnosis.status == "passed" for part in parts)


def test_gradient_with_all_own_layers_is_the_librarys(parts):
    cosine, ratio = compare_gradients(make_model, make_batch(), parts)
    assert cosine == pytest.approx(1.0, abs=1e-6)
    assert ratio == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize("name", some([exercise.name for exercise in REPLACING], 3))
def test_each_own_layer_alone_gives_the_librarys_gradient(name, parts):
    own = [part for part in parts if part.exercise.name == name]
    cosine, ratio = compare_gradients(make_model, make_batch(), own)
    assert cosine == pytest.approx(1.0, abs=1e-6)
    assert ratio == pytest.approx(1.0, abs=1e-5)


def test_own_layers_are_called_and_the_librarys_come_back(parts):
    before = gradient_of(make_model(), make_batch())
    calls = []

    def counted(part):
        def mine(*arguments):
            calls.append(part.function)
            return part.mine(*arguments)

        return part._replace(mine=mine)

    for part in parts:  # each alone, as one may stand in for another
        with installed([counted(part)]):
            gradient_of(make_model(), make_batch())
    backwards = {part.function for part in parts if part.function.endswith("_backward")}
    assert backwards <= set(calls), "each must have been called"
    np.testing.assert_array_equal(gradient_of(make_model(), make_batch()), before)


def test_only_what_runs_and_has_the_right_shapes_is_used():
    assert can_be_used(Diagnosis("f", "passed", {"dx": 1e-16}))
    assert can_be_used(Diagnosis("f", "wrong", {"dx": 0.4}, ("dx",)))
    assert not can_be_used(Diagnosis("f", "wrong", {"dx": None}, ("dx",)))
    assert not can_be_used(Diagnosis("f", "wrong", clues=("it fails",)))
    assert not can_be_used(Diagnosis("f", "open", clues=("write it",)))


def test_wrong_backward_is_said_before_the_training_with_what_it_does(monkeypatch, capsys, tmp_path):
    exercise = find_exercise("06_attention_backward")
    hand_in(exercise, exercise.solution.replace(" / math.sqrt(q.shape[-1])", ""), tmp_path)
    monkeypatch.setattr("minitransformer.exercises.mine.Workshop", lambda: Workshop(tmp_path))
    status, out, _ = run(capsys, "train", "reverse", "--mine", "--steps", 2, "--runs", tmp_path / "runs")
    assert status == 0
    assert out.count("yours is not written yet") == sum(len(exercise.replaces) for exercise in REPLACING) - 1
    assert "yours, but it is WRONG" in out
    assert "= the scale of the scores, 1/√D, is missing on the" in out
    said = f"attention_backward ({exercise.name}) is wrong. The model's first gradient is"
    assert out.index(said) < out.index("exact match"), "before it trains"
    assert "degrees off" in out


def test_own_layers_are_for_the_toy_tasks(capsys):
    status, _, err = run(capsys, "train", "shakespeare", "--mine")
    assert (status, "shakespeare has no option --mine" in err) == (2, True)
