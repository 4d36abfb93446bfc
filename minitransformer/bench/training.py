"""How the benchmarks train a model: one step to be timed, or a toy task from start to end."""

import dataclasses
from collections.abc import Callable
from typing import Any

from minitransformer.core import Layer
from minitransformer.data import ToyTask, get_task
from minitransformer.models import Transformer, named_config
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, Diagnostics, History, step_with

MAX_NORM = 1.0  # gradients are clipped to this norm
LABEL_SMOOTHING = 0.1  # epsilon_ls of the paper


def make_training_step(
    model: Layer, label_smoothing: float = LABEL_SMOOTHING, threads: int | None = None
) -> Callable[[Any, float], Any]:
    """Return a function (batch, learning rate) -> loss: forward, loss, backward, clipping and Adam for `model`.

    `threads` is the number of threads that share a batch, by default as many as NumPy's matrix product uses.
    """
    workers = DataParallel(model, CrossEntropyLoss(label_smoothing), threads)
    optimizer = Adam(model.parameters())
    optimizer.team, diagnostics = workers.team, Diagnostics(workers, workers, optimizer)

    def step(batch: Any, lr: float) -> Any:
        optimizer.lr = lr
        return step_with(diagnostics, optimizer, batch, MAX_NORM, check=diagnostics.check)[0].loss

    return step


def train_toy_task(
    name: str, seed: int = 0, steps: int | None = None, **config: Any
) -> tuple[Transformer, ToyTask, History]:
    """Train the tiny model on a toy task with its recipe -> the model, its task and its history.

    `steps` defaults to those of the recipe. `config` replaces fields of the configuration; there is no dropout.
    """
    from minitransformer.recipes import get_recipe

    task, recipe = get_task(name), get_recipe(name)
    model = Transformer(named_config("tiny", len(task.vocabulary), dropout=0.0, **config), seed=seed)
    options = dataclasses.replace(recipe.defaults, seed=seed, steps=steps or recipe.defaults.steps)
    return model, task, recipe.train(options, model, task)
