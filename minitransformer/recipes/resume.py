"""Resuming a run: the recipe and the options with which it was started."""

from pathlib import Path
from typing import Any

from minitransformer.recipes import get_recipe
from minitransformer.recipes.options import TrainOptions, from_json
from minitransformer.recipes.recipe import Recipe
from minitransformer.training.checkpointer import SavedRun, newest_checkpoint, read_run

FOR_ONE_CALL = {"fresh": False, "force": False, "detect_anomaly": False}  # not taken over when a run is resumed
RENAMED = {"every": "checkpoint_interval", "keep": "keep_checkpoints", "accumulate": "grad_accumulation_steps"}


def read_saved_run(path: str | Path) -> tuple[Path, SavedRun]:
    """The newest checkpoint of a run -> its path, and the run. `path` is the run's folder or one of its checkpoints.

    Raises FileNotFoundError if there is none, and ValueError if it holds no unfinished run.
    """
    checkpoints = Path(path) / "checkpoints"
    newest = newest_checkpoint(checkpoints if checkpoints.is_dir() else path)
    return newest, read_run(newest)


def options_to_resume(path: Path, saved: SavedRun) -> tuple[Recipe, TrainOptions]:
    """The recipe of the run at `path`, and the options that it was started with.

    Raises ValueError if the file does not name them. Version 0.1 used other names for some options.
    """
    about: dict[str, Any] = saved.about
    name, values = about.get("recipe"), about.get("options")
    folder = path.parent.parent
    runs = folder.parent
    if values is None and isinstance(about.get("arguments"), dict):  # of version 0.1: runs/NAME.training/step-*
        values = {RENAMED.get(key, key): value for key, value in about["arguments"].items()}
        name, runs = values.get("task"), folder
    if not isinstance(name, str) or not isinstance(values, dict):
        raise ValueError(f"{path} does not say with which options it was started")
    recipe = get_recipe(name)
    try:
        return recipe, from_json(recipe.defaults, {**values, **FOR_ONE_CALL, "runs": str(runs)})
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} does not hold options of {name}: {error}") from error
