"""`minitransformer train`: train a model on a task, evaluate it on held-out data, save it with its figures."""

import argparse
import dataclasses
from pathlib import Path

from minitransformer import __version__
from minitransformer.backend import backend_name
from minitransformer.recipes import RECIPES
from minitransformer.recipes.options import add_option, add_options
from minitransformer.recipes.processes import check_launched
from minitransformer.recipes.run import new_run, resumed_run
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
  minitransformer train reverse --mine               with your own layers (see minitransformer start)
  minitransformer train text --text my.txt           a GPT that learns to write like your text
  minitransformer train text --text new.txt --from runs/text-my       with the weights and the tokenizer of that run
  minitransformer train translation --minutes 15     German to English, as many steps as fit into 15 minutes
  minitransformer train translation --text my.tsv    your own pairs: in each line a sentence, a tab, its translation
  minitransformer train classify --text my.tsv       in each line a sentence, a tab and its label
  minitransformer train digits                       a Vision Transformer that reads handwritten digits

Resume an interrupted run. The results are bit-identical to those of an uninterrupted run:

  minitransformer train --resume runs/reverse
  minitransformer train --resume runs/reverse --steps 3000       for longer than it was started
  minitransformer train --resume runs/reverse --factor 0.03      with a smaller learning rate, after NaN or infinity

Train in several processes, with pip install -e '.[mpi]'. Each computes its part of every batch. Ctrl-C saves
a checkpoint, and any number of processes can resume the run:

  mpiexec -n 4 minitransformer train shakespeare
  mpiexec -n 4 minitransformer train reverse --deterministic     bit-identical to one process with 4 micro batches
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
SUBCOMMANDS = "task", {recipe.name: recipe.help for recipe in RECIPES.values()}


def add_arguments(parser: argparse.ArgumentParser, task: str | None) -> None:
    """Add the options of a task, or those that resume a run. The others are hidden: `run` says where they belong."""
    if task:
        recipe = RECIPES[task]
        parser.usage = f"{parser.prog} [options]"
        parser.description = TASK_DESCRIPTION.format(name=task, help=recipe.help)
        parser.add_argument("--resume", help=argparse.SUPPRESS)
        add_options(parser, recipe.defaults)
        hidden = [field for name, field in OPTIONS.items() if not hasattr(recipe.defaults, name)]
    else:
        parser.usage = f"{parser.prog} TASK [options]\n       {parser.prog} --resume RUN [options]"
        group = parser.add_argument_group("resume a run", "All other options keep the values of the run.")
        group.add_argument(
            "--resume", metavar="RUN", type=Path, help="folder of the run, such as runs/reverse, or a checkpoint"
        )
        for field in sorted(OPTIONS.values(), key=lambda field: field.metadata["advanced"]):
            if field.metadata["resumable"]:
                add_option(group, field)
        hidden = [field for field in OPTIONS.values() if not field.metadata["resumable"]]
    for field in hidden:
        add_option(parser, field, shown=False)


def run(arguments: argparse.Namespace) -> tuple[int, None]:
    """Train a new model, or resume a run, which prints the result as JSON even if its figures cannot be drawn."""
    task, resume = arguments.subcommand, arguments.resume
    if task and resume:
        raise ValueError(NO_TASK_TO_RESUME)
    if not task and not resume:
        raise ValueError(NO_TASK)
    given = {name: value for name, value in vars(arguments).items() if name in OPTIONS}
    check_launched(given)
    check_same(
        join(), {"the command": "train", "the version of minitransformer": __version__, "the backend": backend_name()}
    )
    with new_run(RECIPES[task], given) if task else resumed_run(resume, given) as training:
        training.carry_out(arguments.json)
    connect().wait()  # not after an error, as the others may be in the middle of a step
    return 0, None
