"""`import minitransformer` imports little, and offers all names as if it had imported everything."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import minitransformer

HEAVY = {"numpy", "matplotlib", "tqdm", "safetensors", "threadpoolctl", "concurrent", "multiprocessing", "inspect"}


def imported_by(code):
    """The names of the modules in memory after `code`, in a process of its own."""
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["lesson"], ["lesson", "--help"]])
def test_commands_without_mathematics_do_not_wait_for_numpy(arguments):
    modules = imported_by(
        f"from minitransformer.cli import main\ntry: main({arguments})\nexcept SystemExit: pass  # of argparse"
    )
    assert "minitransformer.cli" in modules
    assert not HEAVY & (modules - imported_by("import argparse; argparse.ArgumentParser().format_help()"))
    assert {name for name in modules if name.startswith("minitransformer.cli.")} <= {"minitransformer.cli.lesson"}


def test_every_name_is_the_one_that_type_checkers_see():
    names = {}
    for node in ast.walk(ast.parse(Path(minitransformer.__file__).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("minitransformer.") and node.col_offset:
            names |= {alias.name: importlib.import_module(node.module) for alias in node.names}
    assert set(names) == set(minitransformer.__all__)
    for name, module in names.items():
        assert getattr(minitransformer, name) is getattr(module, name)
        assert name in dir(minitransformer)


def test_rooms_are_attributes_of_the_package():
    code = "import minitransformer as mt; mt.layers.Linear, mt.functional.softmax, mt.gradcheck.check_layer"
    assert "minitransformer.layers.linear" in imported_by(code)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'minitransformer' has no attribute 'Transfomer'"):
        minitransformer.Transfomer  # noqa: B018
