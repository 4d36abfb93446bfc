"""`minitransformer train`: train a model on a task, evaluate it on held-out data, save it with its figures."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from minitransformer.recipes import RECIPES, Recipe
from minitransformer.recipes.options import TrainOptions, add_options, given_options, option_name
from minitransformer.recipes.recipe import delete_checkpoints, to_json_line
from minitransformer.recipes.resume import options_to_resume, read_saved_run
from minitransformer.training import Stopped

DESCRIPTION = """\
Train a model on a task, evaluate it on held-out data and save it. All output goes to runs/TASK/: the model
(model.safetensors), the log (log.csv) and the figures. `minitransformer train TASK --help` lists the options of a task.

  minitransformer train reverse
  minitransformer train sort --seed 3 --norm pre --steps 3000
  minitransformer train reverse --model gpt --positions rope
  minitransformer train reverse --mine               with your own layers (see minitransformer start)
  minitransformer train shakespeare --text my.txt --steps 500
  minitransformer train shakespeare --length 512 --grad-accumulation-steps 8      with less memory

Resume an interrupted run. The results are bit-identical to those of an uninterrupted run:

  minitransformer train --resume runs/reverse
  minitransformer train --resume runs/reverse --factor 0.03      with a smaller learning rate, after NaN or infinity
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


def check_options(arguments: argparse.Namespace) -> None:
    """Raise ValueError for an option that a resumed run cannot change."""
    if arguments.resume is None:
        return
    for recipe in RECIPES.values():
        for field in dataclasses.fields(recipe.defaults):
            if hasattr(arguments, field.name) and not field.metadata["resumable"]:
                raise ValueError(f"{option_name(field.name)} cannot be changed when a run is resumed")


def choose_options(recipe: Recipe, options: TrainOptions, arguments: argparse.Namespace) -> TrainOptions:
    """`options`, with what the command line asks for instead. Raises ValueError for an option of another task."""
    given = given_options(arguments)
    for name in given:
        if not hasattr(recipe.defaults, name):
            tasks = ", ".join(other.name for other in RECIPES.values() if hasattr(other.defaults, name))
            raise ValueError(f"{recipe.name} has no option {option_name(name)}; tasks with this option: {tasks}")
    return dataclasses.replace(options, **given)


def run(arguments: argparse.Namespace) -> int:
    """Train a new model, or resume a run."""
    if (arguments.recipe is None) == (arguments.resume is None):
        raise ValueError("give a task, such as `train reverse`, or a run to continue: `train --resume RUN`")
    check_options(arguments)
    path = saved = None
    if arguments.resume is None:
        recipe = RECIPES[arguments.recipe]
        options = choose_options(recipe, recipe.defaults, arguments)
    else:
        path, saved = read_saved_run(arguments.resume)
        recipe, options = options_to_resume(path, saved)
        options = choose_options(recipe, options, arguments)
        print(f"resuming {recipe.name} after step {saved.step:,}", flush=True)
    try:
        result = recipe.run(options, saved)
    except Stopped as stopped:
        stopped.advice = f"resume with: minitransformer train --resume {options.runs / recipe.name}"
        raise
    if path and path.parent.name == f"{recipe.name}.training":  # of version 0.1
        delete_checkpoints(path.parent)
    if arguments.json:
        print(to_json_line(result))
    return 0
