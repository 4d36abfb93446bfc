"""The learner's folder: files are made once and never overwritten, and what was passed stays passed."""

import pytest

from minitransformer.exercises import Diagnosis, Workshop, find_exercise

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
    assert Workshop(tmp_path).noted(EXERCISE, "tries") == 3, "a stub is no try"


def test_all_functions_must_pass(tmp_path):
    workshop = Workshop(tmp_path)
    workshop.start(EXERCISE)
    workshop.count(EXERCISE, [Diagnosis("f", "passed"), Diagnosis("g", "open")])
    assert workshop.state(EXERCISE) == "started"


def test_notes_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "progress.json").write_text("{", "utf-8")
    with pytest.raises(ValueError, match=r"progress\.json cannot be read"):
        Workshop(tmp_path)
