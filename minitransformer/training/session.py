"""A training in progress: all that its next step depends on, so that it can be put away and taken up again."""

import dataclasses
import time

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.generators import generator_state, restore_generator
from minitransformer.training.averaging import ExponentialAverage, average
from minitransformer.training.trainer import Trainer
from minitransformer.vocabulary import PAD

LOG_EVERY = 20  # steps between two looks at the loss: on a GPU each look waits


@dataclasses.dataclass
class History:
    """What happened in training."""

    losses: list = dataclasses.field(default_factory=list)  # of every step, in nats per token
    accuracies: list = dataclasses.field(default_factory=list)  # share of right tokens, every LOG_EVERY steps
    learning_rates: list = dataclasses.field(default_factory=list)  # of every step
    tokens: int = 0  # that the model has read, without padding
    seconds: float = 0.0


class Session:
    """A model, a task, the settings, and how far they have got; `advance` is one step."""

    def __init__(self, model, task, settings):
        self.task, self.settings = task, settings
        self.trainer = Trainer(
            model,
            seed=settings.seed,
            max_norm=settings.max_norm,
            accumulate=settings.accumulate,
            detect_anomaly=settings.detect_anomaly,
        )
        self.weights = self.trainer.parameters[0].data  # all of them, in one vector
        self.data_rng = np.random.default_rng([settings.seed, 1])
        self.history = History()
        self.snapshots, self.ema = [], ExponentialAverage(settings.ema) if settings.ema else None
        self.step = 0  # steps taken

    @property
    def is_done(self):
        """Whether all steps have been taken."""
        return self.step >= self.settings.steps

    def advance(self):
        """One step -> whether its loss and accuracy were looked at. NotFiniteError if they cannot be."""
        settings, history, started = self.settings, self.history, time.perf_counter()
        self.step += 1
        batch = self.task.batch(self.data_rng, settings.batch_size)
        lr = settings.learning_rate(self.step, self.trainer.model.config.d_model)
        log = self.step % LOG_EVERY == 0 or self.is_done
        loss, accuracy = self.trainer.step(batch, lr, measure=log)
        history.losses.append(loss)
        history.learning_rates.append(lr)
        history.tokens += sum(int((ids != PAD).sum()) for ids in batch.inputs)
        if settings.takes_snapshot(self.step):
            self.snapshots.append(self.weights.copy())
        if self.ema:
            self.ema.update(self.weights)
        if log:
            self.trainer.guard.look()
            history.accuracies.append(float(accuracy))
        history.seconds += time.perf_counter() - started
        return log

    def state(self):
        """All of that but the model's weights -> arrays {name: array} on the host, and facts that JSON can hold.

        Raises NotFiniteError if the weights are not finite, so that none are put away from which nothing can go on.
        """
        self.trainer.guard.check_weights()
        adam, history = self.trainer.optimizer, self.history
        arrays = {"adam.m": to_host(adam.m[0]), "adam.v": to_host(adam.v[0])}
        arrays |= {f"snapshots.{i}": to_host(snapshot) for i, snapshot in enumerate(self.snapshots)}
        if self.ema and self.ema.t:
            arrays["ema"] = to_host(self.ema.mean)
        for name in ("losses", "learning_rates", "accuracies"):
            arrays[name] = np.array([float(value) for value in getattr(history, name)])
        return arrays, {
            "step": self.step,
            "ema_updates": self.ema.t if self.ema else 0,
            "tokens": history.tokens,
            "seconds": history.seconds,
            "data_rng": generator_state(self.data_rng),
            "dropout_rngs": [generator_state(rng) for rng in self.trainer.workers.rngs],
        }

    def load_state(self, arrays, facts):
        """Go on from what `state` has given, in a session on the same model with the same settings and threads.

        Raises ValueError for a state that is not whole, or of another number of threads.
        """
        try:
            self._load_state(arrays, facts)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else error
            raise ValueError(f"this training cannot be taken up where it was: {what}") from error

    def _load_state(self, arrays, facts):
        adam, history = self.trainer.optimizer, self.history
        rngs, put_away = self.trainer.workers.rngs, facts["dropout_rngs"]
        if len(put_away) != len(rngs):
            raise ValueError(f"it was begun with {len(put_away)} threads, and there are {len(rngs)} now (--threads)")
        for name, array in (("adam.m", adam.m[0]), ("adam.v", adam.v[0])):
            if arrays[name].shape != array.shape:
                raise ValueError(f"{name} must be of shape {array.shape}, got {arrays[name].shape}")
            array[...] = to_device(arrays[name])
        self.step = adam.t = facts["step"]
        count = sum(name.startswith("snapshots.") for name in arrays)
        self.snapshots = [to_device(arrays[f"snapshots.{i}"]) for i in range(count)]
        if self.ema and facts["ema_updates"]:
            self.ema.t, self.ema.mean = facts["ema_updates"], to_device(arrays["ema"])
        for name in ("losses", "learning_rates", "accuracies"):
            setattr(history, name, arrays[name].tolist())
        history.tokens, history.seconds = facts["tokens"], facts["seconds"]
        restore_generator(self.data_rng, facts["data_rng"])
        for rng, state in zip(rngs, put_away, strict=True):
            restore_generator(rng, state)

    def finish(self):
        """Put the average of the weights, if there is to be one, into the model -> History."""
        self.trainer.guard.check_weights()
        if self.snapshots or self.ema:
            self.weights[...] = self.ema.value() if self.ema else average(self.snapshots)
        self.history.losses = [float(loss) for loss in self.history.losses]
        return self.history
