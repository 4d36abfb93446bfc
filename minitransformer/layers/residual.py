"""Add & Norm: the residual connection around every sub-layer, with the normalization after or before the sub-layer."""

from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.checks import check_choice, check_precision
from minitransformer.core import Layer
from minitransformer.functional.dropout import DropoutCache
from minitransformer.layers.dropout import Dropout

PLACEMENTS = ("post", "pre", "sandwich")


class ResidualCache(NamedTuple):
    """The cache of `Residual`."""

    sublayer: Any  # the sub-layer's own cache
    dropout: DropoutCache | None
    norm: Any  # the cache of its normalization
    norm_after: Any = None  # that of the second one, if there is one


class Residual(Layer):
    """A sub-layer with its dropout, its residual connection and its normalization (paper sections 3.1 and 5.4).

    placement="post", the paper, where the sum is normalized:      y = Norm(x + Dropout(Sublayer(x)))
    placement="pre", most models since (Xiong et al. 2020), where
    a clear path leads from the last layer to the first:           y = x + Dropout(Sublayer(Norm(x)))
    placement="sandwich", Gemma, where a second norm, `norm_after`,
    sets the size of what is added to the clear path:              y = x + Dropout(Norm_2(Sublayer(Norm(x))))

    `norm` is a LayerNorm, as in the paper, or another layer. The sub-layer may take more inputs than x (the memory, a
    mask), which are passed on unchanged. Raises ValueError for an unknown placement, for a `norm_after` that is missing
    or has no place, and for a dropout rate outside [0, 1).
    """

    sublayer: Any  # a SelfAttention, CrossAttention or FeedForward

    def __init__(
        self,
        sublayer: Layer,
        norm: Layer,
        *,
        dropout_rate: float = 0.0,
        placement: str = "post",
        norm_after: Layer | None = None,
    ) -> None:
        self.placement = check_choice("placement", placement, PLACEMENTS)
        if (norm_after is None) == (placement == "sandwich"):
            raise ValueError(f"placement={placement!r} {'needs' if norm_after is None else 'has no'} norm_after")
        self.sublayer = sublayer
        self.dropout = Dropout(dropout_rate)
        self.norm = norm
        self.norm_after = norm_after

    def forward(
        self, x: xp.ndarray, *context: xp.ndarray | None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, ResidualCache]:
        """x (B, T, C), and the sub-layer's further inputs -> y (B, T, C)."""
        cache_after = None
        if self.placement == "post":
            s, cache_sublayer = self.sublayer.forward(x, *context, rng=rng)
            check_precision(self.sublayer, s, x)
            d, cache_dropout = self.dropout.forward(s, rng)
            y, cache_norm = self.norm.forward(x + d)
        else:
            n, cache_norm = self.norm.forward(x)
            s, cache_sublayer = self.sublayer.forward(n, *context, rng=rng)
            check_precision(self.sublayer, s, n)
            if self.norm_after is not None:
                s, cache_after = self.norm_after.forward(s)
            d, cache_dropout = self.dropout.forward(s, rng)
            y = x + d
        return y, ResidualCache(cache_sublayer, cache_dropout, cache_norm, cache_after)

    def backward(self, dy: xp.ndarray, cache: ResidualCache) -> Any:
        """dy (B, T, C) -> dx (B, T, C), or a tuple (dx, dmemory) if the sub-layer is cross-attention.

        Two paths lead from x to y, past the sub-layer and through it, so dx is the sum of two gradients.
        """
        if self.placement == "post":
            dsum = self.norm.backward(dy, cache.norm)
            ds = self.dropout.backward(dsum, cache.dropout)
            dx, dcontext = self._sublayer_backward(ds, cache.sublayer)
            dx = dsum + dx
        else:
            ds = self.dropout.backward(dy, cache.dropout)
            if self.norm_after is not None:
                ds = self.norm_after.backward(ds, cache.norm_after)
            dn, dcontext = self._sublayer_backward(ds, cache.sublayer)
            dx = dy + self.norm.backward(dn, cache.norm)
        return (dx, *dcontext) if dcontext else dx

    def _sublayer_backward(self, ds, cache):
        """The sub-layer's gradients: (dx, the gradients of its further inputs)."""
        gradients = self.sublayer.backward(ds, cache)
        dx, *dcontext = gradients if isinstance(gradients, tuple) else (gradients,)
        return dx, dcontext
