"""How many training steps fit into so many minutes: the speed is measured before the training."""

import dataclasses
from typing import Any

from minitransformer.recipes.options import TrainOptions
from minitransformer.recipes.recipe import Recipe
from minitransformer.training.parallel.connect import connect

WARM_UP, MEASURED = 5, 40  # steps of a model that is thrown away; the first ones are slower


def steps_in(minutes: float, recipe: Recipe, options: TrainOptions, data: Any) -> int:
    """The steps of `recipe` that take about so many minutes, at least 1.

    The number is kept with the run, so that a resumed run has the same schedule.
    """
    print(f"measuring the speed for {minutes:g} minutes of training", flush=True)
    model_class, config = recipe.model(options, data)
    model = model_class(config, seed=options.seed)
    for steps in (WARM_UP, MEASURED):
        history = recipe.train(dataclasses.replace(options, steps=steps, detect_anomaly=False), model, data)
    steps = max(1, round(minutes * 60 / (history.seconds / MEASURED)))
    return connect().collect(steps)[0]  # all processes take as many steps as the root
