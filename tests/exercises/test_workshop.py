"""The learner's folder: files are made once and never overwritten, and what was passed stays passed."""

import pytest

from minitransformer.course import FOLDER
from minitransformer.exercises import Diagnosis, Workshop, find_exercise
from minitransformer.exercises.workshop import my_exercises

EXERCISE = find_exercise("06_attention_backward")


def test_file_is_made_once_and_never_overwritten(tmp_path):
    workshop = Workshop(tmp_path / "mine")
    path, new = workshop.start(EXERCISE)
    assert new
    assert path.read_text("utf-8") == EXERCISE.path.read_text("utf-8")
    path.write_text("my work", "utf-8")
    assert workshop.start(EXERCISE) == (path, False)
    assert path.read_text("utf-8") == "my work"


def test_state_goes_from_open_to_passed_and_stays_there(tmp_path):
    workshop = Workshop(tmp_path)
    states = [workshop.state(EXERCISE)]
    workshop.start(EXERCISE)
    for status in ("open", "wrong", "passed", "wrong"):
        workshop.count(EXERCISE, [Diagnosis("f", status)])
        states.append(Workshop(tmp_path).state(EXERCISE))  # read again
    assert states == ["not started", "started", "started", "passed", "passed"]
    assert Workshop(tmp_path).noted(EXERCISE.name, "tries") == 3, "a stub is no try"


def test_all_functions_must_pass(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.start(EXERCISE)
    workshop.count(EXERCISE, [Diagnosis("f", "passed"), Diagnosis("g", "open")])
    assert workshop.state(EXERCISE) == "started"


def test_the_folder_is_where_the_reader_is_or_above_and_a_checkout_has_one(tmp_path, monkeypatch):
    below = tmp_path / "desk" / "my_exercises" / "notes"
    below.parents[1].mkdir()
    monkeypatch.chdir(tmp_path / "desk")
    assert my_exercises() == tmp_path / "desk" / "my_exercises"
    below.mkdir(parents=True)
    for place in (below, below.parent, tmp_path / "desk"):
        monkeypatch.chdir(place)
        assert my_exercises() == tmp_path / "desk" / "my_exercises"
    monkeypatch.chdir(tmp_path)
    assert my_exercises() == tmp_path / "my_exercises"
    monkeypatch.chdir(FOLDER / "exercises")
    assert my_exercises() == FOLDER.parent / "my_exercises"


@pytest.mark.parametrize(
    "notes", ['{"one_sitting": {"stations": 3}}', '{"a": {"tries": -1}}', '{"a": {"tries": true}}']
)
def test_notes_of_another_kind_are_named(notes, tmp_path):
    (tmp_path / "progress.json").write_text(notes, "utf-8")
    with pytest.raises(ValueError, match=r"progress\.json cannot be read"):
        Workshop(tmp_path)


def test_notes_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "progress.json").write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"progress\.json cannot be read"):
        Workshop(tmp_path)
