"""What a resumed run loses by other options than those that it was started with."""

import dataclasses
from collections.abc import Iterator

from minitransformer.recipes.options import TrainOptions
from minitransformer.recipes.recipe import Recipe
from minitransformer.training.saving.averaging import AverageOfLast
from minitransformer.training.saving.checkpointer import SavedRun


def other_rate(recipe: Recipe, before: TrainOptions, options: TrainOptions, saved: SavedRun) -> Iterator[str]:
    """What the changed options of a resumed run do to the learning rate, in one line, if they do anything."""
    step, config = saved.step + 1, saved.model.config
    old, new = (recipe.schedule(each, config)(step) for each in (before, options))
    if new != old and step <= options.steps:
        yield f"from step {step:,} on, the learning rate is that of the new options: {new:.6g} instead of {old:.6g}"


def other_steps(recipe: Recipe, before: TrainOptions, options: TrainOptions, saved: SavedRun) -> Iterator[str]:
    """How a run that is resumed with other --steps differs from one that was started with them, in one line."""
    config, taken = saved.model.config, range(1, saved.step + 1)
    started = dataclasses.replace(before, steps=options.steps)
    old, new = (recipe.schedule(each, config) for each in (before, started))
    lost = ["it would have had other learning rates until now"] if any(old(step) != new(step) for step in taken) else []
    averaging, kept = recipe.averaging(options), saved.state[1].get("snapshot_steps", ())
    if isinstance(averaging, AverageOfLast):
        missing = sum(averaging.includes(step) and step not in kept for step in taken)
        if missing and options.steps != before.steps:
            lost.append(f"{missing} of the sets of weights that it would average were not kept")
    if lost:
        yield f"not the same as a run started with --steps {options.steps}: {', and '.join(lost)}"
