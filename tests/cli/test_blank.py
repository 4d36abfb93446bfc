"""`minitransformer blank`: the empty file, what is said after each save, and the two processes that judge it."""

import json
import re
from types import SimpleNamespace

import pytest

from minitransformer.cli import blank as command
from minitransformer.cli import check
from minitransformer.course import FOLDER
from tests.cli.run import assert_refused, run

RIGHT = "def example_double():\n    import numpy as np\n    return (lambda x: (2 * x, lambda dy: 2 * dy)), np.ones(3)\n"


@pytest.fixture(autouse=True)
def no_editor(monkeypatch):
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)


def test_the_file_is_made_once_with_a_docstring_alone(tmp_path, capsys):
    path = tmp_path / "net.py"
    status, out, err = run(capsys, "blank", path, "--once")
    assert (status, err) == (1, "")
    assert "there is no model() yet" in out
    text = path.read_text("utf-8")
    assert text == (FOLDER / "blank_file.py").read_text("utf-8").replace("my_transformer.py", "net.py")
    assert text.count('"""') == 2
    assert text.endswith('"""\n')
    path.write_text(RIGHT, "utf-8")
    assert "ok double: 1 gradient" in " ".join(run(capsys, "blank", path, "--once").out.split())
    assert path.read_text("utf-8") == RIGHT


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def f(:\n", "the file cannot be read yet: invalid syntax in line 1: def f(:"),
        ("import numpi\n", "the file stops with ModuleNotFoundError: No module named 'numpi' in line 1: import numpi"),
        ("import sys\nsys.exit(0)\n", "the file stops with SystemExit: 0 in line 2: sys.exit(0)"),
        (f"print('here I am')\n{RIGHT}", "your file printed: here I am"),
    ],
)
def test_a_file_that_cannot_be_read_or_stops_or_prints_is_said_to(text, sentence, tmp_path, capsys):
    path = tmp_path / "net.py"
    path.write_text(text, "utf-8")
    status, out, _ = run(capsys, "blank", path, "--once")
    assert status == 1
    assert sentence in " ".join(out.split())


def test_a_loop_that_never_ends_is_stopped(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "LIMIT", 5)
    path = tmp_path / "net.py"
    path.write_text("while True:\n    pass\n", "utf-8")
    status, out, _ = run(capsys, "blank", path, "--once", "--json")
    assert (status, json.loads(out.splitlines()[-1])) == (1, {"path": str(path), "right": False})
    assert "stopped after 5 s: is there a loop that never ends?" in run(capsys, "blank", path, "--once").out


def test_each_save_is_judged_until_ctrl_c(tmp_path, capsys, monkeypatch):
    path, naps = tmp_path / "net.py", []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            path.write_text(RIGHT, "utf-8")
        if len(naps) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(check, "time", SimpleNamespace(sleep=sleep))
    status, out, err = run(capsys, "blank", path)
    assert (status, err) == (130, "minitransformer blank: stopped\n")
    assert re.search(r"each save is judged here.*no model\(\) yet.*\nsaved; judging ...\n.*double", out, re.DOTALL)


@pytest.mark.exhaustive
def test_a_proven_whole_goes_on_to_the_training(tmp_path, capsys, monkeypatch):
    parts = []
    monkeypatch.setattr(command, "run_child", lambda words, *rest, **options: parts.append(words[-1]) or 0)
    assert run(capsys, "blank", tmp_path / "net.py", "--once").status == 0
    assert parts == ["prove", "teach"]


@pytest.mark.parametrize("name", ["net.txt", "net", "."])
def test_what_is_not_the_name_of_a_python_file_is_refused(name, tmp_path, capsys):
    assert_refused(run(capsys, "blank", tmp_path / name), "is not the name of a Python file, such as my_transformer.py")
