"""What an exercise says to its reader: the sections that it names exist, and its letters are those of NOTATION.md."""

import re

import pytest

from minitransformer.course import find_lesson
from tests.exercises.answers import EXERCISES
from tests.lessons.test_notation import known, unknown_names

every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
HEADING = re.compile(r"^# ##+ (.+)$", re.MULTILINE)


def sections_named(text):
    """The sections that a text names, as in 'lesson 06, "In code"' -> [(lesson, title)]."""
    lesson, sections = None, []
    for number, title in re.findall(r'\blesson (\d\d)\b|"([^"]+)"', text):
        lesson = number or lesson
        if title:
            sections.append((lesson, title))
    return sections


def test_sections_are_found_with_their_lessons():
    text = 'lesson 12, "The machine" and "The pieces", and lesson 11, "What is lost?"'
    assert sections_named(text) == [("12", "The machine"), ("12", "The pieces"), ("11", "What is lost?")]


@every_exercise
def test_every_section_to_read_is_a_heading_of_its_lesson(exercise):
    sections = sections_named(exercise.see)
    assert sections[0][0] == exercise.lesson
    for number, title in sections:
        headings = HEADING.findall(find_lesson(number).path.read_text("utf-8"))
        assert title in headings, f"lesson {number} has no section {title!r}"


@every_exercise
def test_code_and_shapes_use_the_letters_of_the_lessons(exercise):
    letters = known(exercise.lesson)
    assert unknown_names(exercise.path.read_text("utf-8"), letters) == []
    assert unknown_names(exercise.solution, letters) == []
    axes = {axis for task in exercise.tasks for output in task.outputs for axis in output.axes}
    sizes = {name for task in exercise.tasks for name in task.sizes[0]}
    assert {name for name in axes | sizes if len(name) == 1} <= letters
