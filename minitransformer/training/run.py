"""A training run: everything that its next step depends on, so that it can be saved and resumed."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.data.task import EpochTask, Task, TrainingBatch
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.system.generators import generator_state, make_generator, restore_generator
from minitransformer.training.accumulation import GradientAccumulation
from minitransformer.training.averaging import Averaging
from minitransformer.training.batches import Batches
from minitransformer.training.diagnostics import Diagnostics
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.communicator import ONE_PROCESS, Communicator
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.parallel.sharded import ShardedAdam
from minitransformer.training.parallel.threads import DataParallel, default_threads
from minitransformer.training.settings import TrainingSettings
from minitransformer.vocabulary import PAD

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
        return (
            f"loss {float(self.losses[-1]):.3f}, accuracy {self.accuracies[-1]:.1%}, "
            f"lr {self.learning_rates[-1]:.1e}, {self.tokens / max(self.seconds, 1e-9):,.0f} tokens/s"
        )


def saved_threads(facts: dict) -> int | None:
    """The number of threads of a run that was saved with these facts, or None if they do not say it."""
    rngs, processes = facts.get("dropout_rngs"), facts.get("processes", 1)
    if not rngs or not isinstance(rngs, list) or not isinstance(processes, int) or processes < 1:
        return None
    return max(1, len(rngs) // processes)


class TrainingRun:
    """A model with its data, optimizer, workers, random states, averages and history.

    `num_threads` defaults to that of the run to `resume`, and for a new run to `default_threads`.
    """

    def __init__(
        self,
        model: Layer,
        data: Task | EpochTask,
        optimizer: Adam,
        loss_fn: CrossEntropyLoss,
        settings: TrainingSettings,
        averaging: Averaging | None = None,
        num_threads: int | None = None,
        resume: tuple[dict, dict] | None = None,
        communicator: Communicator = ONE_PROCESS,
    ) -> None:
        self.model, self.optimizer, self.settings, self.averaging = model, optimizer, settings, averaging
        self.communicator = communicator
        if isinstance(optimizer, ShardedAdam) and optimizer.communicator is not communicator:
            raise ValueError("the optimizer is sharded over other processes than those of the training")
        num_threads = num_threads or (saved_threads(resume[1]) if resume else None)
        config, rows = model.config, settings.micro_batch_size  # type: ignore[attr-defined]
        num_threads = communicator.collect(num_threads or default_threads(config, rows))[0]
        self.workers = DataParallel(model, loss_fn, num_threads, seed=[settings.seed, 2], rank=communicator.rank)
        self.sharers: GradientAccumulation | ProcessParallel = GradientAccumulation(
            self.workers, settings.grad_accumulation_steps, optimizer.parameters if settings.deterministic else ()
        )
        if communicator.size > 1:
            sharded = isinstance(optimizer, ShardedAdam)
            self.sharers = ProcessParallel(
                self.sharers, communicator, optimizer.parameters, settings.deterministic, sharded
            )
        self.diagnostics = Diagnostics(self.workers, settings.detect_anomaly)
        self.batches = Batches(data, settings.batch_size, settings.seed)
        self.history = History()
        optimizer.team = self.workers.team
        if resume:
            self.load_state(*resume)

    @property
    def num_threads(self) -> int:
        """Threads that share a batch."""
        return self.workers.team.size

    @property
    def step(self) -> int:
        """Steps taken."""
        return self.optimizer.t

    @property
    def is_done(self) -> bool:
        """Whether all steps have been taken."""
        return self.step >= self.settings.steps

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Add the time that a `with` block takes to the history."""
        started = time.perf_counter()
        yield
        self.history.seconds += time.perf_counter() - started

    def log(
        self,
        batch: TrainingBatch,
        loss: xp.ndarray,
        norm: xp.ndarray,
        accuracy: xp.ndarray | None,
        learning_rate: float,
    ) -> None:
        """Add a step to the history. Waits for a GPU only if an accuracy was measured.

        Then it raises NotFiniteError on a GPU if a step since the last measurement was not finite.
        """
        history = self.history
        history.losses.append(loss)
        history.norms.append(norm)
        history.learning_rates.append(learning_rate)
        history.tokens += sum(int((ids != PAD).sum()) for ids in batch.inputs)
        if accuracy is not None:
            self.diagnostics.check_pending()
            history.accuracies.append(float(accuracy))

    def state(self) -> tuple[dict, dict]:
        """Everything except the model's weights -> arrays {name: array} on the host, and facts that JSON can hold.

        With several processes all must call it. The root gets everything, and the others the same facts.
        Raises NotFiniteError if the weights are not finite, so that no useless checkpoint is saved.
        """
        self.diagnostics.check_weights()
        history = self.history
        averages, average_facts = self.averaging.state() if self.averaging else ({}, {})
        arrays, facts = self.optimizer.state()
        arrays.update(averages)
        for name in MEASURED:
            arrays[name] = np.array([float(value) for value in getattr(history, name)])
        rngs = [generator_state(rng) for rng in self.workers.rngs]
        return arrays, {
            **facts,
            **average_facts,
            "tokens": history.tokens,
            "seconds": history.seconds,
            **self.batches.state(),
            "processes": self.communicator.size,
            "dropout_rngs": [state for states in self.communicator.collect(rngs) for state in states],
        }

    def load_state(self, arrays: dict, facts: dict) -> None:
        """Continue from what `state` returned, in a run of the same model with the same seed and batches.

        With the same settings and number of threads, the results are bit-identical to those of an uninterrupted run.
        Raises ValueError for a state that is incomplete.
        """
        try:
            self._load_state(arrays, facts)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"this run cannot be resumed: {what}") from error

    def _load_state(self, arrays: dict, facts: dict) -> None:
        optimizer, history, rngs = self.optimizer, self.history, self.workers.rngs
        optimizer.load_state(arrays, facts)
        if self.averaging:
            self.averaging.load_state(arrays, facts)
        for name in MEASURED:
            setattr(history, name, arrays[name].tolist())
        history.tokens, history.seconds = facts["tokens"], facts["seconds"]
        self.batches.load_state(facts)
        saved = facts["dropout_rngs"]
        for i, number in enumerate(range(self.communicator.rank * len(rngs), (self.communicator.rank + 1) * len(rngs))):
            if number < len(saved):
                restore_generator(rngs[i], saved[number])
            else:  # a thread that was added draws numbers that none has drawn before
                rngs[i] = make_generator([self.settings.seed, 2, number, self.step])

    def finish(self) -> History:
        """Put the average of the weights, if there is one, into the model -> History.

        Raises NotFiniteError if the weights are not finite.
        """
        self.diagnostics.check_weights()
        average = self.averaging.value() if self.averaging else None
        if average is not None:
            self.optimizer.weights[...] = average
        for name in ("losses", "norms"):
            setattr(self.history, name, [float(value) for value in getattr(self.history, name)])
        return self.history
