"""The lessons' helper: its checks can fail, its quotes can be wrong, and no run writes outside runs/lessons/."""

import importlib.util
import json

import numpy as np
import pytest
from matplotlib.figure import Figure

from minitransformer.course import FOLDER

PROSE = """\
# %% [markdown]
# # Lesson 99: a test
#
# The loss begins at 2.77 nats and ends at
# 0.031. There are 1,234 of them, about 6.1e-17 each.

# %%
text = "it ends at 9.99"
"""


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """A fresh lab in a checkout of its own, with one lesson: 99_test."""
    folder = tmp_path / "lessons"
    folder.mkdir()
    (folder / "99_test.py").write_text(PROSE, "utf-8")
    (folder / "lab.py").write_text((FOLDER / "lab.py").read_text("utf-8"), "utf-8")
    spec = importlib.util.spec_from_file_location("lab_of_a_test", folder / "lab.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setenv("MINITRANSFORMER_FAST", "")
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def lesson(lab):
    return lab.begin("99_test", threads=None)


def test_check_that_holds_is_printed_with_its_value(lesson, capsys):
    lesson.check("the error is small", 3.1e-16, 1e-12)
    lesson.check("all are right", 1.0, at_least=0.99)
    assert "ok  the error is small: 3.1e-16 (at most 1e-12)" in capsys.readouterr().out
    assert [check["measured"] for check in lesson.checks] == [3.1e-16, 1.0]


@pytest.mark.parametrize(("measured", "bound"), [(2.0, {"at_most": 1.0}), (0.5, {"at_least": 0.9})])
@pytest.mark.parametrize("nan", [False, True])
def test_check_that_does_not_hold_stops_the_lesson(lesson, measured, bound, nan):
    with pytest.raises(AssertionError, match="it holds: measured"):
        lesson.check("it holds", np.nan if nan else measured, **bound)


def test_check_wants_one_bound(lesson):
    with pytest.raises(ValueError, match="either at_most or at_least"):
        lesson.check("it holds", 1.0)
    with pytest.raises(ValueError, match="either at_most or at_least"):
        lesson.check("it holds", 1.0, 2.0, at_least=0.0)


def test_quote_that_is_the_measured_value_passes(lesson):
    lesson.quote("begins at 2.77 nats and ends at 0.031", 2.7749, 0.0305)
    lesson.quote("There are 1,234 of them, about 6.1e-17 each", 1234, 6.14e-17)
    lesson.quote("begins at 2.77 nats", 2.9, within=0.05)


@pytest.mark.parametrize("measured", [2.7649, 2.7751, -2.77, np.nan])
def test_quote_of_another_value_stops_the_lesson(lesson, measured):
    with pytest.raises(AssertionError, match=r"says 2\.77, measured"):
        lesson.quote("begins at 2.77 nats", measured)


def test_quote_must_stand_in_the_prose_and_not_in_the_code(lesson):
    with pytest.raises(AssertionError, match="the prose does not say"):
        lesson.quote("ends at 9.99", 9.99)


def test_quote_wants_a_value_for_each_number(lesson):
    with pytest.raises(ValueError, match="2 numbers"):
        lesson.quote("begins at 2.77 nats and ends at 0.031", 2.77)


def test_error_is_relative_to_the_largest_entry_expected(lab):
    assert lab.error([1.0, 4.4], [1.0, 4.0]) == pytest.approx(0.1)
    assert lab.error(np.ones(3), 0.0) == 1.0
    with pytest.raises(ValueError, match="shapes differ"):
        lab.error(np.ones((2, 3)), np.ones((3, 2)))


def test_full_run_leaves_figure_and_record(lab, lesson, capsys):
    figure = Figure()
    figure.add_subplot().plot([1, 2])
    lesson.save(figure)
    lesson.check("it holds", 0.0, 1.0)
    lesson.claim("so they say", "wrong", "it is 3")
    lesson.finish()
    record = json.loads((lab.ROOT / "runs/lessons/full/99_test.json").read_text("utf-8"))
    assert record["figure"] == "runs/lessons/full/99_test.png"
    assert (lab.ROOT / record["figure"]).stat().st_size > 1000
    assert {path.name for path in lab.ROOT.iterdir()} == {"lessons", "runs"}
    assert record["claims"] == [{"claim": "so they say", "verdict": "wrong", "found": "it is 3"}]
    assert "99_test: 1 checks passed, " in capsys.readouterr().out


def test_fast_run_leaves_the_full_run_as_it_is(lab, monkeypatch):
    monkeypatch.setattr(lab, "FAST", True)
    monkeypatch.setattr(lab, "RECORDS", lab.ROOT / "runs" / "lessons" / "fast")
    lesson = lab.begin("99_test", threads=None)
    assert lesson.pick(full=400, fast=4) == 4
    lesson.quote("begins at 2.77 nats", 1.0, full_only=True)
    lesson.save(Figure())
    lesson.finish()
    written = {path.relative_to(lab.ROOT / "runs").as_posix() for path in (lab.ROOT / "runs").rglob("*.*")}
    assert written == {"lessons/fast/99_test.json", "lessons/fast/99_test.png"}
