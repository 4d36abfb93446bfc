"""How long a step takes, measured before the training."""

import dataclasses

from minitransformer.recipes import RECIPES, speed

RECIPE = RECIPES["copy"]


def test_a_step_is_timed_with_a_model_of_its_own():
    options = dataclasses.replace(RECIPE.defaults, threads=1, batch_size=2)
    assert 0 < speed.seconds_of_a_step(RECIPE, options, RECIPE.data(options), 1, 2) < 60
