"""Data parallelism: several threads share each batch, as the paper's eight GPUs did (section 5.2).

The loss is a mean over the n tokens of a batch that are not padding. With n_i of them in part i,

    loss = sum_i (n_i / n) loss_i        and therefore        grad = sum_i (n_i / n) grad_i

Each thread has a replica of the model, with the same weights and its own gradients, and computes its matrix products
alone. So no thread waits for another until the gradients are added up.
"""

import copy
import math
from typing import Any

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.config import ModelConfig
from minitransformer.core import Layer, Parameter
from minitransformer.data.task import TrainingBatch
from minitransformer.layers.since_2017.recompute import recomputed
from minitransformer.system.generators import make_generator
from minitransformer.system.process import MIN_NUMBERS, ThreadTeam, blas_threads
from minitransformer.training.parallel.parts import count_terms, gradients_of, shares_of, weighted
from minitransformer.training.step import Gradients, Measured

NARROW = 128  # features per token: below this, matrix products are too small for threads to share


class DataParallel:
    """A model, and replicas of it for the other threads of a team, which compute a part of each batch each.

    `num_threads` is by default the number that `default_team_size` returns. Each thread draws its dropout masks from a
    generator of its own, seeded with `seed` and the thread's number. With several processes, their threads are numbered
    one after another, in the order of the ranks. The same seed and number of threads give bit-identical results.
    With `recompute`, each layer is `Recomputed`.
    """

    def __init__(
        self,
        model: Layer,
        loss_fn: Any,
        num_threads: int | None = None,
        seed: int | list[int] = 0,
        rank: int = 0,
        recompute: bool = False,
    ) -> None:
        self.team = ThreadTeam(num_threads or default_team_size())
        self.loss_fn = loss_fn
        self.replicas: list[Any] = [model] + [replica(model) for _ in range(self.team.size - 1)]
        self.parameters = [replica.parameters() for replica in self.replicas]  # a walk of half a millisecond
        seeds = [seed] if isinstance(seed, int) else list(seed)
        numbers = range(rank * self.team.size, (rank + 1) * self.team.size)
        rngs = [make_generator([*seeds, i] if i else seeds) for i in numbers]
        models = [recomputed(one) for one in self.replicas] if recompute else self.replicas
        self.gradients = [gradients_of(one, loss_fn, rng) for one, rng in zip(models, rngs, strict=True)]

    @property
    def rngs(self) -> list[np.random.Generator]:
        """The generator of each thread."""
        return [gradients.rng for gradients in self.gradients]  # type: ignore[misc]

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`. There is one part for each useful thread; the gradients are added up in the model."""
        B, T = len(batch.targets), sum(math.prod(ids.shape[1:]) for ids in batch.inputs)  # of source and target
        count = useful_threads(self.team.size, B, T, features_per_token(self.replicas[0]))
        if count == 1:
            return self.gradients[0](batch, weight, measure)
        for own, *others in zip(*self.parameters, strict=True):
            for other in others:
                other.data = own.data  # an optimizer may have moved the weights into a vector of its own since
        parts = split_batch(batch, count)
        num_terms = count_terms(self.loss_fn)
        shares = shares_of([num_terms(part.targets) for part in parts])

        def compute(gradients: Gradients, part: TrainingBatch, share: float) -> Measured:
            return gradients(part, weight * share, measure)

        results = self.team.map(compute, self.gradients[:count], parts, shares)
        self.team.map(_gather, *self.parameters[:count])
        return weighted(results, shares)


def features_per_token(model: Any) -> int | None:
    """C of a model whose configuration says it, else None."""
    return getattr(getattr(model, "config", None), "d_model", None)


def default_threads(config: ModelConfig | None, batch_size: int) -> int:
    """The number of threads that train a model of `config` on batches of `batch_size` sequences.

    It is 1 for a narrow model or one without a `config`, and no more than the largest batch can keep busy, or than an
    environment variable such as OMP_NUM_THREADS allows NumPy's matrix product. Threads that share small matrix products
    wait for each other: the tiny model's training took 0.8 times as long with two threads on an idle machine, and eight
    times as long on one where another process kept a processor busy.
    """
    C, T = getattr(config, "d_model", 0), getattr(config, "max_len", 1)
    if C < NARROW:
        return 1
    return useful_threads(default_team_size(), batch_size * T, 1, C)


def default_team_size() -> int:
    """As many threads as NumPy's matrix product uses; one on a GPU, which a single thread keeps busy."""
    return blas_threads() if backend_name() == "numpy" else 1


def useful_threads(num_threads: int, B: int, T: int, C: int | None) -> int:
    """How many of `num_threads` threads should share a batch of B sequences of T tokens with C features.

    Source and target count as one sequence. If C is None, because the model does not say it, all should.
    """
    return max(1, min(num_threads, B) if C is None else min(num_threads, B, B * T * C // MIN_NUMBERS))


def split_batch(batch: Any, parts: int) -> list[Any]:
    """The batch cut into `parts` batches of about the same number of sequences."""
    columns = (np.array_split(ids, parts) for ids in batch)
    return [type(batch)(*part) for part in zip(*columns, strict=True)]


def replica(model: Any) -> Any:
    """A copy for another thread: its parameters share their `data` with the model and have their own gradients."""
    return copy.deepcopy(model, {id(own): Parameter(own.data, own.frozen) for own in model.parameters()})


def _gather(parameter: Parameter, *others: Parameter) -> None:
    """Move the gradients of the replicas' parameters into the model's."""
    if not parameter.frozen:
        for other in others:
            parameter.add_grad(other.grad)
            other.zero_grad()
