"""Which position choices carry a toy task beyond the lengths that it was learnt on."""

import dataclasses

import numpy as np

from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score
from minitransformer.layers.positions import POSITIONS
from minitransformer.models import Transformer, named_config
from minitransformer.process import limit_threads
from minitransformer.recipes import RECIPES

TASKS = ("copy", "reverse")
LENGTHS = (6, 9, 12, 13, 14, 16, 20, 24, 32, 48)  # symbols of a source; the toy tasks teach up to 12
TESTED = 200  # sequences of each length


def jobs():
    """(task, positions) for everything that is to be trained."""
    return [(task, positions) for task in TASKS for positions in POSITIONS]


def learn_and_test(task_name, positions, seed=0, steps=None):
    """Train the tiny model as `train` does, and test it at LENGTHS -> dict with the share of exact answers of each."""
    task, recipe = get_task(task_name), RECIPES[task_name]
    max_len = max(LENGTHS) + 8
    switches = {"dropout": 0.0, "positions": positions, "max_len": max_len}
    model = Transformer(named_config("tiny", len(task.vocabulary), **switches), seed=seed)
    options = dataclasses.replace(recipe.defaults, steps=steps or recipe.defaults.steps, seed=seed)
    with limit_threads(1):
        history = recipe.train(options, model, task)
        scores = [score_at(model, task_name, length, seed) for length in LENGTHS]
    return {"task": task_name, "positions": positions, "exact_match": scores, "seconds": history.seconds}


def score_at(model, task_name, length, seed):
    """The share of exact answers to sources of `length` symbols."""
    task = get_task(task_name)
    task.max_len = length
    batch = task.batch(np.random.default_rng([seed, 4, length]), TESTED, held_out=True, min_len=length)
    return decode_and_score(model, batch)[1]
