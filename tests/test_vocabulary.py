"""The special ids of the toy tasks are theirs alone: everything else asks the model's configuration."""

import ast
from pathlib import Path

import pytest

import minitransformer

PACKAGE = Path(minitransformer.__file__).parent
IDS = {"PAD", "BOS", "EOS"}
THEIR_OWN = {  # toy tasks, texts of our own tokenizers, and experiments with data of their own
    *(f"data/{name}.py" for name in ("denoising", "parsing", "prompted", "tasks", "translation")),
    "recipes/toy.py",
    "example/model.py",
    *(f"explorer/{name}.py" for name in ("letters", "writing")),
    *(f"experiments/{name}.py" for name in ("coreference", "curves", "faithfulness", "measuring/steps")),
}

pytestmark = pytest.mark.host_only


def special_ids_of(text):
    """The names of special ids that a file imports, or looks up in the module that has them."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("vocabulary"):
            yield from IDS & {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and node.attr in IDS:
            yield node.attr


@pytest.mark.parametrize(
    "text", ["from minitransformer.vocabulary import PAD", "from minitransformer import vocabulary as v\nv.EOS"]
)
def test_the_rule_sees_an_import(text):
    assert list(special_ids_of(text))


def test_only_toy_tasks_and_our_own_tokenizers_know_special_ids():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(special_ids_of(path.read_text("utf8")))
    }
    assert found == THEIR_OWN
