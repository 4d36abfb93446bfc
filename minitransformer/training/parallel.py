"""Data parallelism: several threads share each batch, as the paper's eight GPUs did (section 5.2).

The loss is a mean over the M tokens of a batch that count, so with M_i of them in part i

    loss = sum_i (M_i / M) loss_i        and therefore        grad = sum_i (M_i / M) grad_i

Each thread has a replica of the model, with the same weights and a gradient of its own, and computes its products
alone: no thread waits for another before the gradients are added up.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.core import Layer, Parameter
from minitransformer.generators import make_generator
from minitransformer.process import ThreadTeam, limit_threads, num_threads, threads_are_chosen
from minitransformer.training.losses import CrossEntropyLoss

MIN_NUMBERS = 2**16  # in a part's (B, T, C): with fewer, threads wait for Python's lock more than they compute

NARROW = 128  # features per token: below this, matrix products are too small for threads to share


class DataParallel:
    """A model, and replicas of it for the other threads of a team.

    `threads` is their number, by default as many as NumPy's matrix product takes (on a GPU one, to feed it). Thread i
    draws its dropout masks from a stream of its own, seeded with `seed` and i. The same seed and number of threads give
    the same bits.
    """

    def __init__(
        self, model: Layer, loss_fn: CrossEntropyLoss, threads: int | None = None, seed: int | list[int] = 0
    ) -> None:
        self.team = ThreadTeam(threads or (num_threads() if backend_name() == "numpy" else 1))
        self.loss_fn = loss_fn
        self.replicas: list[Any] = [model] + [model.replica() for _ in range(self.team.size - 1)]
        seeds = [seed] if isinstance(seed, int) else list(seed)
        self.rngs = [make_generator([*seeds, i] if i else seeds) for i in range(self.team.size)]

    def map(
        self, function: Callable[..., Any], batch: Any, measure: bool = False, weight: float = 1.0
    ) -> tuple[Any, Any]:
        """function(model, loss_fn, part, rng, weight, measure) on the parts of `batch`, one for each thread that pays.

        The gradients add up in the model. Returns the loss of the whole batch, and its accuracy if measured or None.
        """
        B, *others = batch.targets.shape  # no others where each sequence has one target
        members = threads_that_pay(self.team.size, B, math.prod(others), self.replicas[0].config.d_model)
        if members == 1:
            return function(self.replicas[0], self.loss_fn, batch, self.rngs[0], weight, measure)
        parts = split_batch(batch, members)
        shares = part_weights(self.loss_fn, parts)
        with limit_threads(1, of_team=True):  # the threads of each matrix product would be too many
            results = self.team.map(
                function,
                self.replicas[:members],
                [self.loss_fn] * members,
                parts,
                self.rngs[:members],
                [weight * share for share in shares],
                [measure] * members,
            )
            self._gather_gradients()
        losses, accuracies = zip(*results, strict=True)
        return weighted_sum(shares, losses), weighted_sum(shares, accuracies) if measure else None

    def _gather_gradients(self) -> None:
        """Add the replicas' gradients to the model's, and leave them none: their memory serves the next step."""
        self.team.map(_gather, *(replica.parameters() for replica in self.replicas))


def default_threads(width: int) -> int | None:
    """The threads for a model with `width` features per token: one if it is narrow; None leaves it to NumPy.

    Where the environment says how many (OMP_NUM_THREADS and the like), it is None as well. The tiny model's matrix
    products take a quarter of a millisecond. Shared by two threads, training took 0.8 times as long on an idle machine,
    and eight times as long on one where another process kept a processor busy.
    """
    return 1 if width < NARROW and not threads_are_chosen() else None


def threads_that_pay(threads: int, B: int, T: int, C: int) -> int:
    """How many of `threads` threads share a batch of B sequences of T tokens with C features."""
    return max(1, min(threads, B, B * T * C // MIN_NUMBERS))


def split_batch(batch: Any, parts: int) -> list[Any]:
    """The batch cut into `parts` batches of about the same number of sequences."""
    columns = (np.array_split(ids, parts) for ids in batch)
    return [type(batch)(*part) for part in zip(*columns, strict=True)]


def part_weights(loss_fn: CrossEntropyLoss, parts: list[Any]) -> list[float]:
    """The weight of each part in the loss of the whole: its share of the terms that the loss is a mean over."""
    counts = [loss_fn.num_terms(part.targets) for part in parts]
    return [count / max(sum(counts), 1) for count in counts]


def weighted_sum(weights: Iterable[float], values: Iterable[Any]) -> Any:
    """sum_i weights_i values_i"""
    return sum(weight * value for weight, value in zip(weights, values, strict=True))


def _gather(parameter: Parameter, *others: Parameter) -> None:
    for other in others:
        gradient = other.take_grad()
        if gradient is not None:
            parameter.add_grad(gradient)
