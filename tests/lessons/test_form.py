"""Every lesson has the form of a lesson: header, sections, short prose, a committed figure, a place in the table."""

import re

import matplotlib.image
import pytest

from tests.lessons.conftest import LESSONS

SECTIONS = (
    "Predict",
    "Small numbers",
    "The derivation",
    "From scratch",
    "Checked",
    "The picture",
    "The surprise",
    "Exercise",
    "Questions",
    "In the wild",
    "Answers",
)
LONGEST_PROSE = 25  # lines between two pieces of code
LARGEST_FIGURE = 130_000  # bytes
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def cells(lesson):
    """The cells of a lesson -> [(whether it is prose, its lines)]."""
    _, *parts = re.split(r"^# %%", "\n" + lesson.path.read_text("utf-8"), flags=re.MULTILINE)
    return [(part.startswith(" [markdown]"), part.splitlines()[1:]) for part in parts]


def test_there_are_seventeen_lessons_in_order():
    assert [lesson.number for lesson in LESSONS] == [f"{number:02d}" for number in range(17)]


@every_lesson
def test_lesson_builds_on_earlier_ones_alone(lesson):
    assert all(number < lesson.number for number in lesson.needs)


@every_lesson
def test_lesson_ends_within_a_minute_unless_it_says_that_it_is_long(lesson):
    assert lesson.long == (lesson.seconds > 60)
    assert lesson.fast_seconds <= lesson.seconds


@every_lesson
def test_lesson_has_all_sections_in_order(lesson):
    prose = [line for is_prose, lines in cells(lesson) if is_prose for line in lines]
    found = [line.removeprefix("# ## ") for line in prose if line.startswith("# ## ")]
    assert [section for section in found if section in SECTIONS] == list(SECTIONS)


@every_lesson
def test_prose_between_two_pieces_of_code_is_short(lesson):
    for is_prose, lines in cells(lesson)[1:-1]:  # the header and the answers may be longer
        text = [line for line in lines if line.strip("# ")]
        assert not is_prose or len(text) <= LONGEST_PROSE, text[0]


@every_lesson
def test_prose_is_a_comment_and_code_is_none(lesson):
    for is_prose, lines in cells(lesson):
        assert not is_prose or all(line.startswith("#") or not line for line in lines)
        assert is_prose or any(line and not line.startswith("#") for line in lines)


@every_lesson
def test_lesson_says_what_the_reader_should_see(lesson):
    assert "ou should see" in lesson.path.read_text("utf-8")


@every_lesson
def test_answers_come_last_and_no_code_behind_them(lesson):
    is_prose, lines = cells(lesson)[-1]
    assert is_prose
    assert any(line.startswith("# ## Answers") for line in lines) or any(
        line.startswith("# ## Answers") for _, lines in cells(lesson)[-3:] for line in lines
    )


@every_lesson
def test_figure_is_committed_small_and_not_blank(lesson):
    path = lesson.path.parent.parent / "plots" / f"{lesson.name}.png"
    assert path.stat().st_size <= LARGEST_FIGURE
    assert matplotlib.image.imread(path)[..., :3].std() > 0.02


@every_lesson
def test_readme_has_the_header_and_a_measured_time_within_it(lesson):
    readme = (lesson.path.parent / "README.md").read_text("utf-8")
    (row,) = (line for line in readme.splitlines() if line.startswith("| <img") and f"({lesson.name}.py)" in line)
    _, figure, title, question, time, measured, _ = (part.strip() for part in re.split(r"(?<!\\)\|", row))
    assert f"plots/{lesson.name}.png" in figure
    assert lesson.title in title.replace("\\|", "|")
    assert question.replace("\\|", "|") == " ".join(lesson.question.split())
    assert time == f"{lesson.seconds} s" + (", long" if lesson.long else "")
    assert int(re.search(r"in (\d+) s", measured)[1]) <= lesson.seconds
