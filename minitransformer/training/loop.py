"""The training loop, short enough to read in one go."""

import dataclasses
import time

import numpy as np

from minitransformer.checks import check_rate
from minitransformer.models.config import PAD
from minitransformer.process import keep_freed_memory
from minitransformer.progress import tqdm
from minitransformer.training.averaging import AVERAGED, ExponentialAverage, average
from minitransformer.training.schedule import cosine, noam
from minitransformer.training.trainer import Trainer

LOG_EVERY = 20  # steps between two looks at the loss: on a GPU each look waits


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast to learn."""

    steps: int = 1000
    batch_size: int = 64  # pairs of sequences in a step
    warmup: int = 200  # steps of rising learning rate
    factor: float = 1.0  # on the Noam schedule
    peak: float | None = None  # a learning rate: then the schedule is a cosine with this peak, and not Noam's
    max_norm: float = 1.0  # the gradient is clipped to this norm
    seed: int = 0  # of the data and of dropout
    average_every: int = 40  # steps between the last sets of weights, whose mean is the result; 0: the last set
    averaged: int = AVERAGED  # sets of weights
    ema: float = 0.0  # decay of an exponential average of the weights, which is then the result; 0: as above

    def __post_init__(self):
        for name in ("steps", "batch_size", "warmup", "factor", "max_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be greater than 0, got {getattr(self, name)}")

        if self.average_every < 0:
            raise ValueError(f"average_every must be 0 or more, got {self.average_every}")
        check_rate("ema", self.ema)

    def learning_rate(self, step, d_model):
        """The learning rate of a step, which counts from 1."""
        if self.peak is None:
            return noam(step, d_model, self.warmup, self.factor)
        return cosine(step, self.steps, self.peak, self.warmup)

    def takes_snapshot(self, step):
        """Whether the weights after `step` are among those to be averaged."""
        left = self.steps - step
        return not self.ema and left < self.averaged * self.average_every and left % self.average_every == 0


@dataclasses.dataclass
class History:
    """What happened in training."""

    losses: list = dataclasses.field(default_factory=list)  # of every step, in nats per token
    accuracies: list = dataclasses.field(default_factory=list)  # share of right tokens, every LOG_EVERY steps
    learning_rates: list = dataclasses.field(default_factory=list)  # of every step
    tokens: int = 0  # that the model has read, without padding
    seconds: float = 0.0


def train(model, task, settings, watch=None):
    """Train `model` on `task` -> History. Shows a bar on a terminal and is quiet elsewhere.

    `watch(step, history)`, if given, is called after each step, to look at the model as it learns.
    """
    keep_freed_memory()
    trainer = Trainer(model, seed=settings.seed, max_norm=settings.max_norm)
    weights = trainer.parameters[0].data  # all of them, in one vector
    data_rng = np.random.default_rng([settings.seed, 1])
    history = History()
    snapshots, ema = [], ExponentialAverage(settings.ema) if settings.ema else None
    start = time.perf_counter()
    with tqdm(total=settings.steps, unit="step", disable=None) as bar:
        for step in range(1, settings.steps + 1):
            batch = task.batch(data_rng, settings.batch_size)
            lr = settings.learning_rate(step, model.config.d_model)
            log = step % LOG_EVERY == 0 or step == settings.steps
            loss, accuracy = trainer.step(batch, lr, measure=log)
            history.losses.append(loss)
            history.learning_rates.append(lr)
            history.tokens += sum(int((ids != PAD).sum()) for ids in batch.inputs)
            history.seconds = time.perf_counter() - start
            if settings.takes_snapshot(step):
                snapshots.append(weights.copy())
            if ema:
                ema.update(weights)
            if log:
                history.accuracies.append(float(accuracy))
                bar.set_postfix_str(_progress(history))
            bar.update()
            if watch:
                watch(step, history)
    if snapshots or ema:
        weights[...] = ema.value() if ema else average(snapshots)
    history.losses = [float(loss) for loss in history.losses]
    return history


def _progress(history):
    return (
        f"loss {float(history.losses[-1]):.3f}, accuracy {history.accuracies[-1]:.1%}, "
        f"lr {history.learning_rates[-1]:.1e}, {history.tokens / history.seconds:,.0f} tokens/s"
    )
