"""Data parallelism: several threads share each batch, as the paper's eight GPUs did (section 5.2).

The loss is a mean over the n tokens of a batch that are not padding. With n_i of them in part i,

    loss = sum_i (n_i / n) loss_i        and therefore        grad = sum_i (n_i / n) grad_i

Each thread has a replica of the model, with the same weights and its own gradients, and computes its matrix products
alone. So no thread waits for another until the gradients are added up.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.core import Layer, Parameter
from minitransformer.data.task import TrainingBatch
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.system.generators import make_generator
from minitransformer.system.process import ThreadTeam, blas_threads, threads_are_chosen

MIN_NUMBERS = 2**16  # in a part's (B, T, C): with fewer, threads wait for Python's lock more than they compute
NARROW = 128  # features per token: below this, matrix products are too small for threads to share


class DataParallel:
    """A model, and replicas of it for the other threads of a team.

    `num_threads` is by default the number that `default_team_size` returns. Each thread draws its dropout masks from a
    generator of its own, seeded with `seed` and the thread's number. With several processes, their threads are numbered
    one after another, in the order of the ranks. The same seed and number of threads give bit-identical results.
    """

    def __init__(
        self,
        model: Layer,
        loss_fn: CrossEntropyLoss,
        num_threads: int | None = None,
        seed: int | list[int] = 0,
        rank: int = 0,
    ) -> None:
        self.team = ThreadTeam(num_threads or default_team_size())
        self.loss_fn = loss_fn
        self.replicas: list[Any] = [model] + [model.replica() for _ in range(self.team.size - 1)]
        seeds = [seed] if isinstance(seed, int) else list(seed)
        numbers = range(rank * self.team.size, (rank + 1) * self.team.size)
        self.rngs = [make_generator([*seeds, i] if i else seeds) for i in numbers]

    def map(
        self, function: Callable[..., Any], batch: TrainingBatch, measure: bool = False, weight: float = 1.0
    ) -> tuple[Any, Any]:
        """Call function(model, loss_fn, part, rng, weight, measure) on parts of `batch`, each in its own thread.

        There is one part for each useful thread. The gradients, times `weight`, are added up in the model. Returns the
        loss of the whole batch, and its accuracy if `measure`, else None.
        """
        B, T = len(batch.targets), sum(math.prod(ids.shape[1:]) for ids in batch.inputs)  # of source and target
        count = useful_threads(self.team.size, B, T, self.replicas[0].config.d_model)
        if count == 1:
            return function(self.replicas[0], self.loss_fn, batch, self.rngs[0], weight, measure)
        parts = split_batch(batch, count)
        shares = part_weights(self.loss_fn, parts)
        results = self.team.map(
            function,
            self.replicas[:count],
            [self.loss_fn] * count,
            parts,
            self.rngs[:count],
            [weight * share for share in shares],
            [measure] * count,
        )
        self._gather_gradients()
        losses, accuracies = zip(*results, strict=True)
        return weighted_sum(shares, losses), weighted_sum(shares, accuracies) if measure else None

    def _gather_gradients(self) -> None:
        """Add the replicas' gradients to the model's. The replicas then have none, so their next ones need no sum."""
        self.team.map(_gather, *(replica.parameters() for replica in self.replicas))


def default_threads(config: Any, batch_size: int) -> int:
    """The number of threads that train a model of `config` on batches of `batch_size` sequences.

    It is `default_team_size` if an environment variable such as OMP_NUM_THREADS sets the number. Else it is 1 for a
    narrow model, and no more than the largest batch can keep busy. Threads that share small matrix products wait for
    each other: the tiny model's training took 0.8 times as long with two threads on an idle machine, and eight times as
    long on one where another process kept a processor busy.
    """
    if threads_are_chosen():
        return default_team_size()
    if config.d_model < NARROW:
        return 1
    return useful_threads(default_team_size(), batch_size * config.max_len, 1, config.d_model)


def default_team_size() -> int:
    """As many threads as NumPy's matrix product uses; one on a GPU, which a single thread keeps busy."""
    return blas_threads() if backend_name() == "numpy" else 1


def useful_threads(num_threads: int, B: int, T: int, C: int) -> int:
    """How many of `num_threads` threads should share a batch of B sequences of T tokens with C features.

    Source and target count as one sequence.
    """
    return max(1, min(num_threads, B, B * T * C // MIN_NUMBERS))


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
