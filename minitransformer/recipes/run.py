"""Runs: a recipe is trained in a folder of its own; a run that was interrupted is resumed."""

import contextlib
import dataclasses
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from minitransformer.recipes import RECIPES, get_recipe
from minitransformer.recipes.folder import RunFolder, locked, run_name
from minitransformer.recipes.memory import check_memory
from minitransformer.recipes.options import TrainOptions, from_json, option_name, to_json
from minitransformer.recipes.processes import agree, changes, threads_as_before
from minitransformer.recipes.recipe import Recipe, Trained, check_evaluations
from minitransformer.recipes.speed import fit_to_minutes
from minitransformer.recipes.start import Start
from minitransformer.system.files import checksum, delete, kind_of, named_in_errors, reason
from minitransformer.system.process import limit_threads
from minitransformer.system.terminal import is_closed_pipe, json_line, wrap
from minitransformer.tokenizers import tokenizer_from_dict
from minitransformer.training import Checkpointer, History, NotFiniteError, Stopped, read_run, save_checkpoint, train
from minitransformer.training.parallel.connect import connect
from minitransformer.training.saving.checkpointer import SavedRun, newest_checkpoint, saved_steps

# not taken over when a run is resumed
FOR_ONE_CALL = {"overwrite": False, "force": False, "detect_anomaly": False, "minutes": None}
BEFORE_IT_EXISTED = {"cooldown": 0.0}  # what an option was in runs that are older than it, where the default differs


@contextlib.contextmanager
def new_run(recipe: Recipe, given: dict[str, Any]) -> Iterator["Run"]:
    """A `with` block that has a new run, in a folder that no other training can use.

    Its options are those `given`, and defaults that fit the data. Raises ValueError if the folder holds another run,
    unless `overwrite` is given, and if another training uses it.
    """
    check_given(recipe, given)
    start = Start.load(given["from_"], recipe) if given.get("from_") is not None else None
    defaults, reasons = start.fitting(recipe, given) if start else recipe.fitting(given)
    options = dataclasses.replace(defaults, **given)
    folder = RunFolder(options.runs / (options.name or run_name(recipe.name, options, defaults)))
    with locked(folder.path):
        if connect().is_root:
            folder.check_unused(options.overwrite)
        training = Run(recipe, options, recipe.data(options, start and start.tokenizer), folder, start=start)
        del start  # its weights
        if reasons:
            print(*(wrap(reason, "", "    ") for reason in reasons), sep="\n", flush=True)
        yield training


@contextlib.contextmanager
def resumed_run(path: Path, given: dict[str, Any]) -> Iterator["Run"]:
    """As `new_run`, with the run in the folder `path` and with the options that are `given` instead of its own.

    `path` may also be one of its checkpoints. Raises ValueError for an option that cannot be changed, for another text
    than the run was started with, and if another training uses the folder; OSError if there is nothing to resume.
    """
    folder = folder_of(find_checkpoint(path))
    with locked(folder.path):
        checkpoint = find_checkpoint(path)
        saved = read_sound(folder, checkpoint)
        recipe, before = saved_options(checkpoint, saved)
        check_given(recipe, given, resumed=True)
        options = dataclasses.replace(before, **given)
        kept = checkpoint == folder.kept and kind_of(folder.model)
        if kept and options.steps <= saved.step and options.minutes is None:
            raise ValueError(
                f"the run in {folder} is finished after {saved.step} steps: to train it for longer, "
                f"give more than these, with {folder.command_from(checkpoint)}"
            )
        if options.steps < saved.step:
            raise ValueError(f"--steps must be at least {saved.step}, the steps that were taken, got {options.steps}")
        data = load_same_data(recipe, options, saved)
        if "threads" not in given:
            options = dataclasses.replace(options, threads=threads_as_before(saved))
        print(f"resuming {recipe.name} after step {saved.step:,}", *changes(before, options, saved), sep="\n")
        yield Run(recipe, options, data, folder, saved=saved)


