"""One step of learning, and all that it needs."""

from minitransformer.backend import backend_name
from minitransformer.core import flatten_parameters
from minitransformer.process import Team, num_threads
from minitransformer.training.adam import Adam
from minitransformer.training.clip import clip_factor, grad_norm
from minitransformer.training.data_parallel import DataParallel


class Trainer:
    """A model with its optimiser, its dropout masks' generators, and the threads that work for it.

    `seed` is that of dropout. `threads` is the number of threads, by default as many as NumPy's matrix product takes
    (on a GPU one, to feed it); the same seed and the same number of threads give the same bits.
    """

    def __init__(self, model, *, seed=0, max_norm=1.0, threads=None):
        self.model = model
        self.max_norm = max_norm
        self.parameters = [flatten_parameters(model)]
        on_cpu = backend_name() == "numpy"
        team = Team(threads or (num_threads() if on_cpu else 1))
        self.optimizer = Adam(self.parameters, team=team)
        self.workers = DataParallel(model, team, [seed, 2])
        self.team = team

    def step(self, batch, lr, measure=False):
        """Forward, loss, backward, clip, Adam -> the loss, and the accuracy if it is to be measured or None."""
        for parameter in self.parameters:
            parameter.zero_grad()
        loss, accuracy = self.workers.forward_backward(batch, measure)
        norm = grad_norm(self.parameters, self.team)
        self.optimizer.step(lr, scale=clip_factor(norm, self.max_norm))
        return loss, accuracy
