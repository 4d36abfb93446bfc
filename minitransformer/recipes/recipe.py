"""The base class of all recipes: the data, the model, the schedule, the evaluation and the figures of one task."""

import contextlib
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from minitransformer.layers.losses import loss_for
from minitransformer.recipes.clock import until
from minitransformer.recipes.options import (
    TrainOptions,
    at_least_1,
    check_positive,
    from_1_to,
    of_the_computation,
    option,
    option_name,
)
from minitransformer.tokenizers import Tokenizer
from minitransformer.training import Adam, History, Muon, train
from minitransformer.training.loop import Plan
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.sharded import ShardedAdam
from minitransformer.training.parallel.strategy import Strategy
from minitransformer.training.saving.averaging import AverageOfLast, Averaging
from minitransformer.training.saving.checkpointer import SavedRun

MAX_LAYERS = 1000  # in each stack
EVALUATIONS = 10  # during training, unless --eval-interval says otherwise
RECURRENT: dict[str, dict[str, str]] = {  # what the Transformer replaced, as fields of a Seq2SeqConfig
    f"{cell}{suffix}": {"cell": cell, "attention": attention}
    for cell in ("lstm", "gru")
    for suffix, attention in (("", "none"), ("-attention", "additive"))
}


@dataclasses.dataclass(frozen=True)
class Trained:
    """A model that was trained and evaluated: everything that tables and figures show."""

    options: Any
    data: Any
    model: Any
    history: History
    evaluations: list[Any]  # what the evaluation callback has appended during training
    result: dict[str, Any]
    evaluated: Any  # the second result of `Recipe.evaluate`


class Recipe:
    """One training task. A subclass says what the data is, which model, which schedule, how to evaluate, what to draw.

    `recipes.run.Run` does the rest. Each recipe has options, data and models of its own kinds.
    """

    name = ""
    help = ""  # half a line, for the list of tasks
    defaults: Any  # its TrainOptions
    rate_option = "factor"  # the option that scales the learning rate
    own_text = ""  # what --text replaces
    memory_like: Any = None  # a class of models that need as much memory, if it cannot be found with the model's own

    def fitting(self, given: dict[str, Any]) -> tuple[Any, list[str]]:
        """The defaults for data of the size that the options `given` name, and lines that say why they are these."""
        return self.defaults, []

    def data(self, options: Any, tokenizer: Tokenizer | None = None) -> Any:
        """The source of batches: `batch(rng, size)` returns `inputs` for the model and `targets` for the loss.

        Text is in the tokens of the `tokenizer`, if a run that is resumed or a model to start from has one.
        """
        raise NotImplementedError

    def source(self, options: Any, data: Any) -> dict[str, Any]:
        """The file that `data` was read from, as {"text": path, "sha256": hash of the content}, or {}."""
        return {}

    def model(self, options: Any, data: Any) -> tuple[Any, Any]:
        """The model's class and its configuration."""
        raise NotImplementedError

    def schedule(self, options: Any, config: Any) -> Callable[[int], float]:
        """The learning rate of each step, counted from 1."""
        raise NotImplementedError

    def largest_batch(self, options: Any, data: Any) -> tuple[int, list[int]]:
        """How many sequences the largest batch has, and the lengths of all that the model reads of each of them.

        The memory estimate uses these.
        """
        raise NotImplementedError

    def averaging(self, options: Any) -> Averaging | None:
        """The object that averages the weights over the end of training, or None."""
        return None

    def layers(self, options: Any, model: Callable[[], Any], data: Any) -> contextlib.AbstractContextManager[None]:
        """A context in which the model is trained, which may replace layers; model() makes another new model."""
        return contextlib.nullcontext()

    def evaluation_callback(
        self, options: Any, model: Any, data: Any, evaluations: list[Any]
    ) -> tuple[Callable[[int, History], None] | None, int]:
        """A callback evaluate(step, history) that appends to `evaluations`, and the steps between two calls."""
        return None, 1

    def describe(self, options: Any, model: Any, data: Any) -> str:
        """One line about what is trained."""
        return f"{self.name}: {model.num_parameters():,} parameters, {options.steps:,} steps"

    def evaluate(self, options: Any, model: Any, data: Any) -> tuple[dict[str, Any], Any]:
        """The results on held-out data {name: number}, and an object for `Trained.evaluated`."""
        raise NotImplementedError

    def metadata(self, data: Any) -> dict[str, Any]:
        """Metadata for the model's file besides the results, such as the tokenizer."""
        return {}

    def report(self, trained: Trained) -> list[str]:
        """The lines that this task adds to the closing table."""
        raise NotImplementedError

    def draw(self, trained: Trained, folder: Path) -> list[Path]:
        """Draw the figures into `folder` -> their paths."""
        raise NotImplementedError

    def train(self, options: Any, model: Any, data: Any) -> History:
        """Train `model`, without evaluating or saving it."""
        return train(model, data, **self.how(options, model, data))

    def how(
        self,
        options: Any,
        model: Any,
        data: Any,
        evaluations: list[Any] | None = None,
        about: dict[str, Any] | None = None,
        end: float | None = None,
    ) -> dict[str, Any]:
        """How to train `model`: the arguments of `train`, with this recipe's loss, optimizer, schedule and averaging.

        It is evaluated during training if there is a list of `evaluations` to append to. Until the time `end`, the
        steps follow the clock, and what is saved `about` the run says how many they are.
        """
        evaluate, interval = None, 1
        if evaluations is not None:
            evaluate, interval = self.evaluation_callback(options, model, data, evaluations)
        averaging = self.averaging(options)

        def plan_for(steps: int) -> Plan:
            if about:
                about["options"]["steps"] = steps
            schedule = self.schedule(dataclasses.replace(options, steps=steps), model.config)
            return Plan(steps, schedule, averaging.until(steps) if isinstance(averaging, AverageOfLast) else averaging)

        return {
            "optimizer": make_optimizer(options, model),
            "loss_fn": loss_for(model, options.label_smoothing),
            "settings": options.settings(interval),
            "plan": until(end, options.steps, plan_for) if end else plan_for(options.steps),
            "evaluate": evaluate,
            "strategy": Strategy(options.threads, connect()),
        }


