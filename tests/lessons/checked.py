"""Runs a lesson as a script, `python tests/lessons/checked.py LESSON.py`, and fails if its figure cannot be read."""

import runpy
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[2])

from minitransformer import plotting  # noqa: E402
from tests.drawing import faults  # noqa: E402


def save_checked(figure, path, save_figure=plotting.save_figure):
    """Write the figure, unless it has faults."""
    found = faults(figure)
    assert not found, "\n".join([f"the figure {Path(path).name} cannot be read:", *found])
    save_figure(figure, path)


if __name__ == "__main__":
    plotting.save_figure = save_checked
    sys.argv, sys.path[0] = sys.argv[1:], str(Path(sys.argv[1]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
