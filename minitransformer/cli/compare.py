"""`minitransformer compare`: what attention replaced, measured."""

import argparse
import importlib
import json
import time
from pathlib import Path
from types import ModuleType

from minitransformer.backend import backend_name
from minitransformer.compare import EXPERIMENTS


def experiment(name: str) -> ModuleType:
    """The file of an experiment; see minitransformer/compare."""
    return importlib.import_module(f"minitransformer.compare.{name.replace('-', '_')}")


DESCRIPTION = f"""\
Measure what the Transformer won against: recurrent and convolutional layers, one fixed vector, additive attention. The
last experiment compares the curvature of the loss with the learning rate. Each experiment prints a table, and draws a
figure. Times are those of two cores; the time limit is printed beforehand.

  minitransformer compare                    all experiments
  minitransformer compare --quick            all of them in a small form
  minitransformer compare table1             one of them

The experiments:

{chr(10).join(f"  {name:<16} {experiment(name).DESCRIPTION}" for name in EXPERIMENTS)}
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    parser.add_argument(
        "experiments", nargs="*", metavar="EXPERIMENT", help=f"one or more of {', '.join(EXPERIMENTS)} (default: all)"
    )
    parser.add_argument("--quick", action="store_true", help="with fewer sizes and less training, in four minutes")
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help="save the figures in FOLDER/compare (default runs)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the experiments that were asked for, one after the other -> exit status."""
    for name in arguments.experiments:
        if name not in EXPERIMENTS:
            raise ValueError(f"unknown experiment {name!r}; known experiments: {', '.join(EXPERIMENTS)}")
    if backend_name() != "numpy":
        raise ValueError("compare counts and times what NumPy does, so --backend must be numpy")
    names = list(dict.fromkeys(arguments.experiments)) or list(EXPERIMENTS)
    limits = {name: experiment(name).SECONDS[arguments.quick] for name in names}
    print(f"{', '.join(names)}: at most {duration(sum(limits.values()))} on two cores")
    directory = arguments.runs / "compare"
    results = {}
    for name in names:
        print(f"\n{name}: {experiment(name).DESCRIPTION} (at most {duration(limits[name])})\n", flush=True)
        start = time.perf_counter()
        try:
            results[name] = experiment(name).run(arguments.quick, arguments.seed, directory)
        except ValueError as error:  # a package that it needs is missing
            if arguments.experiments:
                raise
            print(f"left out: {error}", flush=True)
            continue
        print(f"{name} took {duration(time.perf_counter() - start)}", flush=True)
    if arguments.json:
        print(json.dumps(results))
    return 0


def duration(seconds: float) -> str:
    """Such as "45 s" or "3 min 20 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
