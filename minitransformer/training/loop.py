"""The training loop, short enough to read in one go."""

import dataclasses
import time

import numpy as np

from minitransformer.models.config import PAD
from minitransformer.process import keep_freed_memory
from minitransformer.progress import tqdm
from minitransformer.training.averaging import AVERAGED, average
from minitransformer.training.schedule import noam
from minitransformer.training.trainer import Trainer

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
    trainer = Trainer(model, seed=settings.seed, max_norm=settings.max_norm)
    weights = trainer.parameters[0].data  # all of them, in one vector
    data_rng = np.random.default_rng([settings.seed, 1])
    history = History()
    snapshots = []
    start = time.perf_counter()
    with tqdm(total=settings.steps, unit="step", disable=None) as bar:
        for step in range(1, settings.steps + 1):
            batch = task.batch(data_rng, settings.batch_size)
            lr = noam(step, model.config.d_model, settings.warmup, settings.factor)
            log = step % LOG_EVERY == 0 or step == settings.steps
            loss, accuracy = trainer.step(batch, lr, measure=log)
            history.losses.append(loss)
            history.learning_rates.append(lr)
            history.tokens += sum(int((ids != PAD).sum()) for ids in (batch.source, batch.target_out))
            history.seconds = time.perf_counter() - start
            if settings.takes_snapshot(step):
                snapshots.append(weights.copy())
            if log:
                history.accuracies.append(float(accuracy))
                bar.set_postfix_str(_progress(history))
            bar.update()
    if snapshots:
        weights[...] = average(snapshots)
    history.losses = [float(loss) for loss in history.losses]
    return history


def _progress(history):
    return (
        f"loss {float(history.losses[-1]):.3f}, accuracy {history.accuracies[-1]:.1%}, "
        f"lr {history.learning_rates[-1]:.1e}, {history.tokens / history.seconds:,.0f} tokens/s"
    )
