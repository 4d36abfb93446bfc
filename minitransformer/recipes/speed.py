"""How long a step takes, measured with a model that is thrown away before the training begins."""

import dataclasses
import time
from typing import Any

from minitransformer.recipes.options import TrainOptions
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
