"""`minitransformer lengths`: test every choice of positions beyond the lengths that it was trained on."""

import argparse
import json
import os
from pathlib import Path

from minitransformer.bench import lengths

HELP = "test every choice of positions on sequences longer than those in training"
DESCRIPTION = """\
Train the tiny model on copy and reverse with each of the six choices of positions, on up to 12 letters, and then test
it on up to 48. The processors share the twelve trainings (about six minutes on two).

  minitransformer lengths
  minitransformer lengths --steps 500       shorter and less thorough
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--steps", type=int, help="training steps (default: the task's own)")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count(), help="trainings at a time (default: number of processors)"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder for RUNS/lengths/ (default runs)")


def run(arguments: argparse.Namespace) -> int:
    """Train and test all choices -> exit status."""
    for name in ("steps", "jobs"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    result = lengths.run(arguments.seed, arguments.steps, arguments.jobs, arguments.runs / "lengths")
    if arguments.json:
        print(json.dumps(result))
    return 0
