"""docs/paper.md names places of the code that exist, and leaves out no numbered part of the paper."""

import ast
import re
from pathlib import Path

import pytest

from minitransformer.experiments import EXPERIMENTS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "paper.md").read_text("utf-8")
PLACES = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))
ROWS = re.findall(r"^(?:\* \*\*|\| )([^|*]+)(?:\.\*\*| \|)", PAGE, flags=re.MULTILINE)


def names_in(path):
    """All functions and classes of a file, and the methods as Class.method."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))


@pytest.mark.parametrize(("file", "name"), PLACES)
def test_the_page_of_the_paper_names_code_that_exists(file, name):
    assert name in names_in(ROOT / "minitransformer" / file)


def test_there_are_many_such_places():
    assert len(PLACES) >= 30


@pytest.mark.parametrize(
    "part",
    [
        *(f"figure {n}" for n in range(1, 6)),
        *(f"table {n}" for n in range(1, 5)),
        *(f"equation {n}" for n in range(1, 4)),
        *("3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4", "6.1", "7"),
    ],
)
def test_each_numbered_part_of_the_paper_has_its_row(part):
    assert any(re.search(rf"(?<![\w.]){re.escape(part)}(?![\w.]|\.\d)", row) for row in ROWS)


def test_its_experiments_exist():
    assert set(re.findall(r"minitransformer experiment ([\w-]+)", PAGE)) <= set(EXPERIMENTS)
