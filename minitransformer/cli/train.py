"""`minitransformer train`: train a model on a task, evaluate it on held-out data, save it with its figures."""

import argparse
import contextlib
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from minitransformer import __version__
from minitransformer.cli import complain, explain
from minitransformer.recipes import RECIPES
from minitransformer.recipes.options import add_options, given_options
from minitransformer.recipes.run import choose_options, resume, start
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.faults import check_same, ending_together

DESCRIPTION = """\
Train a model on a task, evaluate it on held-out data and save it. Each run has a folder of its own, such as
runs/reverse or runs/reverse-seed-3, for the model (model.safetensors), its options (config.json), the log (log.csv) and
the figures. `minitransformer train TASK --help` lists the options of a task.

  minitransformer train reverse
  minitransformer train sort --seed 3 --norm pre --steps 3000
  minitransformer train reverse --model gpt --positions rope
  minitransformer train reverse --model lstm-attention        what the Transformer replaced
  minitransformer train recall --pairs 26 --attention windowed --window 8
  minitransformer train reverse --mine               with your own layers (see minitransformer start)
  minitransformer train shakespeare --text my.txt --steps 500
  minitransformer train translation --minutes 15     German to English, as many steps as fit into 15 minutes
  minitransformer train translation --text my.tsv    your own pairs: in each line a sentence, a tab, its translation
  minitransformer train shakespeare --length 512 --grad-accumulation-steps 8      with less memory

Resume an interrupted run. The results are bit-identical to those of an uninterrupted run:

  minitransformer train --resume runs/reverse
  minitransformer train --resume runs/reverse --steps 3000       for longer than it was started
  minitransformer train --resume runs/reverse --factor 0.03      with a smaller learning rate, after NaN or infinity

Train in several processes, with pip install -e '.[mpi]'. Each computes its part of every batch. Ctrl-C saves
a checkpoint, and any number of processes can resume the run:

  mpiexec -n 4 minitransformer train shakespeare
  mpiexec -n 4 minitransformer train reverse --deterministic     bit-identical to one process with 4 micro batches
  mpiexec -n 2 minitransformer train --resume runs/shakespeare
"""
TASK_DESCRIPTION = """\
{name}: {help}

Train a model on this task, evaluate it on held-out data and save it:

  minitransformer train {name}
  minitransformer train {name} --steps 500 --seed 3
"""


def add_arguments(parser: Any) -> list[Any]:
    """The command's own arguments -> the parsers of the tasks."""
    group = parser.add_argument_group(
        "resume a run", "These options can be changed. All others keep the values of the run."
    )
    group.add_argument(
        "--resume", metavar="RUN", type=Path, help="folder of the run, such as runs/reverse, or a checkpoint"
    )
    for recipe in RECIPES.values():
        add_options(group, recipe.defaults, resumable_only=True)
    add_other_options(parser)
    tasks = parser.add_subparsers(dest="recipe", metavar="TASK", title="tasks")
    parsers = []
    for recipe in RECIPES.values():
        about = TASK_DESCRIPTION.format(name=recipe.name, help=recipe.help)
        raw = argparse.RawDescriptionHelpFormatter
        task = tasks.add_parser(recipe.name, help=recipe.help, description=about, formatter_class=raw)
        add_options(task, recipe.defaults)
        add_other_options(task)
        task.add_argument("--resume", type=Path, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        parsers.append(task)
    return parsers


def add_other_options(parser: Any) -> None:
    """Let `parser` read the options that it does not offer, so that `run` can say why they are refused."""
    for recipe in RECIPES.values():
        add_options(parser, recipe.defaults, hidden=True)


def run(arguments: argparse.Namespace) -> int:
    """Train a new model, or resume a run."""
    if (arguments.recipe is None) == (arguments.resume is None):
        raise ValueError("give a task, such as `train reverse`, or a run to continue: `train --resume RUN`")
    given = given_options(arguments)
    with ending_together(connect(), partial(report, arguments)):
        check_same(connect(), {"the version of minitransformer": __version__})
        if arguments.resume is None:
            recipe = RECIPES[arguments.recipe]
            start(recipe, choose_options(recipe, recipe.defaults, given), arguments.json)
        else:
            resume(arguments.resume, given, arguments.json)
    return 0


def report(arguments: argparse.Namespace, error: BaseException, where: str) -> int:
    """Print the error that ends all of several processes -> exit status. `where` names the process."""
    with contextlib.redirect_stderr(sys.__stderr__):  # this process is silent if it is not the first one
        if isinstance(error, KeyboardInterrupt):
            complain(arguments, f"{where}stopped")
            return 130
        try:
            if not arguments.debug:
                return explain(error, arguments, where)
        except Exception:
            pass
        traceback.print_exception(error)
        return 1