def check_given(recipe: Recipe, given: dict[str, Any], resumed: bool = False) -> None:
    """ValueError for an option of other tasks, and for one that cannot be changed when a run is `resumed`."""
    fields = {field.name: field for field in dataclasses.fields(recipe.defaults)}
    for name in given:
        if name not in fields:
            tasks = ", ".join(other.name for other in RECIPES.values() if hasattr(other.defaults, name))
            raise ValueError(f"{recipe.name} has no option {option_name(name)}; tasks with this option: {tasks}")
        if resumed and not fields[name].metadata["resumable"]:
            raise ValueError(f"{option_name(name)} must follow a task, and cannot be changed when a run is resumed")
    if given.keys() >= {"steps", "minutes"}:
        raise ValueError("--steps and --minutes exclude each other")


def find_checkpoint(path: Path) -> Path:
    """The newest checkpoint of the run in the folder `path`, or `path` itself if it is a checkpoint.

    Raises FileNotFoundError if there is none, and ValueError if the run is finished and none was kept, or if the file
    belongs to no run.
    """
    folder = RunFolder(path)
    if kind_of(folder.kept) and not folder.last_checkpoint:
        path = folder.kept
    elif kind_of(folder.model) and kind_of(folder.checkpoints) != "folder":
        raise ValueError(
            f"the run in {path} is finished, and no checkpoint of it was kept: "
            "to train for longer, start again with --overwrite and more --steps"
        )
    elif kind_of(folder.checkpoints) == "folder":
        path = folder.checkpoints
    checkpoint = newest_checkpoint(path)
    if not checkpoint.parent.name:
        checkpoint = checkpoint.absolute()
    if checkpoint.parent.name != "checkpoints" and checkpoint != folder_of(checkpoint).kept:
        read_run(checkpoint)  # says what is wrong with the file, if it is no checkpoint
        raise ValueError(f"{checkpoint} is not in the folder of a run: move it to runs/NAME/checkpoints/")
    return checkpoint


def folder_of(checkpoint: Path) -> RunFolder:
    """The folder of the run that a checkpoint belongs to, whether that is unfinished or finished."""
    return RunFolder(checkpoint.parent.parent if checkpoint.parent.name == "checkpoints" else checkpoint.parent)


def read_sound(folder: RunFolder, checkpoint: Path) -> SavedRun:
    """The run that is saved in `checkpoint`.

    If the file is damaged, or belongs to another run than the `folder`, the error names the newest one that is sound.
    """
    try:
        return read_own(folder, checkpoint)
    except (ValueError, OSError) as error:
        hint = f"{folder if checkpoint == folder.kept else folder.checkpoints} has no sound checkpoint"
        for other in (*reversed(saved_steps(folder.checkpoints)), folder.kept):
            with contextlib.suppress(ValueError, OSError):
                read_own(folder, other)
                hint = f"the newest sound checkpoint is {other}, resume with: {folder.command_from(other)}"
                break
        raise (OSError if isinstance(error, OSError) else ValueError)(f"{error}; {hint}") from error


def read_own(folder: RunFolder, checkpoint: Path) -> SavedRun:
    """The run that is saved in `checkpoint`. ValueError if it is not the run of `folder`."""
    saved, config = read_run(checkpoint), folder.read_config()
    check_evaluations(saved)
    theirs, own = (each.get("run", "none") for each in (saved.about, config))
    if config and theirs != own:
        raise ValueError(
            f"{checkpoint} belongs to another run: its id is {theirs}, and that of the run in {folder} is {own}; "
            "to resume it, move it to runs/NAME/checkpoints/ of a new NAME"
        )
    return saved


def saved_options(checkpoint: Path, saved: SavedRun) -> tuple[Recipe, TrainOptions]:
    """The recipe of a saved run and the options that it was started with; ValueError if `checkpoint` names none."""
    name, values, source = (saved.about.get(key) for key in ("recipe", "options", "data"))
    if not isinstance(name, str) or not isinstance(values, dict) or not isinstance(source, dict):
        raise ValueError(f"{checkpoint} does not say with which options it was started")
    recipe = get_recipe(name)
    try:
        values = {**BEFORE_IT_EXISTED, **values, **source, **FOR_ONE_CALL, "threads": saved.num_threads}
        return recipe, from_json(recipe.defaults, values)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{checkpoint} does not hold options of {name}: {error}") from error


