"""The committed figures: plots/make.py can make each of them, and the pages show no others."""

import importlib.util
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import minitransformer
from minitransformer.cli import parse

ROOT = Path(minitransformer.__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "lessons").glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.fixture
def make():
    """A fresh copy of the script as a module."""
    spec = importlib.util.spec_from_file_location("make_plots", ROOT / "plots" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def runs(make, tmp_path, monkeypatch):
    """The commands that the script runs, in a checkout of its own where each draws all its figures or fails."""
    commands, failing = [], set()
    words = {name: source.words for name, source in make.FIGURES.items()}
    monkeypatch.setattr(make, "ROOT", tmp_path)
    monkeypatch.setattr(make, "FOLDER", tmp_path / "plots")
    make.FOLDER.mkdir()

    def draw(arguments, cwd):
        commands.append(shlex.join(arguments[1:]).removeprefix("-m minitransformer "))
        for name, source in make.FIGURES.items():
            if words[name] == arguments[1:]:
                (cwd / source.path).parent.mkdir(parents=True, exist_ok=True)
                (cwd / source.path).write_text(name)
        return subprocess.CompletedProcess(arguments, 3 if commands[-1] in failing else 0)

    monkeypatch.setattr(make.subprocess, "run", draw)
    return commands, failing


def test_the_table_names_exactly_the_files_of_the_folder(make):
    files = {path.name for path in (ROOT / "plots").iterdir() if path.is_file()}
    assert set(make.FIGURES) == files - {"make.py"}


def test_the_commands_exist_and_write_below_runs(make):
    for source in make.FIGURES.values():
        parse(shlex.split(source.command))
        assert source.path.startswith("runs/")
    assert len({source.path for source in make.FIGURES.values()}) == len(make.FIGURES)


def test_every_figure_that_a_page_shows_is_committed(make):
    for page in PAGES:
        text = page.read_text("utf-8")
        assert set(re.findall(r"\bplots/([\w.-]+\.\w+)", text)) <= {*make.FIGURES, "make.py"}, page
        images = re.findall(r'(?:\]\(|src=")([^")]*\.png)', text)
        assert all((page.parent / image).is_file() for image in images), page


def test_a_command_that_draws_two_figures_runs_once(make, runs, capsys):
    commands, _ = runs
    assert make.main(["train_copy_loss", "bench.png", "train_copy_attention.png"]) == 0
    assert commands == ["train copy --runs runs/plots --overwrite", "experiment speed"]
    figures = {path.name: path.read_text() for path in make.FOLDER.iterdir()}
    assert figures == {name: name for name in ("train_copy_loss.png", "bench.png", "train_copy_attention.png")}
    assert "made plots/bench.png" in capsys.readouterr().out


def test_without_names_all_figures_are_made(make, runs):
    assert make.main([]) == 0
    assert {path.name for path in make.FOLDER.iterdir()} == set(make.FIGURES)


def test_a_command_that_fails_copies_nothing_and_ends_the_script(make, runs, capsys):
    commands, failing = runs
    failing.add("experiment lengths --steps 2000")
    assert make.main(["lengths", "bench"]) == 3
    assert commands == ["experiment lengths --steps 2000"]
    assert list(make.FOLDER.iterdir()) == []
    assert "minitransformer experiment lengths --steps 2000 ended with status 3" in capsys.readouterr().err


def test_the_list_and_an_unknown_figure_make_nothing(make, runs, capsys):
    assert make.main(["--list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == list(make.FIGURES)
    with pytest.raises(SystemExit) as left:
        make.main(["benhc"])
    assert left.value.code == 2
    assert "unknown figure benhc.png; known figures: 00_reverse_map.png" in capsys.readouterr().err
    assert runs[0] == []
