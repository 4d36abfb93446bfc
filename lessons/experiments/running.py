"""Runs an experiment: measure, print the tables and findings, save the rows, draw the figure."""

import argparse
import datetime
import importlib
import importlib.metadata
import json
import os
import platform
import re
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np

from experiments import EXPERIMENTS
from experiments.measuring.steps import torch_is_installed
from experiments.report import Options, Parser, Rows, as_text
from minitransformer.backend import backend_name
from minitransformer.plotting import save_figure
from minitransformer.system.files import atomic_write
from minitransformer.system.process import blas_threads, keep_freed_memory, limit_threads
from minitransformer.system.terminal import wrap


def find(name: str) -> Any:
    """The module of an experiment."""
    return importlib.import_module(f"experiments.{name.replace('-', '_')}")


def question(name: str) -> str:
    """The first line of its docstring."""
    return find(name).__doc__.splitlines()[0]


def questions() -> dict[str, str]:
    """{name: question} of all experiments."""
    return {name: question(name) for name in EXPERIMENTS}


def add_options(parser: Parser, name: str) -> None:
    """The options of every experiment, and those of this one."""
    parser.add_argument("--quick", action="store_true", help="a small form, for a first look")
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help=f"save rows and figure as FOLDER/experiments/{name}.json and .png (default runs)",
    )
    experiment = find(name)
    if hasattr(experiment, "PER_ROW"):
        about = f"seconds per row (default {experiment.PER_ROW:g}; a tenth with --quick)"
        parser.add_argument("--seconds", type=float, metavar="X", help=about)
    if hasattr(experiment, "SEEDS"):
        about = f"number of seeds, 1 to 10 (default {experiment.SEEDS[False]})"
        parser.add_argument("--seeds", type=int, metavar="N", help=about)
    if hasattr(experiment, "add_options"):
        experiment.add_options(parser)


def run(name: str, options: Options) -> int:
    """Run one experiment -> exit status.

    Raises ValueError for options that it cannot use, and if a package that it needs is missing.
    """
    experiment, command = find(name), command_line(name, options)
    complete(name, options, command)
    print(wrap(question(name)))
    print(f"(at most {duration(experiment.SECONDS[options.quick])} on two cores)\n", flush=True)
    start = time.perf_counter()
    keep_freed_memory()
    with limit_threads(getattr(experiment, "THREADS", 1)):
        rows: Rows = experiment.rows(options)
    for table in experiment.tables(rows):
        print(f"{as_text(table)}\n")
    findings = experiment.findings(rows)
    for finding in findings:
        print(wrap(finding, "", "  "))
    path = options.runs / "experiments" / f"{'-'.join([name, *getattr(options, 'parts', [])])}.json"
    if figure := experiment.draw(rows) if hasattr(experiment, "draw") else None:
        save_figure(figure, path.with_suffix(".png"))
        print(f"\nsaved {path.with_suffix('.png')}")
    record = {
        "experiment": name,
        "command": command,
        "date": str(datetime.date.today()),
        "machine": describe_machine(),
        "rows": rows,
        "findings": findings,
        "passed": experiment.passed(rows) if hasattr(experiment, "passed") else True,
    }
    with atomic_write(path) as unfinished:
        unfinished.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf8")
    options.unfinished.unlink(missing_ok=True)
    print(f"saved {path}\n{name} took {duration(time.perf_counter() - start)}")
    if options.json:
        print(json.dumps(record))
    return 0 if record["passed"] else 1


def complete(name: str, options: Options, command: str) -> None:
    """Put in the defaults that depend on `quick`. Raises ValueError for options that cannot be used."""
    experiment = find(name)
    if backend_name() != "numpy" and not getattr(experiment, "ON_ANY_DEVICE", False):
        raise ValueError(
            f"{name} measures what NumPy does, so --backend must be numpy; on a GPU, use experiment device"
        )
    if hasattr(experiment, "PER_ROW"):
        if options.seconds is None:
            options.seconds = experiment.PER_ROW / (10 if options.quick else 1)
        if not options.seconds > 0:
            raise ValueError(f"--seconds must be greater than 0, got {options.seconds}")
    if hasattr(experiment, "SEEDS"):
        count = experiment.SEEDS[options.quick] if options.seeds is None else options.seeds
        if not 1 <= count <= 10:
            raise ValueError(f"--seeds must be from 1 to 10, got {count}")
        options.seeds = range(options.seed, options.seed + count)
    words = re.findall(r"[\w.]+", command)[2:]
    options.unfinished = options.runs / "experiments" / f"{'-'.join(words)}.jsonl"
    if hasattr(experiment, "check"):
        experiment.check(options)


def command_line(name: str, options: Options) -> str:
    """The command with all options that differ from their defaults."""
    parser = argparse.ArgumentParser()
    add_options(parser, name)
    parser.add_argument("--seed", default=0)
    words = ["minitransformer", "experiment", name]
    for action in parser._actions:
        value = getattr(options, action.dest, action.default)
        if action.dest not in ("help", "runs") and value != action.default:
            values = [] if value is True else value if isinstance(value, list) else [value]
            words += [*action.option_strings[:1], *map(str, values)]
    return shlex.join(words)


def describe_machine() -> str:
    """The versions, the processor's architecture and the number of threads, on one line."""
    versions = f"NumPy {np.__version__}"
    if torch_is_installed():
        versions += f", PyTorch {importlib.metadata.version('torch')}"
    place = f"{platform.machine()}, {os.cpu_count()} cores, threads: {blas_threads()}"
    return f"{versions}, Python {platform.python_version()}, {place}"


def duration(seconds: float) -> str:
    """Such as "45 s" or "3 min 20 s"."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
