"""`minitransformer experiment`: answer a question by measuring."""

import argparse
from typing import Any

from minitransformer.course import import_experiments
from minitransformer.system.terminal import wrap

running = import_experiments()

DESCRIPTION = """\
Answer a question by measuring: how fast a step is, what attention replaced, how far a gradient reaches. Each experiment
prints its tables and what follows from them, saves its rows, and draws a figure.

  minitransformer experiment                      all experiments, each with its question
  minitransformer experiment table1               one of them
  minitransformer experiment table1 --quick       a small form of it
  minitransformer experiment speed tiny --json    its rows in the last line, as JSON
  minitransformer experiment speed --help         the options of one experiment
"""
SUBCOMMANDS = "experiment", running.questions()


def add_arguments(parser: Any, name: str | None) -> None:
    """The arguments of one experiment; the list of all has none."""
    if name:
        parser.description = running.find(name).__doc__
        running.add_options(parser, name)
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of all random numbers (default 0)")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Run the experiment, or list all."""
    if arguments.subcommand:
        return running.run(arguments.subcommand, arguments), None
    questions = SUBCOMMANDS[1]
    for name, text in questions.items():
        quick, full = (running.duration(running.find(name).SECONDS[quick]) for quick in (True, False))
        print(wrap(text, f"{name:<17}", " " * 17))
        print(wrap(f"at most {full} on two cores; --quick: {quick}", " " * 17, " " * 17))
    return 0, questions
