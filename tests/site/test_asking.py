"""What the lessons ask on the site: every guess and every line has its field, and its answer a place."""

import runpy

from support.example_numbers import numbers

import numpy as np
import pytest

pytest.importorskip("docutils", reason="the site's tools are missing: pip install -e '.[docs]'")

from docs.course_site import asking
from docs.course_site.percent import read_cells, read_outputs
from minitransformer.example import load_example
from tests.lessons.conftest import LESSONS

BY_NUMBER = {lesson.number: lesson for lesson in LESSONS}
every_line = pytest.mark.parametrize("key", asking.LINES)


def code_of(lesson):
    """(cell, what it printed) of each cell of code."""
    code = [cell for cell in read_cells(lesson.path.read_text("utf-8")) if not cell.prose]
    return list(zip(code, [cell["printed"] for cell in read_outputs(lesson.name)["cells"]], strict=True))


def hand_of(key):
    """What was recorded for a line, and what the lesson's checks say about it."""
    number, _, name = key.partition(".")
    lesson = BY_NUMBER[number]
    checks = runpy.run_path(str(lesson.path.parent / "checks" / lesson.path.name))
    return read_outputs(lesson.name)["hands"][name], checks["HANDS"][name]


def test_each_guess_is_asked_once_and_compared_once_and_no_output_says_that_there_is_none():
    count = 0
    for lesson in LESSONS:
        asked, compared, written, judged = [], [], [], []
        for cell, printed in code_of(lesson):
            asked += [name for name, _ in asking.GUESS.findall(cell.source)]
            found = asking.comparisons(lesson.number, cell, printed)
            compared += [key.partition(".")[2] for key, _, _ in found]
            written += [name for name, _ in asking.LINE.findall(cell.source)]
            judged += [part.partition('"')[0] for part in cell.source.split('lesson.judge("')[1:]]
            assert len(found) == cell.source.count("lesson.compare(") == printed.count("guessed)"), lesson
            assert "guessed" not in asking.rest(printed)
            assert "not written yet" not in asking.rest(printed)
        assert sorted(set(asked)) == sorted(set(compared)) != [], lesson
        assert written == judged != [], lesson
        assert len(asked) == len(compared), lesson
        count += len(asked)
    assert count >= 46


def test_what_was_measured_is_read_from_a_wrapped_line_and_the_rest_stays():
    cell = next(cell for cell in read_cells('# %%\nlesson.compare("steps", guess, 1)\n'))
    printed = "a  1.0\n  steps until the\n      end: 1,010 (you have\n      not guessed)\n  your x: not written yet\nb"
    assert asking.comparisons("06", cell, printed) == [("06.guess", "steps until the end", "1,010")]
    assert asking.rest(printed) == "a  1.0\nb"
    assert asking.rest("x = 1\nstation 3 of 10, the norm: not written yet") == "x = 1"
    assert 'data-value="1010"' in asking.measured("06", cell, printed)


@every_line
def test_right_numbers_of_a_line_are_those_of_the_explorer(key):
    line, (recorded, _) = asking.LINES[key], hand_of(key)
    start, count = asking.start_and_count(line.cells)
    theirs = line.times * np.ravel(numbers(load_example())[line.cells.partition("[")[0]])[start : start + count]
    right = np.array(recorded["right"].split(), dtype=float)
    if key in ("04.dE_output", "10.through_sigma"):  # a part of the array: others are added to it
        assert right.shape == theirs.shape
        assert np.abs(right - theirs).max() > 0.01
    else:
        np.testing.assert_allclose(right, theirs, rtol=1e-5)


@every_line
def test_recorded_mistakes_of_a_line_are_those_that_the_lesson_knows(key):
    recorded, (_, mistakes) = hand_of(key)
    assert list(recorded["wrong"]) == list(mistakes)
    assert recorded["right"] not in recorded["wrong"].values()
