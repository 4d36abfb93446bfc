"""docs/paper.md names places of the code that exist, and leaves out no numbered part of the paper."""

import ast
import math
import re
from pathlib import Path

import pytest

from experiments import EXPERIMENTS
from minitransformer.course import PACKAGE
from minitransformer.inspection.activation_memory import count_parameters
from minitransformer.models import Transformer, TransformerConfig

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


def test_the_page_of_the_paper_names_code_that_exists():
    assert len(PLACES) >= 30
    roots = {file: ROOT if file.startswith("lessons/") else PACKAGE for file, _ in PLACES}
    names = {file: set(names_in(root / file)) for file, root in roots.items()}
    assert [(file, name) for file, name in PLACES if name not in names[file]] == []


def test_each_numbered_part_of_the_paper_has_its_row():
    kinds = {"figure": 5, "table": 4, "equation": 3}
    parts = [f"{kind} {n}" for kind, count in kinds.items() for n in range(1, count + 1)]
    parts += ["3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "4", "5.1", "5.2", "5.3", "5.4", "6.1", "7"]
    found = {part: rf"(?<![\w.]){re.escape(part)}(?![\w.]|\.\d)" for part in parts}
    assert [part for part, pattern in found.items() if not any(re.search(pattern, row) for row in ROWS)] == []


def test_its_experiments_exist():
    assert set(re.findall(r"minitransformer experiment ([\w-]+)", PAGE)) <= set(EXPERIMENTS)


def parameters(V, layers=6, C=512, F=2048, heads=8, d_k=64):
    """Parameters of a row of table 3, where only d_k of queries and keys may differ from C / heads."""
    attention = 2 * (C + 1) * heads * d_k + 2 * (C + 1) * C
    feed_forward = 2 * C * F + F + C
    return V * C + layers * (3 * attention + 2 * feed_forward + 5 * 2 * C)


TABLE_3 = {  # millions of parameters as printed: what differs from base
    "base": (65, {}),
    "(B) d_k = 16": (58, {"d_k": 16}),
    "(B) d_k = 32": (60, {"d_k": 32}),
    "(C) 2 layers": (36, {"layers": 2}),
    "(C) 4 layers": (50, {"layers": 4}),
    "(C) 8 layers": (80, {"layers": 8}),
    "(C) d_model = 256": (28, {"C": 256, "d_k": 32}),
    "(C) d_model = 1024": (168, {"C": 1024, "d_k": 128}),
    "(C) d_ff = 1024": (53, {"F": 1024}),
    "(C) d_ff = 4096": (90, {"F": 4096}),
    "big": (213, {"C": 1024, "F": 4096, "heads": 16}),
}


def fits(row):
    """The smallest and the largest vocabulary with which a row rounds to the printed number."""
    millions, what = TABLE_3[row]
    low, high = (((millions + half) * 1e6 - parameters(0, **what)) / what.get("C", 512) for half in (-0.5, 0.5))
    return math.ceil(low), math.floor(high)


def test_the_vocabularies_of_table_3_are_those_that_the_page_says():
    others = [fits(row) for row in TABLE_3 if row != "big"]
    low, high = max(low for low, _ in others), min(high for _, high in others)
    assert len(others) == 10
    assert f"{low:,} to {high:,} tokens" in PAGE
    assert "{:,} to {:,} tokens".format(*fits("big")) in PAGE
    assert not any(first <= 37_000 <= last for first, last in map(fits, TABLE_3))
    assert f"{parameters(37_000):,}" in PAGE


@pytest.mark.parametrize("row", [row for row in TABLE_3 if not row.startswith("(B)")])
def test_the_formula_of_table_3_counts_as_the_library_does(row):
    _, what = TABLE_3[row]
    sizes = what.get("C", 512), what.get("heads", 8), what.get("F", 2048), what.get("layers", 6)
    assert count_parameters(TransformerConfig(1000, *sizes), Transformer) == parameters(1000, **what)
