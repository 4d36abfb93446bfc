"""From token ids to vectors and from vectors to logits, with one matrix for both (paper section 3.4)."""

import math
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import backend_name, xp
from minitransformer.checks import check_shape, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import embedding, embedding_backward
from minitransformer.functional.dropout import DropoutCache
from minitransformer.functional.embedding import EmbeddingCache
from minitransformer.layers.dropout import Dropout

SLICE = 2**20  # numbers of dE that are computed at a time
ROWS = 96  # a slice has a multiple of these, so that BLAS divides it as it divides the whole product: same bits


class InputEmbeddingCache(NamedTuple):
    """The cache of `InputEmbedding`."""

    tokens: EmbeddingCache
    positions: Any  # the cache of the layer that adds positions, or None
    dropout: DropoutCache | None


class Embedding(Layer):
    """Row `id` of E (V, C), times sqrt(C) (paper section 3.4) or `scale`. `E` is a Parameter that others may share.

    Raises TypeError for ids that are not integers, ValueError for no ids, IndexError for ids out of range.
    """

    def __init__(self, E: Parameter, scale: float | None = None) -> None:
        self.E = E
        self.scale = math.sqrt(E.data.shape[1]) if scale is None else scale

    def forward(self, ids: np.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, EmbeddingCache]:
        """ids (B, T) on the host -> y (B, T, C)."""
        return embedding(ids, self.E.data, self.scale)

    def backward(self, dy: xp.ndarray, cache: EmbeddingCache) -> None:
        """dy (B, T, C) -> None: ids have no gradient; the gradient of the table is added to E.grad."""
        if not self.E.frozen:
            embedding_backward(dy, cache, self.E.grad)


class InputEmbedding(Layer):
    """The input of a stack: token vectors plus positions, with dropout on the sum (paper sections 3.4, 3.5, 5.4).

    `positions` is a layer that adds them, or None where they act inside attention. `scale` as for `Embedding`.
    """

    def __init__(self, E: Parameter, positions: Layer | None, dropout_rate: float, scale: float | None = None) -> None:
        self.tokens = Embedding(E, scale)
        self.positions = positions
        self.dropout = Dropout(dropout_rate)

    def forward(
        self, ids: np.ndarray, rng: np.random.Generator | None = None, start: int | np.ndarray = 0
    ) -> tuple[xp.ndarray, InputEmbeddingCache]:
        """ids (B, T) on the host, the first at position `start`, a number or one for each sequence -> y (B, T, C)."""
        x, cache_tokens = self.tokens.forward(ids)
        cache_positions = None
        if self.positions is not None:
            x, cache_positions = self.positions.forward(x, start=start)
        y, cache_dropout = self.dropout.forward(x, rng)
        return y, InputEmbeddingCache(cache_tokens, cache_positions, cache_dropout)

    def backward(self, dy: xp.ndarray, cache: InputEmbeddingCache) -> None:
        """dy (B, T, C) -> None."""
        cache_tokens, cache_positions, cache_dropout = cache
        dx = self.dropout.backward(dy, cache_dropout)
        if self.positions is not None:
            dx = self.positions.backward(dx, cache_positions)
        self.tokens.backward(dx, cache_tokens)


class OutputProjection(Layer):
    """logits = y E^T        y (B, T, C), E (V, C), logits (B, T, V): how well y matches each token's vector.

    `E` is the embeddings' own Parameter when tied (the paper); its gradient is then the sum over all three uses. There
    is no bias: the paper mentions none. y is multiplied by `scale` first (T5: 1 / sqrt(C)).
    """

    def __init__(self, E: Parameter, scale: float = 1.0) -> None:
        self.E = E
        self.scale = scale

    def forward(self, y: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, xp.ndarray]:
        """y (B, T, C) -> logits (B, T, V)."""
        check_width("OutputProjection", y, self.E.data.shape[1], self.E.data.dtype)
        if self.scale != 1.0:
            y = y * self.scale
        rows = y.reshape(-1, y.shape[-1])  # (N, C)
        return (rows @ self.E.data.T).reshape(*y.shape[:-1], -1), y

    def backward(self, dlogits: xp.ndarray, y: xp.ndarray) -> xp.ndarray:
        """dlogits (B, T, V) -> dy (B, T, C). As for `functional.linear` with W = E^T, so dE = dW^T = dlogits^T y."""
        rows, dlogits_rows = y.reshape(-1, y.shape[-1]), dlogits.reshape(-1, dlogits.shape[-1])  # (N, C), (N, V)
        check_shape("dlogits", dlogits, (*y.shape[:-1], len(self.E.data)))  # before a gradient has changed
        if not self.E.frozen:
            self._add_dE(dlogits_rows, rows)
        dy = (dlogits_rows @ self.E.data).reshape(y.shape)
        if self.scale != 1.0:
            dy *= self.scale
        return dy

    def _add_dE(self, dlogits, y):
        """dE += dlogits^T y, for dlogits (N, V) and y (N, C).

        On a CPU a slice of the vocabulary at a time, so that no other array of the size of dE is made.
        """
        dE = self.E.grad
        size = ROWS * max(1, SLICE // (ROWS * y.shape[-1]))
        if backend_name() != "numpy":  # a GPU wants few launches
            size = len(dE)
        for start in range(0, len(dE), size):
            rows = slice(start, start + size)
            dE[rows] += dlogits[:, rows].T @ y
