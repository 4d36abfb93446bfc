"""Runs: a recipe is trained in a folder of its own; a run that was interrupted is resumed."""

import contextlib
import dataclasses
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minitransformer.recipes import RECIPES, get_recipe
from minitransformer.recipes.changes import changes, shared_threads
from minitransformer.recipes.folder import RunFolder, run_name
from minitransformer.recipes.memory import check_memory
from minitransformer.recipes.options import TrainOptions, from_json, option_name, to_json
from minitransformer.recipes.recipe import Recipe, Trained
from minitransformer.recipes.speed import steps_in
from minitransformer.recipes.together import check_agreement, root_has_locked
from minitransformer.system.files import named_in_errors, reason
from minitransformer.system.process import limit_threads, threads_are_chosen
from minitransformer.training import Checkpointer, History, NotFiniteError, Stopped, read_run, save_checkpoint
from minitransformer.training.checkpointer import SavedRun, newest_checkpoint
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.threads import default_team_size, default_threads

FOR_ONE_CALL = {"overwrite": False, "force": False, "detect_anomaly": False}  # not taken over when a run is resumed
PLAYS = "Shakespeare's plays"


def start(recipe: Recipe, options: TrainOptions, as_json: bool = False) -> dict[str, Any]:
    """Train a new model in a folder of its own, and evaluate it -> the result.

    Saves the model, its configuration, log, figures and samples, and prints a table; with `as_json` also the result as
    JSON in the last line. Raises ValueError if the folder holds another run, unless `options.overwrite`, and if another
    training uses it.
    """
    folder = RunFolder(options.runs / (options.name or run_name(recipe.name, options, recipe.defaults)))
    with root_has_locked(folder.path):
        if not options.overwrite and connect().is_root:
            folder.check_unused()
        return Run(recipe, options, recipe.data(options), folder).carry_out(as_json)


def resume(path: Path, given: dict[str, Any], as_json: bool = False) -> dict[str, Any]:
    """Continue the run in the folder `path` with the options that are `given` instead of its own -> as `start`.

    `path` may also be one of its checkpoints. Raises ValueError for an option that cannot be changed, for another text
    than the run was started with, and if another training uses the folder; OSError if there is nothing to resume.
    """
    folder = RunFolder(find_checkpoint(path).parent.parent)
    with root_has_locked(folder.path):
        checkpoint = find_checkpoint(path)
        saved = read_run(checkpoint)
        recipe, before = saved_options(checkpoint, saved)
        options = choose_options(recipe, before, given, resumed=True)
        if options.steps < saved.step:
            raise ValueError(f"--steps must be at least {saved.step}, the steps that were taken, got {options.steps}")
        data = load_same_data(recipe, options, saved)
        if "threads" not in given:
            options = dataclasses.replace(options, threads=shared_threads(saved, connect().size))
        if connect().is_root:
            lines = changes(recipe, before, options, saved, connect().size)
            print(f"resuming {recipe.name} after step {saved.step:,}", *lines, sep="\n")
        return Run(recipe, options, data, folder, saved).carry_out(as_json)


def choose_options(recipe: Recipe, options: TrainOptions, given: dict[str, Any], resumed: bool = False) -> TrainOptions:
    """`options` with those that are `given` instead, {name of the field: value}.

    Raises ValueError for an option of other tasks, and for one that cannot be changed when a run is `resumed`.
    """
    if given.keys() >= {"steps", "minutes"}:
        raise ValueError("--steps and --minutes exclude each other")
    fields = {field.name: field for field in dataclasses.fields(options)}
    for name in given:
        if name not in fields:
            tasks = ", ".join(other.name for other in RECIPES.values() if hasattr(other.defaults, name))
            raise ValueError(f"{recipe.name} has no option {option_name(name)}; tasks with this option: {tasks}")
        if resumed and not fields[name].metadata["resumable"]:
            raise ValueError(f"{option_name(name)} cannot be changed when a run is resumed")
    return dataclasses.replace(options, **given)


def find_checkpoint(path: Path) -> Path:
    """The newest checkpoint of the run in the folder `path`, or `path` itself if it is a checkpoint.

    Raises FileNotFoundError if there is none, and ValueError if the run is finished or the file belongs to no run.
    """
    if (path / "model.safetensors").exists() and not (path / "checkpoints").is_dir():
        raise ValueError(f"the run in {path} is finished: there is nothing to resume")
    checkpoint = newest_checkpoint(path / "checkpoints" if (path / "checkpoints").is_dir() else path)
    if not checkpoint.parent.name:
        checkpoint = checkpoint.absolute()
    if checkpoint.parent.name != "checkpoints":
        read_run(checkpoint)  # says what is wrong with the file, if it is no checkpoint
        raise ValueError(f"{checkpoint} is not in the folder of a run: move it to runs/NAME/checkpoints/")
    return checkpoint


