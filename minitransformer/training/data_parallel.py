"""Data parallelism: several threads work on one batch, each on a part, as the paper's eight GPUs did (section 5.2).

The loss is a mean over the M tokens of a batch that count, so with M_i of them in part i

    loss = sum_i (M_i / M) loss_i        and therefore        grad = sum_i (M_i / M) grad_i

Each thread has a replica of the model, with the same weights and a gradient of its own, and every product is its own
to compute: no thread waits for another before the gradients are added up.
"""

import numpy as np

from minitransformer.backend import make_generator, to_device
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models.config import PAD
from minitransformer.process import limit_threads
from minitransformer.training.metrics import token_accuracy

LEAST = 2**16  # numbers in an activation (B, T, C): with fewer, threads wait for Python's lock more than they compute


def forward_backward(model, batch, rng=None, share=1.0, measure=False):
    """Add `share` times the gradient of the loss of `batch` -> the loss, and the accuracy if measured or None."""
    logits, cache = model.forward(*batch.inputs, rng=rng)
    target = to_device(batch.targets)
    accuracy = token_accuracy(logits, target) if measure else None
    loss, cache_loss = cross_entropy(logits, target, model.config.label_smoothing, PAD, overwrite=True)
    model.backward(cross_entropy_backward(share, cache_loss), cache)
    return loss, accuracy


class DataParallel:
    """A model, and replicas of it for the other members of a team of threads."""

    def __init__(self, model, team, seed):
        self.replicas = [model] + [model.replica() for _ in range(team.size - 1)]
        self.rngs = [make_generator([*seed, i] if i else seed) for i in range(team.size)]
        self.team = team

    def forward_backward(self, batch, measure=False):
        """As the function of this name, for the model and the whole batch, in parts if that pays."""
        parts = self._split(batch)
        if len(parts) == 1:
            return forward_backward(self.replicas[0], batch, self.rngs[0], measure=measure)
        tokens = [np.count_nonzero(part.targets != PAD) for part in parts]
        shares = [count / max(sum(tokens), 1) for count in tokens]
        jobs = (self.replicas, parts, self.rngs, shares, [measure] * len(parts))
        with limit_threads(1):  # the threads of each matrix product would be one too many
            results = self.team.map(forward_backward, *(job[: len(parts)] for job in jobs))
            self._gather_gradients()
        losses, accuracies = zip(*results, strict=True)
        return weighted_sum(shares, losses), weighted_sum(shares, accuracies) if measure else None

    def _split(self, batch):
        """The batch, cut into at most as many parts as there are threads."""
        size = batch.targets.size * self.replicas[0].config.d_model
        count = max(1, min(self.team.size, len(batch.targets), size // LEAST))
        columns = (np.array_split(ids, count) for ids in batch)
        return [type(batch)(*part) for part in zip(*columns, strict=True)]

    def _gather_gradients(self):
        """Add the replicas' gradients to the model's, and leave them none: their memory serves the next step."""
        self.team.map(_gather, *(replica.parameters() for replica in self.replicas))


def _gather(parameter, *others):
    for other in others:
        gradient = other.take_grad()
        if gradient is not None:
            parameter.add_grad(gradient)


def weighted_sum(weights, values):
    """sum_i weights_i values_i"""
    return sum(weight * value for weight, value in zip(weights, values, strict=True))
