"""The notes on lessons/one_file, which the site shows beside the code: every line has one, every lesson exists."""

import ast
import re

import pytest

from docs.course_site import notes
from tests.lessons.conftest import LESSONS

LONGEST_NOTE, LONGEST_BLOCK = 60, 6  # words, and lines of code
every_file = pytest.mark.parametrize("name", ["transformer", "gpt"])


def source_of(name):
    return (notes.FOLDER / f"{name}.py").read_text("utf-8")


def docstrings(tree):
    """The numbers of all lines of docstrings, from 0."""
    holders = (ast.Module, ast.ClassDef, ast.FunctionDef)
    texts = [node.body[0] for node in ast.walk(tree) if isinstance(node, holders) and ast.get_docstring(node)]
    return {line - 1 for text in texts for line in range(text.lineno, text.end_lineno + 1)}


def code_lines(source):
    """The numbers of the lines that hold code, from 0."""
    text = docstrings(ast.parse(source))
    return [i for i, line in enumerate(source.splitlines()) if line.strip() and i not in text]


def covered(block):
    """The numbers of the lines of a block, from 0."""
    return range(block.first, block.first + len(block.code.splitlines()))


@every_file
def test_every_line_of_code_has_exactly_one_note_and_none_is_about_many_lines(name):
    source, found = source_of(name), notes.read(name)
    lines = code_lines(source)
    noted = sorted(line for block in found for line in covered(block) if line in set(lines))
    assert noted == lines
    for block in found:
        held = set(covered(block)) & set(lines)
        assert 0 < len(held) <= LONGEST_BLOCK or block.first == 0, block.code
        assert block.note, block.code


@every_file
def test_the_page_shows_the_whole_file_in_order(name):
    shown = [line for block in notes.read(name) for line in block.code.splitlines() if line.strip()]
    assert shown == [line for line in source_of(name).splitlines() if line.strip()]


@every_file
def test_every_class_and_function_has_a_section_of_its_own(name):
    kinds = (ast.ClassDef, ast.FunctionDef)
    begun = {node.name: node.lineno - 1 for node in ast.parse(source_of(name)).body if isinstance(node, kinds)}
    first = {}
    for block in notes.read(name):
        first.setdefault(block.section, block.first)
    first.pop("How it begins")
    assert first == begun


@every_file
def test_no_note_is_long(name):
    long = [block.code for block in notes.read(name) if len(block.note.split()) > LONGEST_NOTE]
    assert long == []


@every_file
def test_every_lesson_that_a_note_names_exists(name):
    named = set(re.findall(r"\b[Ll]esson (\d+)", " ".join(block.note for block in notes.read(name))))
    assert len(named) > 8
    assert named <= {lesson.number for lesson in LESSONS}


@pytest.mark.parametrize("keys", [["z = 3"], ["y = 2", "x = 1"], ["x = 1", "x = 1"]])
def test_a_key_that_the_file_lacks_or_has_elsewhere_is_refused(keys):
    text = "## All\n" + "\n".join(f"### `{key}`\nnote\n" for key in keys)
    with pytest.raises(ValueError, match=r"no line after line \d is"):
        notes.blocks("x = 1\ny = 2\n", text)
