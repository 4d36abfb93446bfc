"""The training loop, short enough to read in one go."""

import dataclasses
import time

import numpy as np
from tqdm import tqdm

from minitransformer.backend import make_generator, to_device, xp
from minitransformer.core import flatten_parameters
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models.config import PAD
from minitransformer.process import keep_freed_memory
from minitransformer.training.adam import Adam
from minitransformer.training.averaging import AVERAGED, average
from minitransformer.training.clip import clip_factor, grad_norm
from minitransformer.training.schedule import noam

LOG_EVERY = 20  # steps between two looks at the loss: on a GPU each look waits


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast to learn."""

    steps: int = 1000
    batch_size: int = 64  # pairs of sequences in a step
    warmup: int = 200  # steps of rising learning rate
    factor: float = 1.0  # on the Noam schedule
    max_norm: float = 1.0  # the gradient is clipped to this norm
    seed: int = 0  # of the data and of dropout
    average_every: int = 40  # steps between the last five sets of weights, whose mean is the result; 0: the last set

    def __post_init__(self):
        for name in ("steps", "batch_size", "warmup", "factor", "max_norm"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be greater than 0, got {getattr(self, name)}")

        if self.average_every < 0:
            raise ValueError(f"average_every must be 0 or more, got {self.average_every}")

    def takes_snapshot(self, step):
        """Whether the weights after `step` are among those to be averaged."""
        left = self.steps - step
        return left < AVERAGED * self.average_every and left % self.average_every == 0


@dataclasses.dataclass
class History:
    """What happened in training."""

    losses: list = dataclasses.field(default_factory=list)  # of every step, in nats per token
    accuracies: list = dataclasses.field(default_factory=list)  # share of right tokens, every LOG_EVERY steps
    learning_rates: list = dataclasses.field(default_factory=list)  # of every step
    tokens: int = 0  # of source and target, without padding
    seconds: float = 0.0


def train(model, task, settings):
    """Train `model` on `task` -> History. Shows a bar on a terminal and is quiet elsewhere."""
    keep_freed_memory()
    parameters = [flatten_parameters(model)]
    optimizer = Adam(parameters)
    data_rng = np.random.default_rng([settings.seed, 1])
    dropout_rng = make_generator([settings.seed, 2])
    history = History()
    snapshots = []
    start = time.perf_counter()
    with tqdm(total=settings.steps, unit="step", disable=None) as bar:
        for step in range(1, settings.steps + 1):
            batch = task.batch(data_rng, settings.batch_size)
            lr = noam(step, model.config.d_model, settings.warmup, settings.factor)
            log = step % LOG_EVERY == 0 or step == settings.steps
            state = (model, batch, dropout_rng, parameters, optimizer)
            loss, accuracy = train_step(*state, lr, settings.max_norm, measure=log)
            history.losses.append(loss)
            history.learning_rates.append(lr)
            history.tokens += sum(int((ids != PAD).sum()) for ids in (batch.source, batch.target_out))
            history.seconds = time.perf_counter() - start
            if settings.takes_snapshot(step):
                snapshots.append(parameters[0].data.copy())
            if log:
                history.accuracies.append(float(accuracy))
                bar.set_postfix_str(_progress(history))
            bar.update()
    if snapshots:
        parameters[0].data[...] = average(snapshots)
    history.losses = [float(loss) for loss in history.losses]
    return history


def train_step(model, batch, dropout_rng, parameters, optimizer, lr, max_norm, measure=False):
    """One step: forward, loss, backward, clip, Adam -> the loss, and the accuracy if it is to be measured or None."""
    for parameter in parameters:
        parameter.zero_grad()
    logits, cache = model.forward(batch.source, batch.target_in, rng=dropout_rng)
    target = to_device(batch.target_out)
    accuracy = token_accuracy(logits, target) if measure else None
    loss, cache_loss = cross_entropy(logits, target, model.config.label_smoothing, PAD, overwrite=True)
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    optimizer.step(lr, scale=clip_factor(grad_norm(parameters), max_norm))
    return loss, accuracy


def token_accuracy(logits, target):
    """The share of target tokens (B, T), padding left out, that have the largest logit (B, T, V) -> a 0-d array."""
    counts = target != PAD
    right = (logits.argmax(axis=-1) == target) & counts
    return right.sum() / xp.maximum(counts.sum(), 1)


def _progress(history):
    return (
        f"loss {float(history.losses[-1]):.3f}, accuracy {history.accuracies[-1]:.1%}, "
        f"lr {history.learning_rates[-1]:.1e}, {history.tokens / history.seconds:,.0f} tokens/s"
    )
