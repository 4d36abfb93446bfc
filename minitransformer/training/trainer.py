"""One step of learning, and all that it needs."""

from functools import partial

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.core import flatten_parameters
from minitransformer.process import Team, num_threads
from minitransformer.training.anomaly_hooks import SILENT
from minitransformer.training.clipping import clip_factor, grad_norm
from minitransformer.training.diagnostics import Guard
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel import DataParallel


class Trainer:
    """A model with its optimiser, its dropout masks' generators, and the threads that work for it.

    `seed` is that of dropout. `threads` is the number of threads, by default as many as NumPy's matrix product takes
    (on a GPU one, to feed it). Each batch is computed in `accumulate` turns, which need so much less memory; the
    gradient is that of the whole batch. The same seed, threads and turns give the same bits. `detect_anomaly`
    looks at every array that the layers make, to name the first that is not finite.
    """

    def __init__(self, model, *, seed=0, max_norm=1.0, threads=None, accumulate=1, detect_anomaly=False):
        self.model = model
        self.max_norm = max_norm
        self.parameters = [flatten_parameters(model)]
        on_cpu = backend_name() == "numpy"
        team = Team(threads or (num_threads() if on_cpu else 1))
        self.optimizer = Adam(self.parameters, team=team)
        self.workers = DataParallel(model, team, [seed, 2], accumulate)
        self.guard = Guard(self.workers, self.optimizer, detect_anomaly)
        self.team = team

    @np.errstate(**SILENT)  # the guard looks at the numbers, and says more than a warning would
    def step(self, batch, lr, measure=False):
        """Forward, loss, backward, clip, Adam -> the loss, and the accuracy if it is to be measured or None.

        Raises NotFiniteError, and moves nothing, if the loss or the gradient is not finite (on a GPU later: see Guard).
        """
        for parameter in self.parameters:
            parameter.zero_grad()
        with self.guard.computing(lr):
            loss, accuracy = self.workers.forward_backward(batch, measure)
        norm = grad_norm(self.parameters, self.team)
        self.guard.check(partial(self._again, batch), loss, norm, lr)
        self.optimizer.step(lr, scale=clip_factor(norm, self.max_norm))
        return loss, accuracy

    def _again(self, batch):
        """The loss and the norm of the gradient of a step that went wrong."""
        loss, _ = self.workers.forward_backward(batch)
        return loss, grad_norm(self.parameters, self.team)
