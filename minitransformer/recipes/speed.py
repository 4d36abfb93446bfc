"""How long a step takes, measured with a model that is thrown away before the training begins."""

import dataclasses
from typing import Any

from minitransformer.recipes.options import TrainOptions
from minitransformer.recipes.processes import of_root, threads_of_each
from minitransformer.recipes.recipe import Recipe


def seconds_of_a_step(recipe: Recipe, options: TrainOptions, data: Any, warm_up: int = 5, steps: int = 40) -> float:
    """The mean over some steps, without the first ones, which are slower."""
    model_class, config = recipe.model(options, data)
    model = model_class(config, seed=options.seed)
    for count in (warm_up, steps):
        history = recipe.train(dataclasses.replace(options, steps=count, detect_anomaly=False), model, data)
    return history.seconds / steps


def steps_in(minutes: float, recipe: Recipe, options: TrainOptions, data: Any) -> int:
    """The steps of `recipe` that take about so many minutes, at least 1.

    The number is kept with the run, so that a resumed run has the same schedule.
    """
    print(f"measuring the speed for {minutes:g} minutes of training", flush=True)
    return of_root(max(1, round(minutes * 60 / seconds_of_a_step(recipe, options, data))))


def say_if_slower(recipe: Recipe, options: TrainOptions, config: Any, data: Any) -> None:
    """Print whether one thread is faster than the `options.threads` that were asked for; the training has them anyway.

    Nothing is measured for a model that is wide enough to get as many by itself.
    """
    several = options.threads or 1
    if of_root(
        several <= threads_of_each(config, options)
    ):  # all processes measure, or none: their machines may differ
        return
    print(f"measuring whether {several} threads are faster than one", flush=True)
    one, shared = (
        seconds_of_a_step(recipe, dataclasses.replace(options, threads=count), data, 1, 3) for count in (1, several)
    )
    if shared > one:
        print(f"note: a step takes {1e3 * shared:.0f} ms with {several} threads, and {1e3 * one:.0f} ms with one")
