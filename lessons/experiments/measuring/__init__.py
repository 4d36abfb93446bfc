"""What several experiments measure with: clocks, steps of training, the same models in PyTorch, counts, curvature."""

import os
from pathlib import Path

from minitransformer.course import PACKAGE

LESSONS = Path(__file__).resolve().parents[2]


def environment(**changes: str) -> dict[str, str]:
    """That of a new process, which finds the experiments and the package where this one has found them."""
    paths = (str(LESSONS), str(PACKAGE.parent), os.environ.get("PYTHONPATH"))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **changes}
