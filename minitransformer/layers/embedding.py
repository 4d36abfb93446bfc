"""From token ids to vectors and from vectors to logits, with one matrix for both (paper section 3.4)."""

import math

from minitransformer.backend import xp
from minitransformer.checks import check_shape, check_width
from minitransformer.core import Layer
from minitransformer.functional import embedding, embedding_backward
from minitransformer.layers.dropout import Dropout


class Embedding(Layer):
    """Row `id` of E (V, C), times sqrt(C) (paper section 3.4) or `scale`. `E` is a Parameter that others may share.

    Raises TypeError, ValueError or IndexError for ids that are not integers, are none, or are out of range.
    """

    def __init__(self, E, scale=None):
        self.E = E
        self.scale = math.sqrt(E.data.shape[1]) if scale is None else scale

    def forward(self, ids, rng=None):
        """ids (B, T) on the host -> y (B, T, C)."""
        return embedding(ids, self.E.data, self.scale)

    def backward(self, dy, cache):
        """dy (B, T, C) -> None: ids have no gradient, the table's is added to E.grad."""
        embedding_backward(dy, cache, self.E.grad)


class InputEmbedding(Layer):
    """What enters a stack: token vectors plus positions, with dropout on the sum (paper sections 3.4, 3.5, 5.4).

    `positions` is a layer that adds them, or None where they act inside attention. `scale` as for `Embedding`.
    """

    def __init__(self, E, positions, dropout_rate, scale=None):
        self.tokens = Embedding(E, scale)
        self.positions = positions
        self.dropout = Dropout(dropout_rate)

    def forward(self, ids, rng=None, start=0):
        """ids (B, T) on the host, the first at position `start` -> y (B, T, C)."""
        x, cache_tokens = self.tokens.forward(ids)
        cache_positions = None
        if self.positions is not None:
            x, cache_positions = self.positions.forward(x, start=start)
        y, cache_dropout = self.dropout.forward(x, rng)
        return y, (cache_tokens, cache_positions, cache_dropout)

    def backward(self, dy, cache):
        """dy (B, T, C) -> None."""
        cache_tokens, cache_positions, cache_dropout = cache
        dx = self.dropout.backward(dy, cache_dropout)
        if self.positions is not None:
            dx = self.positions.backward(dx, cache_positions)
        self.tokens.backward(dx, cache_tokens)


class OutputProjection(Layer):
    """logits = y E^T        y (B, T, C), E (V, C), logits (B, T, V): how well y matches each token's vector.

    `E` is the embeddings' own Parameter when tied (the paper), and then has the sum of all three uses as gradient.
    There is no bias: the paper names none. With `scale`, y is multiplied by it first (T5: 1 / sqrt(C)).
    """

    def __init__(self, E, scale=1.0):
        self.E = E
        self.scale = scale

    def forward(self, y, rng=None):
        """y (B, T, C) -> logits (B, T, V)."""
        check_width("OutputProjection", y, self.E.data.shape[1], self.E.data.dtype)
        if self.scale != 1.0:
            y = y * self.scale
        rows = y.reshape(-1, y.shape[-1])  # (N, C)
        return (rows @ self.E.data.T).reshape(*y.shape[:-1], -1), y

    def backward(self, dlogits, y):
        """dlogits (B, T, V) -> dy (B, T, C). As for `functional.linear` with W = E^T, so dE = dW^T = dlogits^T y."""
        rows, dlogits_rows = y.reshape(-1, y.shape[-1]), dlogits.reshape(-1, dlogits.shape[-1])  # (N, C), (N, V)
        check_shape("dlogits", dlogits, (*y.shape[:-1], len(self.E.data)))  # before a gradient has changed
        self.E.add_grad(xp.matmul(dlogits_rows.T, rows, out=self.E.overwritable()))
        dy = (dlogits_rows @ self.E.data).reshape(y.shape)
        if self.scale != 1.0:
            dy *= self.scale
        return dy
