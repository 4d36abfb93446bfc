"""The base class of all recipes: make data and model, train, evaluate, save, draw, report."""

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minitransformer.data import Task
from minitransformer.files import atomic_write, check_folder
from minitransformer.process import limit_threads
from minitransformer.recipes.memory import check_memory
from minitransformer.recipes.options import TrainOptions, option_name, to_json
from minitransformer.training import (
    Adam,
    Checkpointer,
    CrossEntropyLoss,
    History,
    NotFiniteError,
    TrainingSettings,
    save_checkpoint,
    train,
)
from minitransformer.training.averaging import Averaging
from minitransformer.training.checkpointer import SavedRun, saved_steps
from minitransformer.training.parallel import default_threads


class Recipe:
    """One training task. A subclass says what the data is, which model, which schedule, how to evaluate, what to draw.

    `run` does the rest: it writes `model.safetensors`, `log.csv` and the figures to the folder `runs/NAME/`, and
    checkpoints to `runs/NAME/checkpoints/` while it trains.
    """

    name = ""
    help = ""  # half a line, for the list of tasks
    defaults: TrainOptions
    rate_option = "factor"  # the option that scales the learning rate

    def data(self, options: Any) -> Task:
        """The source of batches: `batch(rng, size)` returns `inputs` for the model and `targets` for the loss."""
        raise NotImplementedError

    def model(self, options: Any, data: Any) -> tuple[Any, Any]:
        """The model's class and its configuration."""
        raise NotImplementedError

    def schedule(self, options: Any, config: Any) -> Callable[[int], float]:
        """The learning rate of each step, counted from 1."""
        raise NotImplementedError

    def lengths(self, options: Any, data: Any) -> list[int]:
        """The lengths of the sequences that the model reads, for the memory estimate."""
        raise NotImplementedError

    def smaller_options(self, options: Any) -> tuple[str, ...]:
        """The options, besides --batch-size, that make the model or its input smaller."""
        return ()

    def averaging(self, options: Any) -> Averaging | None:
        """The object that averages the weights over the end of training, or None."""
        return None

    def layers(self, options: Any, model: Callable[[], Any], data: Any) -> contextlib.AbstractContextManager:
        """A context in which the model is trained, which may replace layers; model() makes another new model."""
        return contextlib.nullcontext()

    def evaluation_callback(self, options: Any, model: Any, data: Any, seen: list) -> tuple[Callable | None, int]:
        """A callback evaluate(step, history) that appends to `seen`, and the steps between two calls."""
        return None, 1

    def describe(self, options: Any, model: Any, data: Any) -> str:
        """One line about what is trained."""
        return f"{self.name}: {model.num_parameters():,} parameters, {options.steps:,} steps"

    def evaluate(self, options: Any, model: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """The results on held-out data {name: number}, and an object that is passed to `draw` and `report`."""
        raise NotImplementedError

    def metadata(self, data: Any) -> dict[str, Any]:
        """Metadata for the model's file besides the results, such as the tokenizer."""
        return {}

    def draw(
        self, options: Any, model: Any, data: Any, history: History, evaluated: Any, seen: list, folder: Path
    ) -> list[Path]:
        """Draw the figures into `folder` -> their paths."""
        raise NotImplementedError

    def report(self, result: dict[str, Any], evaluated: Any, data: Any) -> list[str]:
        """The lines that this task adds to the closing table."""
        raise NotImplementedError

    def run(self, options: Any, saved: SavedRun | None = None) -> dict[str, Any]:
        """Train a new model, or continue the `saved` run; evaluate, save, draw, report -> the result."""
        folder = options.runs / self.name
        try:
            return self._run(options, saved, folder)
        except NotFiniteError as error:
            error.advice = self._how_to_continue(options, error, folder)
            raise

    def _run(self, options: Any, saved: SavedRun | None, folder: Path) -> dict[str, Any]:
        check_folder(options.runs)
        data = self.data(options)
        model_class, config = self.model(options, data)
        with limit_threads(options.threads or default_threads(config, options.micro_batch_size)):
            self._check_memory(options, model_class, config, data, resumed=saved is not None)
            model = saved.model if saved else model_class(config, seed=options.seed)
            history, seen = self._train(options, model, data, saved, folder)
            numbers, evaluated = self.evaluate(options, model, data)
        result = {
            "task": self.name,
            "seed": options.seed,
            **numbers,
            "steps": len(history.losses),
            "seconds": history.seconds,
            "tokens_per_second": history.tokens / history.seconds,
        }
        save_checkpoint(folder / "model.safetensors", model, **self.metadata(data), **result)
        delete_checkpoints(folder / "checkpoints")
        write_log(folder / "log.csv", history)
        figures = self.draw(options, model, data, history, evaluated, seen, folder)
        print("\n".join(["", *self.report(result, evaluated, data)]))
        print(f"{'steps':<26} {result['steps']:,}")
        print(f"{'seconds of training':<26} {result['seconds']:.1f}")
        print(f"{'tokens per second':<26} {result['tokens_per_second']:,.0f}")
        print("saved", *(str(path) for path in (folder / "model.safetensors", *figures)))
        return result

    def _check_memory(self, options: Any, model_class: Any, config: Any, data: Any, resumed: bool) -> None:
        lengths, averages = self.lengths(options, data), getattr(self.averaging(options), "count", 0)
        smaller = self.smaller_options(options)
        check_memory(options, model_class, config, lengths, averages=averages, resumed=resumed, smaller=smaller)

    def _train(self, options: Any, model: Any, data: Any, saved: SavedRun | None, folder: Path) -> tuple[History, list]:
        """Train the model -> its history, and what the evaluation callback has appended."""
        seen = saved.about.get("evaluations", saved.about.get("looks", [])) if saved else []
        evaluate, interval = self.evaluation_callback(options, model, data, seen)
        checkpointer = make_checkpointer(self.name, options, folder / "checkpoints", saved is not None, seen)
        folder.mkdir(parents=True, exist_ok=True)  # fail before the minutes of training, not after
        print(self.describe(options, model, data), flush=True)
        with self.layers(options, lambda: type(model)(model.config, seed=options.seed), data):
            resume = saved.state if saved else None
            history = self.train(options, model, data, evaluate, interval, checkpointer, resume)
        return history, seen

    def train(
        self,
        options: Any,
        model: Any,
        data: Any,
        evaluate: Callable | None = None,
        eval_interval: int = 1,
        checkpointer: Checkpointer | None = None,
        resume: tuple[dict, dict] | None = None,
    ) -> History:
        """Train `model` with this recipe's loss, optimizer, schedule and averaging."""
        settings = TrainingSettings(
            steps=options.steps,
            batch_size=options.batch_size,
            seed=options.seed,
            grad_accumulation_steps=options.grad_accumulation_steps,
            eval_interval=eval_interval,
            detect_anomaly=options.detect_anomaly,
        )
        return train(
            model,
            data,
            Adam(model.parameters(), weight_decay=options.weight_decay),
            self.schedule(options, model.config),
            CrossEntropyLoss(options.label_smoothing),
            settings,
            averaging=self.averaging(options),
            evaluate=evaluate,
            checkpointer=checkpointer,
            resume=resume,
            num_threads=options.threads,
        )

    def _how_to_continue(self, options: Any, error: NotFiniteError, folder: Path) -> list[str]:
        """The last checkpoint of a failed run, and the command that continues from it -> lines."""
        usual, rate = getattr(self.defaults, self.rate_option), getattr(options, self.rate_option)
        slower = f"{option_name(self.rate_option)} {min(usual, rate / 10):.3g}"
        saved = saved_steps(folder / "checkpoints")
        if not saved:
            return [f"there is no checkpoint yet: start again with a smaller learning rate, such as {slower}"]
        resume = f"minitransformer train --resume {folder}"
        lines = [f"the last checkpoint is {saved[-1]}", f"resume with a smaller learning rate: {resume} {slower}"]
        if error.anomaly is None:
            return [*lines, f"or find out which layer caused it: {resume} --detect-anomaly"]
        return [*lines, f"{resume} alone would fail in the same way"]


def make_checkpointer(name: str, options: TrainOptions, folder: Path, resumed: bool, seen: list) -> Checkpointer:
    """A Checkpointer for the task. Raises ValueError if `folder` holds another run that is unfinished."""
    unfinished = saved_steps(folder)
    if unfinished and options.fresh:
        delete_checkpoints(folder)
    elif unfinished and not resumed:
        raise ValueError(
            f"{folder.parent} holds an unfinished run: resume it with `minitransformer train --resume "
            f"{folder.parent}`, or delete it with --fresh"
        )
    about = {"recipe": name, "options": to_json(options), "evaluations": seen}
    return Checkpointer(folder, options.checkpoint_interval, options.keep_checkpoints, about)


def delete_checkpoints(folder: Path) -> None:
    """Delete the checkpoints of a run, once the model itself is saved."""
    for path in (*saved_steps(folder), *folder.glob("*.partial")):  # a killed process may leave half a file
        path.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def write_log(path: Path, history: History) -> None:
    """One line for each step: loss, norm of the gradient, learning rate."""
    rows = zip(history.losses, history.norms, history.learning_rates, strict=True)
    lines = [f"{step},{loss:.6g},{norm:.6g},{rate:.6g}\n" for step, (loss, norm, rate) in enumerate(rows, start=1)]
    with atomic_write(path) as partial:
        partial.write_text("".join(["step,loss,grad_norm,learning_rate\n", *lines]), encoding="utf8")


def to_json_line(result: dict[str, Any]) -> str:
    """The result as one line of JSON; numbers that are not finite become null."""
    return json.dumps({k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in result.items()})