def saved_options(checkpoint: Path, saved: SavedRun) -> tuple[Recipe, TrainOptions]:
    """The recipe of a saved run and the options that it was started with; ValueError if `checkpoint` names none."""
    name, values, source = (saved.about.get(key) for key in ("recipe", "options", "data"))
    if not isinstance(name, str) or not isinstance(values, dict) or not isinstance(source, dict):
        raise ValueError(f"{checkpoint} does not say with which options it was started")
    recipe = get_recipe(name)
    try:
        values = {**values, **source, **FOR_ONE_CALL, "threads": saved.num_threads}
        return recipe, from_json(recipe.defaults, values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{checkpoint} does not hold options of {name}: {error}") from error


def load_same_data(recipe: Recipe, options: TrainOptions, saved: SavedRun) -> Any:
    """The data of a saved run. Raises ValueError if its content has changed, and FileNotFoundError if it is missing."""
    try:
        data = recipe.data(options)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}: if the text was moved, say where it is with --text") from error
    before, now = saved.about["data"], recipe.source(options, data)
    if before.get("sha256") != now.get("sha256"):
        old, new = (
            f"{each.get('text') or PLAYS} (SHA-256 {str(each.get('sha256'))[:12]}...)" for each in (before, now)
        )
        raise ValueError(f"this run was started with {old}, and the content of {new} is another")
    return data


class Interrupted(Stopped):
    """A process was interrupted in the middle of a step, which other processes may still compute."""


