"""Answers put into the places of the stubs in one_sitting.py, as a reader would write them."""

import ast
from pathlib import Path

from minitransformer.course import FOLDER

ONE_SITTING = FOLDER / "one_sitting.py"
ANSWERS = Path(__file__).parent / "answers"
STYLES = ("arrays", "loops")


def functions_of(text: str) -> dict[str, ast.FunctionDef]:
    """The top-level functions of a source text, by name."""
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def answers(style: str) -> dict[str, str]:
    """The right functions in one style: name -> source."""
    text = (ANSWERS / f"{style}.py").read_text("utf-8")
    return {name: ast.get_source_segment(text, node) for name, node in functions_of(text).items()}


def written(changes: dict[str, str]) -> str:
    """The text of one_sitting.py with these functions written: name -> source."""
    text = ONE_SITTING.read_text("utf-8")
    for name, source in changes.items():
        text = text.replace(ast.get_source_segment(text, functions_of(text)[name]), source)
    return text
