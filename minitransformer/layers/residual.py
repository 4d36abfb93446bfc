"""Add & Norm: the residual connection around every sub-layer, and where the normalisation stands."""

from typing import NamedTuple

import numpy as np

from minitransformer.checks import check_choice
from minitransformer.core import Layer
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.normalization import make_norm

NORMS = ("post", "pre")


class ResidualCache(NamedTuple):
    """What `Residual` remembers."""

    sublayer: object
    dropout: object
    norm: object


class Residual(Layer):
    """A sub-layer with its dropout, its residual connection and its normalisation (paper sections 3.1 and 5.4).

    norm="post", the paper, where the sum itself is normalised:    y = Norm(x + Dropout(Sublayer(x)))
    norm="pre", most models since (Xiong et al. 2020), where a
    clear path leads from the last layer to the first:             y = x + Dropout(Sublayer(Norm(x)))

    Norm is LayerNorm, as in the paper, or another that `normalization` names; `norm_eps` is its eps.

    The sub-layer may take more inputs than x (the memory, a mask); they pass through untouched.
    """

    def __init__(
        self,
        sublayer,
        d_model,
        *,
        dropout_rate=0.0,
        norm="post",
        normalization="layer",
        norm_eps=1e-5,
        dtype=np.float32,
    ):
        self.placement = check_choice("norm", norm, NORMS)
        self.sublayer = sublayer
        self.dropout = Dropout(dropout_rate)
        self.norm = make_norm(normalization, d_model, norm_eps, dtype)

    def forward(self, x, *context, rng=None):
        """x (B, T, C), context as the sub-layer takes it -> y (B, T, C)."""
        if self.placement == "post":
            s, cache_sublayer = self.sublayer.forward(x, *context, rng=rng)
            d, cache_dropout = self.dropout.forward(s, rng)
            y, cache_norm = self.norm.forward(x + d)
        else:
            n, cache_norm = self.norm.forward(x)
            s, cache_sublayer = self.sublayer.forward(n, *context, rng=rng)
            d, cache_dropout = self.dropout.forward(s, rng)
            y = x + d
        return y, ResidualCache(cache_sublayer, cache_dropout, cache_norm)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx, or a tuple (dx, dmemory) around cross-attention.

        Two paths lead from x to y, past the sub-layer and through it, so dx is the sum of two gradients.
        """
        if self.placement == "post":
            dsum = self.norm.backward(dy, cache.norm)
            ds = self.dropout.backward(dsum, cache.dropout)
            dx, dcontext = self._sublayer_backward(ds, cache.sublayer)
            dx = dsum + dx
        else:
            ds = self.dropout.backward(dy, cache.dropout)
            dn, dcontext = self._sublayer_backward(ds, cache.sublayer)
            dx = dy + self.norm.backward(dn, cache.norm)
        return (dx, *dcontext) if dcontext else dx

    def extend(self, x, *context):
        """As forward, for decoding: what the sub-layer's `extend` makes of new tokens x (B, n, C) -> y (B, n, C)."""
        if self.placement == "post":
            return self.norm(x + self.sublayer.extend(x, *context))
        return x + self.sublayer.extend(self.norm(x), *context)

    def _sublayer_backward(self, ds, cache):
        """The sub-layer's gradients, with that of x apart from those of further inputs."""
        gradients = self.sublayer.backward(ds, cache)
        dx, *dcontext = gradients if isinstance(gradients, tuple) else (gradients,)
        return dx, dcontext
