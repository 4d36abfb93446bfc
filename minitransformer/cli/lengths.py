"""`minitransformer lengths`: test all positional encodings on sequences longer than in training."""

import argparse
import json
import os
from pathlib import Path

from minitransformer.bench import lengths

DESCRIPTION = """\
Compare the six positional encodings. The tiny model is trained with each of them on copy and on reverse, with up to 12
letters, and then tested with up to 48. The twelve trainings run in parallel (about six minutes on two processors).

  minitransformer lengths
  minitransformer lengths --steps 500       with less training
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument("--steps", type=int, metavar="N", help="training steps of each model (default: as in train)")
    parser.add_argument(
        "--jobs",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="trainings that run in parallel (default: number of processors)",
    )
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help="save the figure in FOLDER/lengths (default runs)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Train and test with all positional encodings -> exit status."""
    for name in ("steps", "jobs"):
        if getattr(arguments, name) is not None and getattr(arguments, name) < 1:
            raise ValueError(f"--{name} must be at least 1, got {getattr(arguments, name)}")
    result = lengths.run(arguments.seed, arguments.steps, arguments.jobs, arguments.runs / "lengths")
    if arguments.json:
        print(json.dumps(result))
    return 0
