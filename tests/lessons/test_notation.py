"""The letters of all lessons are those of NOTATION.md: in formulas, in code, and at run time (`check_notation`)."""

import ast
import re

import numpy as np
import pytest

from minitransformer.course import FOLDER
from tests.lessons.conftest import every_lesson

ROW = re.compile(r"^\| ([^|]+?) \| ([^|]+?) \|(?: ([^|]+?) \|)?$", re.MULTILINE)
WORD = re.compile(r"[A-Za-zΑ-ωℓ]+[\u0300-\u036f]?(?:_[^\W_ᵀ]+|[₀-₉])*[*']?")  # x, x̂, W_q, β₁, p*, dx_nc, sum
ENGLISH = {"A", "I"}
NAMED_INDICES = {"hat", "max", "min"}  # x_hat


def letters():
    """(letters of all lessons, {letter of one lesson: number of the lesson})."""
    common, local = NOTATION.split("## In one lesson only")
    everywhere = {letter.strip() for names, *_ in ROW.findall(common) for letter in names.split(",")}
    return everywhere - {"letter", "---"}, {
        letter.strip(): lesson
        for names, _, lesson in ROW.findall(local)
        for letter in names.split(",")
        if lesson not in ("lesson", "---")
    }


NOTATION = (FOLDER / "NOTATION.md").read_text("utf-8")
COMMON, LOCAL = letters()


def known(lesson_number):
    """The letters that a lesson may use."""
    return COMMON | {letter for letter, number in LOCAL.items() if lesson_number in number.split(", ")}


def formulas(text):
    """The formulas of a lesson: indented lines of its prose."""
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    prose = [cell for cell in cells if cell.startswith(" [markdown]")]
    return [line[5:] for cell in prose for line in cell.splitlines() if line.startswith("#     ")]


def symbols(formula):
    """The symbols of a formula that are single letters, without their indices and without d for a gradient."""
    for word in WORD.findall(re.sub(r'"[^"]*"|`[^`]*`|[ᵀ²³]', "", formula)):
        base, *indices = word.rstrip("'").split("_")
        if len(base) == 2 and base[0] in "d∂δΔ" and base[1].isalpha():
            base = base[1]
        if len(re.sub(r"[\u0300-\u036f₀-₉*]", "", base)) == 1:
            yield base
            short = [part for part in indices if len(part) <= 3 and part not in NAMED_INDICES]
            yield from (index for part in short for index in part if index.isalpha())


def unknown_letters(text, known_letters):
    """[(formula, letter)] for each letter of a formula that is not in the table."""
    names = known_letters | ENGLISH | set("dLT")
    return [
        (formula.strip(), symbol)
        for formula in formulas(text)
        for symbol in symbols(formula)
        if symbol not in names and symbol.rstrip("*₀₁₂₃₄₅₆₇₈₉") not in names
    ]


def unknown_names(text, known_letters):
    """Names of one letter that the code of a lesson assigns, and that are not in the table."""
    stored = {
        node.id if isinstance(node, ast.Name) else node.arg
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    }
    return sorted(name for name in stored if len(name) == 1 and name not in known_letters | {"_"})


def test_no_letter_has_two_meanings():
    rows = [letter.strip() for names, *_ in ROW.findall(NOTATION) for letter in names.split(",")]
    rows = [row for row in rows if row not in ("letter", "---")]
    assert sorted(rows) == sorted(set(rows))


@every_lesson
def test_formulas_use_the_letters_of_the_table(lesson):
    assert unknown_letters(lesson.path.read_text("utf-8"), known(lesson.number)) == []


@every_lesson
def test_code_uses_the_letters_of_the_table(lesson):
    assert unknown_names(lesson.path.read_text("utf-8"), known(lesson.number)) == []


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [("D", np.ones(3), "D is a ndarray, but NOTATION.md says int"), ("p", 0.5, "p is a float, but")],
)
def test_letter_with_another_meaning_stops_the_lesson(lab, name, value, message):
    with pytest.raises(AssertionError, match=message):
        lab.check_notation({name: value})
