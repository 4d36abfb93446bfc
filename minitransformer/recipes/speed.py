"""How long a step takes, measured with a model that is thrown away before the training begins."""

import dataclasses
import time
from typing import Any

from minitransformer.recipes.options import TrainOptions
from minitransformer.recipes.processes import threads_of_each
from minitransformer.recipes.recipe import Recipe
from minitransformer.training.parallel.connect import connect


def seconds_of_a_step(recipe: Recipe, options: TrainOptions, data: Any, warm_up: int = 2, steps: int = 10) -> float:
    """The mean over some steps, without the first ones, which are slower."""
    model_class, config = recipe.model(options, data)
    model = model_class(config, seed=options.seed)
    for count in (warm_up, steps):
        history = recipe.train(dataclasses.replace(options, steps=count, detect_anomaly=False), model, data)
    return history.seconds / steps


def fit_to_minutes(recipe: Recipe, options: TrainOptions, data: Any, taken: int) -> tuple[TrainOptions, float | None]:
    """With options.minutes: options with as many steps, besides those `taken`, as fit from now on, and when it ends."""
    if options.minutes is None:
        return options, None
    end = time.perf_counter() + 60 * options.minutes
    print(f"measuring the speed for {options.minutes:g} minutes of training", flush=True)
    seconds = seconds_of_a_step(recipe, options, data)
    steps = connect().collect(taken + max(1, round((end - time.perf_counter()) / seconds)))[0]  # that of the root
    return dataclasses.replace(options, steps=steps), end


def say_if_slower(recipe: Recipe, options: TrainOptions, config: Any, data: Any) -> None:
    """Print whether one thread is faster than the `options.threads` that were asked for; the training has them anyway.

    Nothing is measured for a model that is wide enough to get as many by itself.
    """
    several = options.threads or 1
    enough = connect().collect(several <= threads_of_each(config, options))[0]
    if enough:  # in the root: all processes measure, or none, and their machines may differ
        return
    print(f"measuring whether {several} threads are faster than one", flush=True)
    one, shared = (
        seconds_of_a_step(recipe, dataclasses.replace(options, threads=count), data, 1, 3) for count in (1, several)
    )
    if shared > one:
        print(f"note: a step takes {1e3 * shared:.0f} ms with {several} threads, and {1e3 * one:.0f} ms with one")
