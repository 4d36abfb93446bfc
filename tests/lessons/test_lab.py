"""The lessons' helper: its checks can fail, its quotes can be wrong, and no run writes outside runs/lessons/."""

import json

from support.example_numbers import numbers

import numpy as np
import pytest
from matplotlib.figure import Figure

from minitransformer.example import load_example

PROSE = """\
# %% [markdown]
# # Lesson 99: a test
#
# The loss begins at 2.77 nats and ends at
# 0.031. There are 1,234 of them, about 6.1e-17 each.

# %%
text = "it ends at 9.99"
"""
NUMBER = "05"  # a lesson that the table of maps knows
NAME = f"{NUMBER}_test"
CHECKS = """\
HANDS = {
    "ds": (lambda run: run.RIGHT, {"the sign is wrong": lambda run: -run.RIGHT, "a sum": lambda run: run.RIGHT.sum()}),
    "bad": (lambda run: run.RIGHT, {"nothing wrong at all": lambda run: 1.0 * run.RIGHT}),
}


def verify(lesson, run):
    lesson.check("the sidecar sees the lesson's variables", run.loss, 3.0)
    lesson.quote("The loss begins at 2.77 nats", run.loss)
    lesson.claim("so they say", "wrong", "it is 3", said="blog posts")
"""


@pytest.fixture
def lesson(lab, tmp_path):
    (tmp_path / "lessons" / f"{NAME}.py").write_text(PROSE, "utf-8")
    (tmp_path / "lessons" / "checks" / f"{NAME}.py").write_text(CHECKS, "utf-8")
    return lab.begin(NAME, threads=None)


RIGHT = np.array([[1.0, -2.0, 0.5], [4.0, 3.0, 0.0]])  # what HANDS calls run.RIGHT


@pytest.mark.parametrize(
    ("yours", "said"),
    [
        (..., "not written yet"),
        (RIGHT.copy(), "right"),
        (RIGHT.tolist(), "right"),
        (-RIGHT, "wrong: the sign is wrong"),
        (RIGHT.sum(), "wrong: a sum"),
        (RIGHT.T, "wrong: ds has shape (3, 2) but should have (2, 3): it is transposed"),
        (3 * RIGHT, "wrong: yours / right = 3 everywhere = 3"),
        (RIGHT + np.eye(2, 3), "wrong: worst ds[0,0]: yours 2.0000, right 1.0000"),
        (RIGHT * np.nan, "wrong: there is NaN or infinity in it"),
        ("a line", "wrong: it must be an array of numbers, not str"),
        (None, "wrong: there is NaN or infinity in it"),
    ],
    ids=str,
)
def test_the_line_of_a_reader_is_judged(lesson, capsys, yours, said):
    assert lesson.judge("ds", yours) is (said == "right")
    assert f"your ds: {said}" in " ".join(capsys.readouterr().out.split())
    assert lesson.hands == ["ds"]


def test_a_known_mistake_that_is_right_stops_the_lesson(lesson):
    with pytest.raises(AssertionError, match="what is right and nothing wrong at all of bad are the same"):
        lesson.judge("bad", ...)


def test_a_guess_is_shown_beside_the_measured_number(lesson, capsys):
    lesson.compare("steps", 300, 1010)
    lesson.compare("the share", ..., 0.12345)
    out = capsys.readouterr().out
    assert "steps: 1,010 (your guess: 300)" in out
    assert "the share: 0.1235 (you have not guessed)" in out


@pytest.mark.parametrize("guess", ["thirty", "30 %", None, [3, 4]])
def test_a_guess_that_is_no_number_is_asked_again_before_the_measured_one_is_told(lesson, capsys, guess):
    lesson.compare("steps", guess, 1010)
    out = " ".join(capsys.readouterr().out.split())
    assert out == f"steps: your guess {guess!r} is not a number: write one, such as 0.5, and run this again"


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


def test_error_is_relative_to_the_largest_entry_expected(lab):
    assert lab.error([1.0, 4.4], [1.0, 4.0]) == pytest.approx(0.1)
    assert lab.error(np.ones(3), 0.0) == 1.0
    with pytest.raises(ValueError, match="shapes differ"):
        lab.error(np.ones((2, 3)), np.ones((3, 2)))


def test_number_of_the_running_example_is_compared(lesson):
    p = numbers(load_example())["cross.p"]
    lesson.example("cross.p", p)
    lesson.example("cross.p[1]", p[1])
    assert lesson.examples == ["cross.p", "cross.p[1]"]
    with pytest.raises(AssertionError, match=r"cross\.p\[0\] differs from the running example"):
        lesson.example("cross.p[0]", p[1])


def test_full_run_leaves_figures_and_record(lab, lesson, capsys):
    figure = Figure()
    figure.add_subplot().plot([1, 2])
    lesson.save(figure, "graph")
    lesson.check("it holds", 0.0, 1.0)
    lesson.finish({"loss": 2.77})
    record = json.loads((lab.ROOT / f"runs/lessons/full/{NAME}.json").read_text("utf-8"))
    assert record["figures"] == [f"runs/lessons/full/{NAME}_{part}.png" for part in ("graph", "map")]
    assert all((lab.ROOT / path).stat().st_size > 1000 for path in record["figures"])
    assert {path.name for path in lab.ROOT.iterdir()} == {"lessons", "runs"}
    assert record["claims"] == [{"claim": "so they say", "verdict": "wrong", "found": "it is 3", "said": "blog posts"}]
    assert [check["claim"] for check in record["checks"]] == ["it holds", "the sidecar sees the lesson's variables"]
    printed = capsys.readouterr().out
    assert f"{NAME}: 2 checks passed, " in printed
    assert "sidecar" not in printed


def test_prose_that_says_something_else_stops_the_lesson(lesson):
    with pytest.raises(AssertionError, match=r"says 2\.77, measured 2\.9\nIf you changed the lesson"):
        lesson.finish({"loss": 2.9})


def test_fast_run_leaves_the_full_run_as_it_is(lab, lesson, monkeypatch):
    monkeypatch.setattr(lab, "RECORDS", lab.ROOT / "runs" / "lessons" / "fast")
    lesson.fast = True
    assert lesson.pick(full=400, fast=4) == 4
    lesson.quote("begins at 2.77 nats", 1.0, full_only=True)
    lesson.save(Figure())
    lesson.finish({"loss": 2.77})
    written = {path.relative_to(lab.ROOT / "runs").as_posix() for path in (lab.ROOT / "runs").rglob("*.*")}
    assert written == {f"lessons/fast/{NAME}{end}" for end in (".json", ".png", "_map.png")}
