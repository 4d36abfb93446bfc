"""`minitransformer train`: train a model on a task, evaluate it on held-out data, save it with its figures."""

import argparse
import dataclasses
from functools import partial
from pathlib import Path

from minitransformer import __version__
from minitransformer.backend import backend_name
from minitransformer.cli import Parser, add_common_arguments
from minitransformer.recipes import RECIPES, Recipe
from minitransformer.recipes.options import add_option, add_options, option_name
from minitransformer.recipes.processes import check_launched
from minitransformer.recipes.run import new_run, no_such_option, resumed_run
from minitransformer.training.parallel.connect import connect, join
from minitransformer.training.parallel.faults import check_same

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
  minitransformer train text --text my.txt           a GPT that learns to write like your text
  minitransformer train text --text new.txt --from runs/text-my       with the weights and the tokenizer of that run
  minitransformer train translation --minutes 15     German to English, as many steps as fit into 15 minutes
  minitransformer train translation --text my.tsv    your own pairs: in each line a sentence, a tab, its translation
  minitransformer train classify --text my.tsv       in each line a sentence, a tab and its label
  minitransformer train digits                       a Vision Transformer that reads handwritten digits
  minitransformer train text --length 512 --grad-accumulation-steps 8      with less memory

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
NO_TASK = "give a task, such as `train reverse`, or a run to continue: `train --resume RUN`"
NO_TASK_TO_RESUME = "a run is resumed with its own task, so give none: `train --resume RUN`"
OPTIONS = {field.name: field for recipe in reversed(RECIPES.values()) for field in dataclasses.fields(recipe.defaults)}


def add_arguments(parser: Parser) -> None:
    """Add the command's own arguments: those that resume a run, and the tasks."""
    group = parser.add_argument_group(
        "resume a run", "These options can be changed. All others keep the values of the run."
    )
    group.add_argument(
        "--resume", metavar="RUN", type=Path, help="folder of the run, such as runs/reverse, or a checkpoint"
    )
    for field in sorted(OPTIONS.values(), key=lambda field: field.metadata["advanced"]):
        if field.metadata["resumable"]:
            add_option(group, field)
        else:
            option = option_name(field.name)
            parser.refused[option] = f"{option} must follow a task, and cannot be changed when a run is resumed"
    parser.add_argument("--seed", default=argparse.SUPPRESS, help=argparse.SUPPRESS)  # refused, as it is an option
    tasks = parser.add_subparsers(dest="recipe", metavar="TASK", title="tasks")
    for recipe in RECIPES.values():
        tasks.add_parser(recipe.name, help=recipe.help, declare=partial(declare_options, recipe=recipe))


def declare_options(parser: Parser, recipe: Recipe) -> None:
    """Add the options of one task, and say which other tasks have those that it lacks."""
    parser.usage = f"{parser.prog} [options]"
    parser.description = TASK_DESCRIPTION.format(name=recipe.name, help=recipe.help)
    add_options(parser, recipe.defaults)
    lacking = (name for name in OPTIONS if not hasattr(recipe.defaults, name))
    parser.refused = {
        "--resume": NO_TASK_TO_RESUME,
        **{option_name(name): no_such_option(recipe, name) for name in lacking},
    }
    add_common_arguments(parser, "train", inside=True)


def run(arguments: argparse.Namespace) -> int:
    """Train a new model, or resume a run."""
    if (arguments.recipe is None) == (arguments.resume is None):
        raise ValueError(NO_TASK)
    given = {name: value for name, value in vars(arguments).items() if name in OPTIONS}
    check_launched(given)
    check_same(
        join(), {"the command": "train", "the version of minitransformer": __version__, "the backend": backend_name()}
    )
    if arguments.resume is None:
        recipe = RECIPES[arguments.recipe]
        opened = new_run(recipe, given)
    else:
        opened = resumed_run(arguments.resume, given)
    with opened as training:
        training.carry_out(arguments.json)
    connect().wait()  # not after an error, as the others may be in the middle of a step
    return 0