class Run:
    """One training of a recipe in its folder, from the first step or from a `saved` one."""

    def __init__(
        self, recipe: Recipe, options: TrainOptions, data: Any, folder: RunFolder, saved: SavedRun | None = None
    ) -> None:
        model_class, config = recipe.model(options, data)
        self.communicator = connect()
        self.recipe, self.data, self.folder, self.saved = recipe, data, folder, saved
        self.source = recipe.source(options, data)
        check_agreement(self.communicator, recipe.name, saved.step if saved else 0, options, self.source)
        threads = options.threads or min(self.communicator.collect(self.default_threads(config, options)))
        self.options = dataclasses.replace(options, threads=threads)
        check_memory(recipe, self.options, data, model_class, config, resumed=saved is not None)
        if options.minutes is not None and not saved:
            self.options = dataclasses.replace(
                self.options, steps=steps_in(options.minutes, recipe, self.options, data)
            )
        self.model = saved.model if saved else model_class(config, seed=options.seed)
        self.evaluations: list[Any] = saved.about.get("evaluations", []) if saved else []
        self.about = {"recipe": recipe.name, "options": to_json(self.options), "data": self.source}

    def default_threads(self, config: Any, options: TrainOptions) -> int:
        """Threads of this process, if the processes on this machine share its processors."""
        share = -(-options.micro_batch_size // self.communicator.size)
        threads = default_threads(config, share)
        cores = default_team_size() // self.communicator.processes_here
        return threads if threads_are_chosen() else max(1, min(threads, cores))

    def carry_out(self, as_json: bool) -> dict[str, Any]:
        """Train, evaluate, print the table and save the model -> the result. Of several processes, the root does this.

        The figures come last, so that nothing is lost if they cannot be drawn.
        """
        result = self.carry_out_alone(as_json) if self.communicator.is_root else self.help_root()
        self.communicator.wait()  # not after an error, as the others may be in the middle of a step
        return result

    def help_root(self) -> dict[str, Any]:
        """Take part in the training."""
        with self.explaining_errors():
            self.train()
        return {}

    def carry_out_alone(self, as_json: bool) -> dict[str, Any]:
        """What one process does, or the root of several."""
        folder = self.folder
        if not self.saved:
            folder.delete_checkpoints()  # of the run that is overwritten
        if not folder.model.exists():  # else config.json describes that model until the new one is saved
            folder.write_config(self.about, self.model)
        with self.explaining_errors():
            trained = self.train_and_evaluate()
            self.print_table(trained)
            save_checkpoint(folder.model, self.model, **self.recipe.metadata(self.data), **trained.result)
        try:
            with named_in_errors(f"the model is saved in {folder}, but not all of its log and figures"):
                folder.delete_checkpoints()
                folder.delete_outputs()
                folder.write_config(self.about, self.model)
                folder.write_log(trained.history)
                print("saved", *(str(path) for path in (folder.model, *self.recipe.draw(trained, folder.path))))
        finally:
            if as_json:
                print(to_json_line(trained.result))
        return trained.result

    def train(self) -> History:
        """Train the model."""
        recipe, options, data, model = self.recipe, self.options, self.data, self.model
        evaluate, interval = recipe.evaluation_callback(options, model, data, self.evaluations)
        about = {**self.about, "evaluations": self.evaluations, **recipe.metadata(data)}
        checkpoints = Checkpointer(
            self.folder.checkpoints, options.checkpoint_interval, options.keep_checkpoints, about
        )
        model_class: Any = type(model)
        with recipe.layers(options, lambda: model_class(model.config, seed=options.seed), data):
            resumed = self.saved.state if self.saved else None
            return recipe.train(options, model, data, evaluate, interval, checkpoints, resumed)

    def train_and_evaluate(self) -> Trained:
        """Train the model and test it on held-out data."""
        recipe, options, data, model = self.recipe, self.options, self.data, self.model
        print(recipe.describe(options, model, data) + self.describe_processes(), flush=True)
        history = self.train()
        with limit_threads(options.threads):
            numbers, evaluated = recipe.evaluate(options, model, data)
        result = {
            "task": recipe.name,
            "seed": options.seed,
            **numbers,
            "steps": len(history.losses),
            "seconds": history.seconds,
            "tokens_per_second": history.tokens / history.seconds,
        }
        return Trained(options, data, model, history, self.evaluations, result, evaluated)

    @property
    def resume_command(self) -> str:
        """The command that resumes the run, in as many processes."""
        size = self.communicator.size
        return f"mpiexec -n {size} {self.folder.resume_command}" if size > 1 else self.folder.resume_command

    def describe_processes(self) -> str:
        """The end of the line that describes the training."""
        size = self.communicator.size
        return f", {size} processes" if size > 1 else ""

    def print_table(self, trained: Trained) -> None:
        """Print the results."""
        result = trained.result
        print("\n".join(["", *self.recipe.report(trained)]))
        print(f"{'steps':<26} {result['steps']:,}")
        print(f"{'seconds of training':<26} {result['seconds']:.1f}")
        print(f"{'tokens per second':<26} {result['tokens_per_second']:,.0f}", flush=True)

    @contextlib.contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """A `with` block whose errors say from which checkpoint the run can be resumed, and how."""
        folder = self.folder
        try:
            yield
        except NotFiniteError as error:
            error.advice = self.advice_after(error)
            raise
        except Stopped as stopped:
            stopped.advice = f"resume with: {self.resume_command}"
            raise
        except KeyboardInterrupt:
            last = folder.last_checkpoint
            if last is None:
                raise
            interruption = Interrupted(f"stopped, the newest checkpoint is {last}", last)
            interruption.advice = f"resume with: {self.resume_command}"
            raise interruption from None
        except BrokenPipeError:
            raise
        except (OSError, MemoryError) as error:
            last = folder.last_checkpoint
            hint = f"the newest checkpoint is {last}, resume with: {self.resume_command}"
            kind, what = (OSError, reason(error)) if isinstance(error, OSError) else (MemoryError, error)
            raise kind(f"{what}; {hint if last else 'no checkpoint has been saved'}") from error

    def advice_after(self, error: NotFiniteError) -> list[str]:
        """The last checkpoint of a run that failed, and the command that continues from it -> lines."""
        option = self.recipe.rate_option
        usual, rate = getattr(self.recipe.defaults, option), getattr(self.options, option)
        slower = f"{option_name(option)} {min(usual, rate / 10):.3g}"
        last, command = self.folder.last_checkpoint, self.resume_command
        if not last:
            return [f"there is no checkpoint yet: start again with a smaller learning rate, such as {slower}"]
        lines = [f"the last checkpoint is {last}", f"resume with a smaller learning rate: {command} {slower}"]
        if error.anomaly is None:
            return [*lines, f"or find out which layer caused it: {command} --detect-anomaly"]
        return [*lines, f"{command} alone would fail in the same way"]


def to_json_line(result: dict[str, Any]) -> str:
    """The result as one line of JSON; numbers that are not finite become null."""
    return json.dumps({k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in result.items()})
