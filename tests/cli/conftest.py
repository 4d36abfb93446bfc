"""Makes the commands quick: a test of what a command says and saves does not wait for the drawing of its figures."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from minitransformer.course import own_folder


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Figures are empty files, except in tests with the marker `draws`."""
    if not request.node.get_closest_marker("draws"):
        monkeypatch.setattr(Figure, "savefig", lambda self, path, **options: Path(path).write_bytes(b""))


@pytest.fixture(autouse=True)
def few_held_out_sequences(monkeypatch):
    """A model is tested on 20 sequences instead of 2,000."""
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 20)


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
