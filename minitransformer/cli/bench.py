"""`minitransformer bench`: the short name of `minitransformer experiment speed`."""

import argparse
from typing import Any

from minitransformer.course import import_experiments

running = import_experiments()

DESCRIPTION = f"""\
{running.find("speed").__doc__}
  minitransformer bench                       tiny, small, medium and base-like, with and without dropout
  minitransformer bench tiny --seconds 20     one size, measured for longer
  minitransformer bench --memory              peak memory, too, with each model in its own process
  minitransformer bench small --compiled      torch.compile, too, where PyTorch is installed

This is `minitransformer experiment speed`; `minitransformer experiment` lists what else can be measured.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    running.add_options(parser, "speed")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Time the steps."""
    return running.run("speed", arguments), None
