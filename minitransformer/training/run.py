"""A training: the loop of loop.py with all that goes on around it, and the state of a run, to save and resume it."""

import dataclasses
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from minitransformer.checks import check_shape
from minitransformer.config import special_ids
from minitransformer.core import Layer
from minitransformer.data.task import EpochTask, Task
from minitransformer.layers.losses import CrossEntropyLoss, loss_for
from minitransformer.models.changed import check_used
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.system.signals import Postponed
from minitransformer.training.batches import Batches
from minitransformer.training.loop import Plan, Taken, training_steps
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.strategy import Strategy
from minitransformer.training.saving.averaging import Averaging
from minitransformer.training.settings import TrainingSettings

if TYPE_CHECKING:
    from minitransformer.training.saving.checkpointer import Checkpointer

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
        strategy: Strategy,
        resume: tuple[dict, dict] | None = None,
    ) -> None:
        self.model, self.optimizer, self.plan, self.strategy = model, optimizer, plan, strategy
        self.take_step = strategy.compose(model, loss_fn, optimizer, settings, resume[1] if resume else None)
        self.batches = Batches(data, settings.batch_size, settings.seed)
        self.history = History()
        self.step = 0  # steps taken; the optimizer may have taken more, in an earlier training
        if resume:
            self.load_state(*resume)
        self.started = time.perf_counter()  # of the step that comes next

    @property
    def is_done(self) -> bool:
        """Whether all steps have been taken."""
        return self.step >= self.plan.steps

    def log(self, taken: Taken) -> None:
        """Add a step to the history and to the average. Waits for a GPU only if an accuracy was measured.

        Then it raises NotFiniteError on a GPU if a step since the last measurement was not finite.
        """
        history, measured = self.history, taken.measured
        self.step, self.plan = taken.step, taken.plan
        if self.plan.averaging:
            self.plan.averaging.update(self.step, self.optimizer.weights)
        history.losses.append(measured.loss)
        history.norms.append(taken.norm)
        history.learning_rates.append(self.optimizer.lr)
        history.tokens += sum(int(special_ids(self.model).tokens(ids).sum()) for ids in taken.batch.inputs)
        if measured.accuracy is not None:
            self.strategy.watch.check_pending()
            history.accuracies.append(float(measured.accuracy))
        history.seconds += time.perf_counter() - self.started

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


def train(
    model: Layer,
    data: Task | EpochTask,
    optimizer: Adam | None = None,
    schedule: Callable[[int], float] | None = None,
    loss_fn: Any = None,
    settings: TrainingSettings | None = None,
    *,
    averaging: Averaging | None = None,
    plan: Plan | None = None,
    evaluate: Callable[[int, History], Any] | None = None,
    checkpointer: "Checkpointer | None" = None,
    resume: tuple[dict, dict] | None = None,
    num_threads: int | None = None,
    strategy: Strategy | None = None,
) -> History:
    """Train `model` on `data` -> History. Shows a progress bar on a terminal, and elsewhere a line now and then.

    Model and loss may be your own, if they follow the protocol of `core.Layer`: what is computed is `training_step`.
    data.batch(rng, batch_size) returns a batch with `inputs` for the model and `targets` for the loss; data with epochs
    has data.epoch(rng, batch_size) instead (see data/task.py). schedule(step) returns the learning rate of a step,
    counted from 1; without a schedule the optimizer keeps its own. The defaults are the paper's Adam and cross-entropy.

    Each call trains `settings.steps` steps, also with an optimizer that has taken steps before, whose running means go
    on. `averaging` averages the weights over the end of training. A `plan` replaces steps, schedule and averaging; only
    one that follows a clock is asked for them again before each step. evaluate(step, history) is called every
    `settings.eval_interval` steps. A `checkpointer` saves the run at intervals, and raises Stopped when the process is
    asked to end. `resume` is the state of a saved run (see `read_run`): training continues from there, and with the
    same settings the result is bit-identical to that of an uninterrupted run.

    `num_threads` threads share each batch: by default as many as the resumed run had, or as many as the model and its
    batches keep busy (see `default_threads`). A `strategy` may share it among processes as well: all of them call this
    function with the same arguments, and one alone shows progress, evaluates and saves. A `ShardedAdam` as the
    optimizer spreads its running means over them.

    Ctrl-C waits for the end of the step: model, optimizer and averages are those after a whole step when it raises
    KeyboardInterrupt. A second Ctrl-C ends the step at once; an optimizer that it left halfway refuses the next step.

    Raises ValueError for a layer that nothing in the model calls, and NotFiniteError for a loss or gradient that is not
    finite, before it reaches the weights (on a GPU later, see Diagnostics).
    """
    settings, optimizer = settings or TrainingSettings(), optimizer or Adam(model.parameters())
    plan, strategy = plan or Plan(settings.steps, schedule, averaging), strategy or Strategy(num_threads)
    check_used(model)
    if checkpointer:
        checkpointer.check(model)
    run = TrainingRun(model, data, optimizer, loss_fn or loss_for(model), settings, plan, strategy, resume)
    progress = tqdm(total=plan.steps, initial=run.step, unit="step", disable=None if strategy.is_root else True)
    with Postponed(to_take=checkpointer is not None) as signals, limit_threads(strategy.num_threads), progress:
        for taken in training_steps(run.batches, run.take_step, optimizer, plan, after=run.step):
            progress.total = taken.plan.steps
            run.log(taken)
            progress.update()
            if taken.measured.accuracy is not None:
                progress.set_postfix_str(run.history.latest())
            if evaluate and run.step % settings.eval_interval == 0:
                strategy.in_root(evaluate, run.step, run.history)
            if checkpointer:
                checkpointer.after_step(run, signals)
            elif not run.is_done:
                signals.deliver()
            run.started = time.perf_counter()
        return run.finish()
