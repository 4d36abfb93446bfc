"""The training loop, short enough to read in one go."""

import contextlib
import dataclasses
import math

import numpy as np

from minitransformer.checks import check_integer, check_number, check_rate
from minitransformer.process import keep_freed_memory
from minitransformer.progress import tqdm
from minitransformer.training.anomaly_hooks import SILENT
from minitransformer.training.averaging import AVERAGED
from minitransformer.training.schedules import cosine, noam
from minitransformer.training.session import Session


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
    accumulate: int = 1  # parts of a batch that are computed one after another, to save memory
    ema: float = 0.0  # decay of an exponential average of the weights, which is then the result; 0: as above
    detect_anomaly: bool = False  # look at every layer in every step, to name the first that is not finite: slow

    def __post_init__(self):
        for name in ("steps", "batch_size", "warmup", "factor", "peak", "max_norm"):
            value = getattr(self, name)
            if name != "peak" or value is not None:
                self._check_above_0(name, value)
        if not 1 <= self.accumulate <= self.batch_size:
            raise ValueError(f"accumulate must be from 1 to batch_size = {self.batch_size}, got {self.accumulate}")
        for name, least in (("average_every", 0), ("averaged", 1), ("seed", 0)):
            check_integer(name, getattr(self, name), least)
        check_rate("ema", self.ema)

    @staticmethod
    def _check_above_0(name, value):
        if not check_number(name, value) > 0:
            raise ValueError(f"{name} must be greater than 0, got {value}")
        if name != "max_norm" and value == math.inf:
            raise ValueError(f"{name} must be finite, got {value}")
        if name in ("steps", "batch_size", "warmup"):
            check_integer(name, value, least=1)

    @property
    def at_once(self):
        """Sequences of a batch that are computed at one time."""
        return -(-self.batch_size // self.accumulate)

    def learning_rate(self, step, d_model):
        """The learning rate of a step, which counts from 1."""
        if self.peak is None:
            return noam(step, d_model, self.warmup, self.factor)
        return cosine(step, self.steps, self.peak, self.warmup)

    def takes_snapshot(self, step):
        """Whether the weights after `step` are among those to be averaged."""
        left = self.steps - step
        return not self.ema and left < self.averaged * self.average_every and left % self.average_every == 0


def train(model, task, settings, watch=None, keeper=None, begun=None):
    """Train `model` on `task` -> History. Shows a bar on a terminal and is quiet elsewhere.

    `watch(step, history)`, if given, is called after each step, to look at the model as it learns. A `keeper` (see
    keeping.py) puts the training away now and then, and raises Stopped when the process is asked to end. A loss or a
    gradient that is not finite ends it with NotFiniteError (anomaly.py), and its step is not made. `begun` is
    the arrays and facts of a training that was put away and goes on here, to the same bits as if it had not been.
    """
    keep_freed_memory()
    session = Session(model, task, settings)
    if begun:
        session.load_state(*begun)
    listening = keeper.listening() if keeper else contextlib.nullcontext()
    with listening, tqdm(total=settings.steps, initial=session.step, unit="step", disable=None) as bar:
        while not session.is_done:
            if session.advance():
                bar.set_postfix_str(_progress(session.history))
            bar.update()
            if watch:
                with np.errstate(**SILENT):  # as in the step: the next one says what is wrong with the weights
                    watch(session.step, session.history)
            if keeper:
                keeper.after_step(session)
    return session.finish()


def _progress(history):
    return (
        f"loss {float(history.losses[-1]):.3f}, accuracy {history.accuracies[-1]:.1%}, "
        f"lr {history.learning_rates[-1]:.1e}, {history.tokens / history.seconds:,.0f} tokens/s"
    )
