"""Makes the commands quick: a test of what a command says and saves does not wait for the drawing of its figures.

And what several commands read: lines that somebody types, and runs that are made once, of which a test gets a copy.
"""

import io
import shutil
import sys

import pytest

from minitransformer.course import own_folder
from tests.cli.run import COPY, train_once
from tests.drawing import leave_undrawn


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Figures are empty files, except in tests with the marker `draws`."""
    if not request.node.get_closest_marker("draws"):
        leave_undrawn(monkeypatch)


@pytest.fixture(autouse=True)
def few_held_out_sequences(monkeypatch):
    """A model is tested on 20 sequences instead of 2,000."""
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 20)


@pytest.fixture(autouse=True)
def short_samples(monkeypatch):
    """A writer's samples have an eighth of their length: most of a short training is sampling."""
    monkeypatch.setattr("minitransformer.recipes.text.SHORT", 20)
    monkeypatch.setattr("minitransformer.recipes.text.LONG", 100)


@pytest.fixture(autouse=True)
def usual_width(monkeypatch):
    """Lines are wrapped at 80 columns, whatever the terminal that the tests run in."""
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(autouse=True)
def no_lines_of_progress(monkeypatch):
    """What a command prints does not depend on how busy the machine is."""
    monkeypatch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))


@pytest.fixture(autouse=True)
def own_exercises(tmp_path, monkeypatch):
    """The learner's folder is a temporary one, unless a test has made one with `init`, and never a real learner's."""
    monkeypatch.setattr(
        "minitransformer.exercises.workshop.my_exercises", lambda: (own_folder() or tmp_path) / "my_exercises"
    )


@pytest.fixture
def typed(monkeypatch):
    """typed(lines, terminal): standard input has these lines, on a terminal or from a pipe."""

    def give(*lines, terminal=False):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: terminal, raising=False)

    return give


@pytest.fixture(scope="session")
def originals(tmp_path_factory):
    """A folder of runs of COPY: stopped after step 3, then resumed to its end; whole, also with 9 steps; damageable."""
    root = tmp_path_factory.mktemp("originals")
    assert train_once(root, *COPY, "--runs", "stopped", stop=3) == 130
    shutil.copytree(root / "stopped", root / "finished")
    assert train_once(root, "--resume", "finished/copy") == 0
    assert train_once(root, *COPY, "--runs", "whole") == 0
    assert train_once(root, *COPY, "--steps", 9, "--runs", "longer") == 0
    kept = ("--checkpoint-interval", 1, "--keep-checkpoints", 3)
    assert train_once(root, *COPY, *kept, "--runs", "three", stop=4) == 130
    return root


@pytest.fixture
def copy_of(originals, tmp_path):
    """copy_of("stopped"): the folder of a copy of this run, in tmp_path/runs."""
    return lambda name: shutil.copytree(originals / name / "copy", tmp_path / "runs" / "copy")
