"""`minitransformer train`: train a model on a task, evaluate it on held-out data, save it with its figures."""

import argparse
from pathlib import Path
from typing import Any

from minitransformer.recipes import RECIPES
from minitransformer.recipes.options import add_options, from_arguments
from minitransformer.recipes.recipe import to_json_line
from minitransformer.recipes.resume import options_to_resume, read_saved_run
from minitransformer.training import Stopped

HELP = "train a model on a toy task or on text, and evaluate it on held-out data"
DESCRIPTION = """\
Train a model on a task, evaluate it on data that it has never seen, and save it. Everything goes to runs/TASK/: the
model (model.safetensors), the log (log.csv) and the figures. `minitransformer train TASK --help` lists the options of a
task.

  minitransformer train reverse
  minitransformer train sort --seed 3 --norm pre --steps 3000
  minitransformer train reverse --model gpt --positions rope
  minitransformer train reverse --mine               with the layers that you have written (minitransformer start)
  minitransformer train shakespeare --text my.txt --steps 500
  minitransformer train shakespeare --length 512 --grad-accumulation-steps 8      where memory is short

A run that was interrupted continues where it stopped, with bit-identical results:

  minitransformer train --resume runs/reverse
  minitransformer train --resume runs/reverse --factor 0.03      more slowly, where numbers went wrong
"""


def add_arguments(parser: Any) -> list[Any]:
    """The command's own arguments -> the parsers of the tasks."""
    group = parser.add_argument_group("to resume a run")
    group.add_argument("--resume", metavar="RUN", type=Path, help="a folder such as runs/reverse, or a checkpoint")
    for recipe in RECIPES.values():
        add_options(group, recipe.defaults, resumable_only=True)
    tasks = parser.add_subparsers(dest="recipe", metavar="TASK", title="tasks")
    parsers = []
    for recipe in RECIPES.values():
        task = tasks.add_parser(recipe.name, help=recipe.help, description=f"Train {recipe.name}: {recipe.help}.")
        add_options(task, recipe.defaults)
        parsers.append(task)
    return parsers


def run(arguments: argparse.Namespace) -> int:
    """Train a new model, or resume a run."""
    if (arguments.recipe is None) == (arguments.resume is None):
        raise ValueError("give a task, such as `train reverse`, or a run to continue: `train --resume RUN`")
    if arguments.resume is None:
        recipe, saved = RECIPES[arguments.recipe], None
        options = from_arguments(recipe.defaults, arguments)
    else:
        path, saved = read_saved_run(arguments.resume)
        recipe, options = options_to_resume(path, saved)
        options = from_arguments(options, arguments)
        print(f"resuming {recipe.name} after step {saved.step:,}", flush=True)
    try:
        result = recipe.run(options, saved)
    except Stopped as stopped:
        stopped.advice = f"resume with: minitransformer train --resume {options.runs / recipe.name}"
        raise
    if arguments.json:
        print(to_json_line(result))
    return 0
