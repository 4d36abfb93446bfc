"""`minitransformer experiment`: answer a question by measuring."""

import argparse
import json
from typing import Any

from minitransformer.cli import add_common_arguments
from minitransformer.course import import_experiments

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


def add_arguments(parser: Any) -> None:
    """Add the command's own arguments, and a parser for each experiment."""
    names = parser.add_subparsers(dest="experiment", metavar="EXPERIMENT", title="experiments")
    for name, question in running.questions().items():
        raw = argparse.RawDescriptionHelpFormatter
        inner = names.add_parser(name, help=question, description=running.find(name).__doc__, formatter_class=raw)
        running.add_options(inner, name)
        about = "seed of all random numbers (default 0)"
        inner.add_argument("--seed", type=int, default=0, metavar="N", help=about)
        add_common_arguments(inner, "experiment", inside=True)


def run(arguments: argparse.Namespace) -> int:
    """Run the experiment, or list all -> exit status."""
    if arguments.experiment:
        return running.run(arguments.experiment, arguments)
    questions = running.questions()
    for name, text in questions.items():
        quick, full = (running.duration(running.find(name).SECONDS[quick]) for quick in (True, False))
        print(f"{name:<17}{text}\n{'':<17}at most {full} on two cores; --quick: {quick}")
    if arguments.json:
        print(json.dumps(questions))
    return 0