def load_same_data(recipe: Recipe, options: TrainOptions, saved: SavedRun) -> Any:
    """The data of a saved run, in its tokens.

    Raises ValueError if its content has changed or its tokens are not saved, and FileNotFoundError if it is missing.
    """
    try:
        tokenizer = saved.about.get("tokenizer")
        data = recipe.data(options, tokenizer and tokenizer_from_dict(tokenizer))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}: if the text was moved, say where it is with --text") from error
    before, now = saved.about["data"], recipe.source(options, data)
    if before.get("sha256") != now.get("sha256"):
        old, new = (
            f"{each.get('text') or recipe.own_text} (SHA-256 {str(each.get('sha256'))[:12]}...)"
            for each in (before, now)
        )
        raise ValueError(f"this run was started with {old}, and the content of {new} is another")
    if tokenizer is None and "tokenizer" in recipe.metadata(data):
        raise ValueError(f"{saved.path} does not hold the tokenizer of its run")
    return data


class Run:
    """One training of a recipe in its folder: from the first step of new weights, of a Start, or of a SavedRun."""

    def __init__(
        self,
        recipe: Recipe,
        options: TrainOptions,
        data: Any,
        folder: RunFolder,
        *,
        saved: SavedRun | None = None,
        start: Start | None = None,
    ) -> None:
        model_class, config = recipe.model(options, data)
        if start:
            config = start.config(model_class, options.dropout)
        source, taken = recipe.source(options, data), saved.step if saved else 0
        weights = {"weights": checksum({}, start.model.state_dict())} if start else {}
        options = agree(recipe.name, options, config, {**source, **weights}, taken)
        check_memory(recipe, options, data, model_class, config, resumed=saved is not None)
        options, self.end = fit_to_minutes(recipe, options, data, taken)
        self.recipe, self.options, self.data, self.folder, self.saved = recipe, options, data, folder, saved
        old = saved.model if saved else start.copy(model_class, config, options.seed) if start else None
        self.model: Any = old or model_class(config, seed=options.seed)
        self.evaluations: list[Any] = saved.about.get("evaluations", []) if saved else []
        self.about: dict[str, Any] = {
            "run": saved.about.get("run", "none") if saved else secrets.token_hex(8),
            "recipe": recipe.name,
            "options": to_json(options),
            "data": source,
        }
        self.checkpointer = Checkpointer(
            folder.checkpoints,
            options.checkpoint_interval,
            options.keep_checkpoints,
            about={**self.about, "evaluations": self.evaluations, **recipe.metadata(data)},
        )
        self.checkpointer.newest = saved.path if saved else None

    def carry_out(self, as_json: bool = False) -> dict[str, Any]:
        """Train, evaluate, print the table, save the model, and draw the figures -> the result.

        The figures come last, so that nothing is lost if they cannot be drawn. With `as_json` the result is also
        printed, as JSON in the last line.
        """
        recipe, options, model, data = self.recipe, self.options, self.model, self.data
        with self.explaining_errors():
            if connect().is_root:
                self.prepare_folder()
            processes = f", {connect().size} processes" if connect().size > 1 else ""
            print(wrap(recipe.describe(options, model, data) + processes, "", "  "), flush=True)
            with recipe.layers(options, lambda: type(model)(model.config, seed=options.seed), data):
                how = recipe.how(options, model, data, self.evaluations, self.about, self.end)
                state = self.saved.state if self.saved else None
                history = train(model, data, **how, checkpointer=self.checkpointer, resume=state)
            if not connect().is_root:
                return {}
            trained = self.evaluate(history)
            print("", *recipe.report(trained), *table(trained.result), sep="\n", flush=True)
            save_checkpoint(self.folder.model, model, **recipe.metadata(data), **trained.result)
        try:
            self.save_outputs(trained)
        finally:
            if as_json:
                print(json_line(trained.result))
        return trained.result

    def prepare_folder(self) -> None:
        """Delete the checkpoints of a run that is overwritten, and write config.json."""
        if not self.saved:
            self.folder.delete_checkpoints()
            delete(self.folder.kept)
        if kind_of(self.folder.model):  # config.json describes that model until the new one is saved
            self.folder.set_run_id(self.about["run"])
        else:
            self.folder.write_config(self.about, self.model)

    def evaluate(self, history: History) -> Trained:
        """Test the model on held-out data."""
        with limit_threads(self.options.threads):
            numbers, evaluated = self.recipe.evaluate(self.options, self.model, self.data)
        result = {
            "task": self.recipe.name,
            "seed": self.options.seed,
            **numbers,
            "steps": len(history.losses),
            "seconds": history.seconds,
            "tokens_per_second": history.tokens / history.seconds,
        }
        return Trained(self.options, self.data, self.model, history, self.evaluations, result, evaluated)

    def save_outputs(self, trained: Trained) -> None:
        """Save the options, the log, the samples and the figures of a model that has been saved."""
        folder = self.folder
        with named_in_errors(f"the model is saved in {folder}, but not all of its log and figures"):
            if self.checkpointer.newest not in (None, folder.kept):
                folder.keep(self.checkpointer.newest)
            folder.delete_checkpoints()
            folder.delete_outputs()
            folder.write_config(self.about, self.model)
            folder.write_log(trained.history)
            paths = (folder.model, *self.recipe.draw(trained, folder.path))
            print(wrap(" ".join(map(str, paths)), "saved ", "      "))

    @contextlib.contextmanager
    def explaining_errors(self) -> Iterator[None]:
        """A `with` block whose errors say from which checkpoint the run can be resumed, and how."""
        try:
            yield
        except NotFiniteError as error:
            error.advice = self.advice_after(error)
            raise
        except Stopped as stopped:
            stopped.advice = f"resume with: {self.folder.command_from(self.folder.path)}"
            raise
        except (KeyboardInterrupt, OSError, MemoryError) as error:
            last = self.newest_checkpoint
            advice = f"resume with: {self.folder.command_from(last, self.options.steps)}" if last else ""
            if is_closed_pipe(error):
                raise
            if isinstance(error, KeyboardInterrupt):
                if last is None:
                    raise
                interruption = Stopped(f"stopped, the newest checkpoint is {last}", last)
                interruption.advice = advice
                raise interruption from None
            hint = f"the newest checkpoint is {last}, {advice}" if last else "no checkpoint has been saved"
            kind, what = (OSError, reason(error)) if isinstance(error, OSError) else (MemoryError, error)
            raise kind(f"{what}; {hint}") from error

    @property
    def newest_checkpoint(self) -> Path | None:
        """The checkpoint that this process saved last or resumed from, or else the newest in the folder, or None."""
        return self.checkpointer.newest or self.folder.last_checkpoint

    def advice_after(self, error: NotFiniteError) -> list[str]:
        """The last checkpoint of a run that failed, and the command that continues from it -> lines."""
        option = self.recipe.rate_option
        usual, rate = getattr(self.recipe.defaults, option), getattr(self.options, option)
        slower = f"{option_name(option)} {min(usual, rate / 10):.3g}"
        if not (last := self.newest_checkpoint):
            return [f"there is no checkpoint yet: start again with a smaller learning rate, such as {slower}"]
        command = self.folder.command_from(last, self.options.steps)
        lines = [f"the last checkpoint is {last}", f"resume with a smaller learning rate: {command} {slower}"]
        if error.anomaly is None:
            return [*lines, f"or find out which layer caused it: {command} --detect-anomaly"]
        return [*lines, f"{command} alone would fail in the same way"]


def table(result: dict[str, Any]) -> list[str]:
    """The lines about the training in the closing table."""
    return [
        f"{'steps':<26} {result['steps']:,}",
        f"{'seconds of training':<26} {result['seconds']:.1f}",
        f"{'tokens per second':<26} {result['tokens_per_second']:,.0f}",
    ]
