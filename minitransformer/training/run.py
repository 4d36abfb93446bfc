"""A training run: everything that its next step depends on, so that it can be saved and resumed."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from minitransformer.backend import xp
from minitransformer.checks import check_shape
from minitransformer.config import special_ids
from minitransformer.core import Layer
from minitransformer.data.task import EpochTask, Task, TrainingBatch
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.training.batches import Batches
from minitransformer.training.gradients import Measured
from minitransformer.training.optimizers import Adam
from minitransformer.training.settings import Plan, TrainingSettings

if TYPE_CHECKING:
    from minitransformer.training.parallel.strategy import Strategy

MEASURED = ("losses", "norms", "learning_rates", "accuracies")  # the fields of History that are saved as arrays


@dataclasses.dataclass
class History:
    """What was measured in training."""

    losses: list = dataclasses.field(default_factory=list)  # of every step, in nats per token
    norms: list = dataclasses.field(default_factory=list)  # of the gradient before clipping, of every step
    learning_rates: list = dataclasses.field(default_factory=list)  # of every step
    accuracies: list = dataclasses.field(default_factory=list)  # share of correct tokens, every LOG_INTERVAL steps
    tokens: int = 0  # that the model has read, without padding
    seconds: float = 0.0

    def latest(self) -> str:
        """The last step in one line."""
        accuracy = f"accuracy {self.accuracies[-1]:.1%}, " if self.accuracies else ""
        speed = f"{self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s"
        return f"loss {float(self.losses[-1]):.3f}, {accuracy}lr {self.learning_rates[-1]:.1e}, {speed}"


class TrainingRun:
    """A model with its data, optimizer, random states, averages and history; a `strategy` shares its batches."""

    def __init__(
        self,
        model: Layer,
        data: Task | EpochTask,
        optimizer: Adam,
        loss_fn: CrossEntropyLoss,
        settings: TrainingSettings,
        plan: Plan,
        strategy: "Strategy",
        resume: tuple[dict, dict] | None = None,
    ) -> None:
        self.model, self.optimizer, self.plan, self.strategy = model, optimizer, plan, strategy
        self.take_step = strategy.compose(model, loss_fn, optimizer, settings, resume[1] if resume else None)
        self.batches = Batches(data, settings.batch_size, settings.seed)
        self.history = History()
        self.step = 0  # steps taken; the optimizer may have taken more, in an earlier training
        if resume:
            self.load_state(*resume)

    @property
    def is_done(self) -> bool:
        """Whether all steps have been taken."""
        return self.step >= self.plan.steps

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time that a `with` block takes to the history."""
        started = time.perf_counter()
        yield
        self.history.seconds += time.perf_counter() - started

    def log(self, batch: "TrainingBatch", measured: Measured, norm: xp.ndarray) -> None:
        """Add a step to the history and to the average. Waits for a GPU only if an accuracy was measured.

        Then it raises NotFiniteError on a GPU if a step since the last measurement was not finite.
        """
        history = self.history
        self.step += 1
        if self.plan.averaging:
            self.plan.averaging.update(self.step, self.optimizer.weights)
        history.losses.append(measured.loss)
        history.norms.append(norm)
        history.learning_rates.append(self.optimizer.lr)
        history.tokens += sum(int(special_ids(self.model).tokens(ids).sum()) for ids in batch.inputs)
        if measured.accuracy is not None:
            self.strategy.watch.check_pending()
            history.accuracies.append(float(measured.accuracy))

    def state(self) -> tuple[dict, dict]:
        """Everything except the model's weights -> arrays {name: array} on the host, and facts that JSON can hold.

        With several processes all must call it. The root gets everything, and the others the same facts.
        Raises NotFiniteError if the weights are not finite, so that no useless checkpoint is saved.
        """
        self.strategy.watch.check_weights()
        history = self.history
        averages, average_facts = self.plan.averaging.state() if self.plan.averaging else ({}, {})
        arrays, facts = self.strategy.optimizer_state()
        arrays.update(averages)
        for name in MEASURED:
            arrays[name] = np.array([float(value) for value in getattr(history, name)])
        return arrays, {
            "step": self.step,
            **facts,
            **average_facts,
            "tokens": history.tokens,
            "seconds": history.seconds,
            **self.batches.state(),
            **self.strategy.state(),
        }

    def load_state(self, arrays: dict, facts: dict) -> None:
        """Continue from what `state` returned, in a run of the same model with the same seed and batches.

        With the same settings and number of threads, the results are bit-identical to those of an uninterrupted run.
        Raises ValueError for a state that is incomplete.
        """
        try:
            self._load_state(arrays, facts)
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"this run cannot be resumed: {what}") from error

    def _load_state(self, arrays: dict, facts: dict) -> None:
        history = self.history
        self.step = self.strategy.watch.step = facts["step"]
        self.optimizer.load_state(arrays, facts)
        for name in arrays:
            if name == "ema" or name.startswith("snapshots."):
                check_shape(name, arrays[name], self.optimizer.weights.shape)
        if self.plan.averaging:
            self.plan.averaging.load_state(arrays, facts)
        for name in MEASURED:
            setattr(history, name, arrays[name].tolist())
        history.tokens, history.seconds = facts["tokens"], facts["seconds"]
        self.batches.load_state(facts)
        self.strategy.load_state(facts, self.step)

    def finish(self) -> History:
        """Put the average of the weights, if there is one, into the model -> History.

        Raises NotFiniteError if the weights are not finite.
        """
        self.strategy.watch.check_weights()
        average = self.plan.averaging.value() if self.plan.averaging else None
        if average is not None:
            self.optimizer.weights[...] = average
        for name in ("losses", "norms"):
            setattr(self.history, name, [float(value) for value in getattr(self.history, name)])
        return self.history
