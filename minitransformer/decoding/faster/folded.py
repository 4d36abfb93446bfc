"""A pre-norm GPT folded for reading one token, or a few, at a time: the same function in fewer and smaller steps.

For one token, a call of NumPy costs more than its arithmetic (about 0.5 us a call), and the plain layers make a hundred
calls. What is constant while a text is decoded is multiplied into the matrices once, before the first token:

    Centred    With pre-norm, only norms read the residual stream x, and LayerNorm begins by subtracting the mean of x.
               x is a sum of token vectors E, positions P, and h V + c of each sub-layer. So the means of the rows of
               E, P, V and of c are subtracted in advance: every summand has mean 0, and so has x.
    Norm       For such an x, LayerNorm is  gamma u sqrt(C) + beta,  u = x / sqrt(x . x + C eps),  and RMSNorm the same
               for every x, without beta.
    After it   A norm is followed by a product:  (gamma u sqrt(C) + beta) W + b = u W' + b',
               W' = sqrt(C) diag(gamma) W,  b' = beta W + b.
    QK-norm    is an RMSNorm of each head's query and key: gamma sqrt(D) is computed in advance, for all heads at once.
    Experts    stay as they are, since a token reads a few of many matrices. What they add is centred.

The result equals that of the plain layers up to rounding; tests/decoding/test_folded.py compares them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_ids
from minitransformer.functional import rows_from, softmax
from minitransformer.functional.since_2017.activations import ACTIVATIONS
from minitransformer.layers import EncoderLayer, LayerNorm, Linear
from minitransformer.layers.since_2017.attention import generalized
from minitransformer.layers.since_2017.experts import MixtureOfExperts
from minitransformer.layers.since_2017.kv_cache import KVCache
from minitransformer.layers.since_2017.rms_norm import RMSNorm

TWO_OR_THREE = 2, 3  # rows, which are multiplied twice as fast one by one; from 4 on, BLAS reads W once for all


class Affine(NamedTuple):
    """u W + b, for an array of a few rows."""

    W: xp.ndarray  # (I, O)
    b: xp.ndarray | None  # (O,)

    def __call__(self, u: xp.ndarray) -> xp.ndarray:
        """u (B, I) -> (B, O)."""
        one_by_one = len(u) in TWO_OR_THREE and isinstance(u, np.ndarray)
        y = (u[:, None] @ self.W)[:, 0] if one_by_one else u @ self.W
        if self.b is not None:
            y += self.b
        return y


def after_norm(norm: LayerNorm | RMSNorm, affine: Affine) -> Affine:
    """The product with W (C, O), plus b (O,), that follows `norm`, as a function of u: W' and b', new arrays."""
    (W, b), gamma, beta = affine, norm.gamma.data, getattr(norm, "beta", None)
    shifts = ([] if beta is None else [beta.data @ W]) + ([] if b is None else [b])
    return Affine((gamma * math.sqrt(len(gamma)))[:, None] * W, sum(shifts, xp.zeros_like(W[0])) if shifts else None)


class Unit:
    """u = x / sqrt(x . x + C eps), row by row: a norm of a centred x without its gamma. Except for eps, |u| is 1."""

    def __init__(self, norm: LayerNorm | RMSNorm) -> None:
        gamma = norm.gamma.data
        self.ones = xp.ones((len(gamma), 1), gamma.dtype)  # a product with ones is the fastest sum of a short row
        self.eps = xp.full(1, len(gamma) * norm.eps, gamma.dtype)

    def __call__(self, x: xp.ndarray) -> xp.ndarray:
        """x (B, C) -> u (B, C)."""
        return x / xp.sqrt((x * x) @ self.ones + self.eps)


def centred(rows: xp.ndarray) -> xp.ndarray:
    """rows (..., C) minus their means, so that each row has mean 0."""
    return rows - rows.mean(axis=-1, keepdims=True)


def affine(linear: Linear, change: Callable[[xp.ndarray], xp.ndarray] = lambda rows: rows) -> Affine:
    """The W and b of a Linear, with `change` of both."""
    return Affine(change(linear.W.data), None if linear.b is None else change(linear.b.data))


class FoldedBlock:
    """One pre-norm layer. `centre` is `centred` if the norm is LayerNorm, and the identity for RMSNorm."""

    def __init__(self, layer: EncoderLayer, centre: Callable[[xp.ndarray], xp.ndarray]) -> None:
        attention, network = generalized(layer.self_attention.sublayer), layer.feed_forward.sublayer
        self.num_heads, self.positions = attention.num_heads, attention.positions
        self.kind, self.widths = attention.kind, attention.widths
        norms: Any = layer.self_attention.norm, layer.feed_forward.norm
        self.unit = Unit(norms[0])  # both norms of a layer have the same width and eps
        projection = getattr(attention.qkv, "projection", attention.qkv)
        self.qkv = after_norm(norms[0], affine(projection))
        self.gains = None if projection is attention.qkv else self._fold_qk_norm(attention.qkv)
        self.scale = math.sqrt(self.num_heads / self.widths[0]) if attention.scale is None else attention.scale
        self.output = affine(attention.output, centre)
        if isinstance(network, MixtureOfExperts):
            self.network = lambda x: centre(network(norms[1](x)))
        else:
            unit, (activate, _) = self.unit, ACTIVATIONS[network.activation]
            expand, contract = after_norm(norms[1], affine(network.expand)), affine(network.contract, centre)
            self.network = lambda x: contract(activate(expand(unit(x)))[0])

    def _fold_qk_norm(self, layer):
        """What the units of all queries and keys, side by side, are multiplied by: gamma sqrt(D) of each head."""
        self.head_unit, (C, width, _) = Unit(layer.q_norm), self.widths
        repeats = (layer.q_norm, C // layer.d_k), (layer.k_norm, width // layer.d_k)
        return xp.concatenate([xp.tile(norm.gamma.data * math.sqrt(layer.d_k), count) for norm, count in repeats])

    def extend(self, x: xp.ndarray, n: int, kv_cache: KVCache, allowed: xp.ndarray | None) -> None:
        """Update the residual stream x (B n, C) of n new tokens of each text, in place."""
        x += self.output(self._attend(self.qkv(self.unit(x)), n, kv_cache, allowed))
        x += self.network(x)

    def _attend(self, qkv, n, kv_cache, allowed):
        """qkv (B n, C + 2 G D) -> the outputs of all heads, side by side (B n, C), as `GeneralSelfAttention.extend`."""
        B, start, (C, width, _) = len(qkv) // n, kv_cache.length, self.widths
        D = C // self.num_heads  # d_k
        G = width // D
        if self.gains is not None:
            qk = qkv[:, : C + width]
            qk[...] = self.head_unit(qk.reshape(-1, D)).reshape(qk.shape) * self.gains
        parts = (qkv[:, :C], self.num_heads), (qkv[:, C : C + width], G), (qkv[:, C + width :], G)
        q, k, v = (part.reshape(B, n, heads, -1).swapaxes(1, 2) for part, heads in parts)  # (B, H or G, n, D)
        bias = None
        if self.positions is not None:
            q, k = self.positions.rotate(q, start), self.positions.rotate(k, start)
            bias = self.positions.bias(n, start + n, start)
        if not self.kind.has_scores:
            return self.kind.extend(q, k, v, kv_cache, allowed).swapaxes(1, 2).reshape(B * n, -1)
        keys, values, allowed, bias = self.kind.read(k, v, kv_cache, allowed, bias)
        q *= self.scale  # in an array of this call
        scores = q.reshape(B, G, -1, D) @ keys.swapaxes(-1, -2)  # the heads that share keys are queries of one head
        scores = scores.reshape(B, self.num_heads, n, -1)  # (B, H, n, number of keys)
        if bias is not None:
            scores += bias
        weights, _ = softmax(scores, allowed, overwrite=True)
        y = weights.reshape(B, G, -1, weights.shape[-1]) @ values
        return y.reshape(*scores.shape[:3], -1).swapaxes(1, 2).reshape(B * n, -1)


class FoldedGPT:
    """A whole GPT for a few tokens at a time. It copies the weights: later changes of the model have no effect."""

    def __init__(self, model: Any) -> None:
        E, output = model.embedding.tokens, model.output
        positions: Any = model.embedding.positions
        norm: Any = model.blocks.norm
        centre = centred if hasattr(norm, "beta") else lambda rows: rows
        self.E = centre(E.E.data * E.scale)
        self.P = None
        if positions is not None:
            self.P = centre(positions.table if hasattr(positions, "table") else positions.P.data)
        self.blocks = [FoldedBlock(layer, centre) for layer in model.blocks.layers]
        # contiguous: with the transpose of a large E, a row takes 1.5 times as long, and four rows twice as long
        self.output = after_norm(norm, Affine(xp.ascontiguousarray(output.E.data.T) * output.scale, None))
        self.unit = Unit(norm)

    def extend(
        self,
        ids: np.ndarray,
        kv_caches: Sequence[KVCache],
        allowed: xp.ndarray | None,
        start: int | np.ndarray,
        count: int = 1,
    ) -> xp.ndarray:
        """ids (B, n) on the host, from `start` on, a number or one for each text (B,) -> logits (B, count, V).

        They are those after each of the last `count` tokens.
        """
        check_ids("ids", ids, len(self.E))
        B, n = ids.shape
        x = self.E[to_device(ids)]  # (B, n, C)
        if self.P is not None:
            x += rows_from(self.P, start, n)
        x = x.reshape(B * n, -1)
        for block, kv_cache in zip(self.blocks, kv_caches, strict=True):
            block.extend(x, n, kv_cache, allowed)
        x = x.reshape(B, n, -1)[:, -count:].reshape(-1, x.shape[1])
        return self.output(self.unit(x)).reshape(B, -1, self.output.W.shape[1])


def fold(model: Any) -> FoldedGPT | None:
    """The folded form of a GPT -> FoldedGPT, or None unless it is pre-norm to the end: only norms may read x."""
    parts = [part for layer in model.blocks.layers for part in (layer.self_attention, layer.feed_forward)]
    only_norms = model.blocks.norm is not None and all(part.placement == "pre" for part in parts)
    return FoldedGPT(model) if only_norms else None
