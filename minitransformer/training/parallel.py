"""A batch in parts: several threads work on one each, as the paper's eight GPUs did (section 5.2), or one by one.

The loss is a mean over the M tokens of a batch that count, so with M_i of them in part i

    loss = sum_i (M_i / M) loss_i        and therefore        grad = sum_i (M_i / M) grad_i

Data parallelism: each thread has a replica of the model, with the same weights and a gradient of its own, and every
product is its own to compute: no thread waits for another before the gradients are added up.

Gradient accumulation: parts that are computed one after another need the memory of one of them. `backward` adds to the
gradients in any case, so all there is to do is to call it again before the step.
"""

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_ids
from minitransformer.evaluation.accuracy import token_accuracy
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.generators import make_generator
from minitransformer.process import limit_threads
from minitransformer.vocabulary import PAD

LEAST = 2**16  # numbers in an activation (B, T, C): with fewer, threads wait for Python's lock more than they compute


def forward_backward(model, batch, rng=None, share=1.0, measure=False):
    """Add `share` times the gradient of the loss of `batch` -> the loss, and the accuracy if measured or None."""
    logits, cache = model.forward(*batch.inputs, rng=rng)
    check_ids("targets", batch.targets, logits.shape[-1])  # on the host: a GPU would not look
    target = to_device(batch.targets)
    accuracy = token_accuracy(logits, target) if measure else None
    loss, cache_loss = cross_entropy(logits, target, model.config.label_smoothing, PAD, overwrite=True)
    model.backward(cross_entropy_backward(share, cache_loss), cache)
    return loss, accuracy


class DataParallel:
    """A model, and replicas of it for the other members of a team of threads.

    A batch is taken in `accumulate` turns, in each of which the members share what the turn has of it. Member i draws
    its dropout masks from one stream, from turn to turn and from step to step.
    """

    def __init__(self, model, team, seed, accumulate=1):
        self.replicas = [model] + [model.replica() for _ in range(team.size - 1)]
        self.rngs = [make_generator([*seed, i] if i else seed) for i in range(team.size)]
        self.team = team
        self.accumulate = accumulate

    def forward_backward(self, batch, measure=False):
        """As the function of this name, for the model and the whole batch, in parts if that pays or saves memory."""
        parts = self._split(batch)
        members = len(parts) // self.accumulate
        if len(parts) == 1:
            return forward_backward(self.replicas[0], batch, self.rngs[0], measure=measure)
        tokens = [np.count_nonzero(part.targets != PAD) for part in parts]
        shares = [count / max(sum(tokens), 1) for count in tokens]
        results = []
        # the threads of each matrix product would be too many, if there are several members
        with limit_threads(1 if members > 1 else None, of_team=True):
            for first in range(0, len(parts), members):
                turn = slice(first, first + members)
                jobs = (self.replicas[:members], parts[turn], self.rngs[:members], shares[turn], [measure] * members)
                results += self.team.map(forward_backward, *jobs)
            self._gather_gradients()
        losses, accuracies = zip(*results, strict=True)
        return weighted_sum(shares, losses), weighted_sum(shares, accuracies) if measure else None

    def _split(self, batch):
        """The batch, cut into parts of about the same number of sequences: in each turn one for each member.

        Raises ValueError if there are not enough sequences.
        """
        if len(batch.targets) < self.accumulate:
            raise ValueError(f"a batch of {len(batch.targets)} sequences cannot be cut into {self.accumulate} parts")
        members = members_at_work(
            self.team.size, *batch.targets.shape, self.replicas[0].config.d_model, self.accumulate
        )
        columns = (np.array_split(ids, self.accumulate * members) for ids in batch)
        return [type(batch)(*part) for part in zip(*columns, strict=True)]

    def _gather_gradients(self):
        """Add the replicas' gradients to the model's, and leave them none: their memory serves the next step."""
        self.team.map(_gather, *(replica.parameters() for replica in self.replicas))


def members_at_work(size, B, T, C, accumulate=1):
    """How many of a team of `size` threads share each turn of a batch of B sequences of T tokens."""
    return max(1, min(size, B // accumulate, B * T * C // accumulate // LEAST))


def _gather(parameter, *others):
    for other in others:
        gradient = other.take_grad()
        if gradient is not None:
            parameter.add_grad(gradient)


def weighted_sum(weights, values):
    """sum_i weights_i values_i"""
    return sum(weight * value for weight, value in zip(weights, values, strict=True))