def make_optimizer(options: TrainOptions, model: Any) -> Adam:
    """Adam as in the paper, or sharded over all processes; or Muon, which each process computes as a whole."""
    if options.optimizer == "muon":
        return Muon(model, weight_decay=options.weight_decay)
    if options.shard_optimizer:
        return ShardedAdam(model.parameters(), connect(), weight_decay=options.weight_decay)
    return Adam(model.parameters(), weight_decay=options.weight_decay)


@dataclasses.dataclass(frozen=True)
class SizedOptions(TrainOptions):
    """The options of a task whose model has sizes of its own, and whose learning rate falls like a cosine."""

    d_model: int = option(128, "features per token", at_least_1)
    num_layers: int = option(4, "number of layers, in each stack", from_1_to(MAX_LAYERS))
    num_heads: int = option(4, "attention heads", at_least_1)
    peak: float = option(
        2e-3, "peak learning rate, after the warm-up and before the cosine decay", check_positive, resumable=True
    )
    eval_interval: int | None = of_the_computation(
        None, f"steps between evaluations on held-out data (default: a {EVALUATIONS}th of all steps)", at_least_1
    )

    def sizes(self) -> dict[str, Any]:
        """The fields of the model's configuration that the options set."""
        return {
            "d_model": self.d_model,
            "num_heads": self.num_heads,
            "d_ff": 4 * self.d_model,
            "num_layers": self.num_layers,
            "dropout": self.dropout,
            "positions": self.positions,
            **self.layer_fields(),
        }


@dataclasses.dataclass(frozen=True)
class CorpusOptions(SizedOptions):
    """The options of a task on sentences or on text."""

    text: str | None = option(
        None, "UTF-8 text file to train on (default: one that comes along); with --resume its new place", resumable=True
    )
    from_: str | None = option(
        None, "start from the weights and the tokenizer of a run, a model file or a folder of a GPT-2"
    )


class CorpusRecipe(Recipe):
    """A task on sentences or on text, which may be the user's own. It has a tokenizer, and a cosine schedule."""

    rate_option = "peak"

    def source(self, options: Any, data: Any) -> dict[str, Any]:
        """The path of the text, and the SHA-256 of its content."""
        text = getattr(options, "text", None)
        return {"text": text and os.path.abspath(text), "sha256": data.sha256}

    def metadata(self, data: Any) -> dict[str, Any]:
        """The tokenizer."""
        return {"tokenizer": data.tokenizer.to_dict()}

    def eval_interval(self, options: Any) -> int:
        """Steps between two evaluations during training."""
        return options.eval_interval or max(1, options.steps // EVALUATIONS)


def check_evaluations(saved: SavedRun) -> None:
    """ValueError unless a saved run has a list of pairs (step, number), as `Recipe.evaluation_callback` makes it."""
    found = saved.about.get("evaluations", [])
    pairs = found if isinstance(found, list) else [found]
    for pair in pairs:
        if not (isinstance(pair, list) and [type(each) for each in pair] == [int, float]):
            raise ValueError(f"{saved.path} has {pair!r} among its evaluations, which are pairs of a step and a number")
        if not 1 <= pair[0] <= saved.step:
            raise ValueError(f"{saved.path} has an evaluation after step {pair[0]}, and took {saved.step} steps")


def check_recurrent(options: Any, defaults: TrainOptions, names: tuple[str, ...]) -> None:
    """ValueError for an option, one of those called `names`, that only a Transformer can have."""
    for name in names:
        if getattr(options, name) != getattr(defaults, name):
            raise ValueError(f"{option_name(name)} is for Transformers, and --model {options.model} is none")
