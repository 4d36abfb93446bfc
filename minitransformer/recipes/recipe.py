"""The base class of all recipes: the data, the model, the schedule, the evaluation and the figures of one task."""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from minitransformer.data.task import EpochTask, Task
from minitransformer.models import BERT, GPT, Seq2Seq, Transformer
from minitransformer.recipes.options import TrainOptions
from minitransformer.training import Adam, Checkpointer, CrossEntropyLoss, History, Strategy, train
from minitransformer.training.averaging import Averaging
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.sharded import ShardedAdam

RECURRENT: dict[str, dict[str, str]] = {  # what the Transformer replaced, as fields of a Seq2SeqConfig
    f"{cell}{suffix}": {"cell": cell, "attention": attention}
    for cell in ("lstm", "gru")
    for suffix, attention in (("", "none"), ("-attention", "additive"))
}

Options = TypeVar("Options", bound=TrainOptions)
Data = TypeVar("Data", bound=Task | EpochTask)
Model = TypeVar("Model", bound=Transformer | GPT | BERT | Seq2Seq)


@dataclasses.dataclass(frozen=True)
class Trained(Generic[Options, Data, Model]):
    """A model that was trained and evaluated: everything that tables and figures show."""

    options: Options
    data: Data
    model: Model
    history: History
    evaluations: list[Any]  # what the evaluation callback has appended during training
    result: dict[str, Any]
    evaluated: Any  # the second result of `Recipe.evaluate`


class Recipe(Generic[Options, Data, Model]):
    """One training task. A subclass says what the data is, which model, which schedule, how to evaluate, what to draw.

    `recipes.run.start` does the rest.
    """

    name = ""
    help = ""  # half a line, for the list of tasks
    defaults: Options
    rate_option = "factor"  # the option that scales the learning rate

    def data(self, options: Options) -> Data:
        """The source of batches: `batch(rng, size)` returns `inputs` for the model and `targets` for the loss."""
        raise NotImplementedError

    def source(self, options: Options, data: Data) -> dict[str, Any]:
        """The file that `data` was read from, as {"text": path, "sha256": hash of the content}, or {}."""
        return {}

    def model(self, options: Options, data: Data) -> tuple[type[Model], Any]:
        """The model's class and its configuration."""
        raise NotImplementedError

    def schedule(self, options: Options, config: Any) -> Callable[[int], float]:
        """The learning rate of each step, counted from 1."""
        raise NotImplementedError

    def optimizer(self, options: Options, model: Model) -> Adam:
        """Adam as in the paper, or sharded over the processes of `mpiexec`."""
        if options.shard_optimizer:
            return ShardedAdam(model.parameters(), connect(), weight_decay=options.weight_decay)
        return Adam(model.parameters(), weight_decay=options.weight_decay)

    def largest_batch(self, options: Options, data: Data) -> tuple[int, list[int]]:
        """How many sequences the largest batch has, and the lengths of all that the model reads of each of them.

        The memory estimate uses these.
        """
        raise NotImplementedError

    def smaller_options(self, options: Options) -> tuple[str, ...]:
        """The options, besides --batch-size, that make the model or its input smaller."""
        return ()

    def averaging(self, options: Options) -> Averaging | None:
        """The object that averages the weights over the end of training, or None."""
        return None

    def layers(
        self, options: Options, model: Callable[[], Model], data: Data
    ) -> contextlib.AbstractContextManager[None]:
        """A context in which the model is trained, which may replace layers; model() makes another new model."""
        return contextlib.nullcontext()

    def evaluation_callback(
        self, options: Options, model: Model, data: Data, evaluations: list[Any]
    ) -> tuple[Callable[[int, History], None] | None, int]:
        """A callback evaluate(step, history) that appends to `evaluations`, and the steps between two calls."""
        return None, 1

    def describe(self, options: Options, model: Model, data: Data) -> str:
        """One line about what is trained."""
        return f"{self.name}: {model.num_parameters():,} parameters, {options.steps:,} steps"

    def evaluate(self, options: Options, model: Model, data: Data) -> tuple[dict[str, Any], Any]:
        """The results on held-out data {name: number}, and an object for `Trained.evaluated`."""
        raise NotImplementedError

    def metadata(self, data: Data) -> dict[str, Any]:
        """Metadata for the model's file besides the results, such as the tokenizer."""
        return {}

    def report(self, trained: Trained[Options, Data, Model]) -> list[str]:
        """The lines that this task adds to the closing table."""
        raise NotImplementedError

    def draw(self, trained: Trained[Options, Data, Model], folder: Path) -> list[Path]:
        """Draw the figures into `folder` -> their paths."""
        raise NotImplementedError

    def train(
        self,
        options: Options,
        model: Model,
        data: Data,
        evaluate: Callable[[int, History], None] | None = None,
        eval_interval: int = 1,
        checkpointer: Checkpointer | None = None,
        resume: tuple[dict, dict] | None = None,
    ) -> History:
        """Train `model` with this recipe's loss, optimizer, schedule and averaging, in the processes of `mpiexec`."""
        return train(
            model,
            data,
            self.optimizer(options, model),
            self.schedule(options, model.config),
            CrossEntropyLoss(options.label_smoothing),
            options.settings(eval_interval),
            averaging=self.averaging(options),
            evaluate=evaluate,
            checkpointer=checkpointer,
            resume=resume,
            strategy=Strategy(options.threads, connect()),
        )
