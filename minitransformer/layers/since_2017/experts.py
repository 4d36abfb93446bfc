"""A mixture of experts: several feed-forward networks, of which a router chooses a few for each token."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.checks import check_choice, check_shape
from minitransformer.core import Layer, Parameter
from minitransformer.functional import softmax, softmax_backward
from minitransformer.functional.linear import LinearCache
from minitransformer.functional.reductions import row_dot
from minitransformer.functional.since_2017 import routing
from minitransformer.functional.since_2017.activations import sigmoid, sigmoid_backward
from minitransformer.layers.decoder import DecoderLayer, DecoderLayerCache
from minitransformer.layers.encoder import EncoderLayer, EncoderLayerCache
from minitransformer.layers.linear import Linear


class ExpertsCache(NamedTuple):
    """The cache of `MixtureOfExperts`."""

    shape: tuple[int, ...]  # of x
    router: LinearCache
    logits: xp.ndarray  # (N, E)
    scores: Any  # of `softmax` or `sigmoid`
    chosen: xp.ndarray  # (N, E) booleans: which tokens went where
    weights: Any  # of `expert_weights`
    used: list[tuple]  # for each expert with n tokens: its number, their places (n,), its output (n, C), its cache
    tokens: xp.ndarray | None  # (N,) booleans: which are not padding; None: all
    batch_weight: float = 1.0  # of the part of a batch, see `with_weight` in layers/losses.py


class MixtureOfExperts(Layer):
    """E feed-forward networks, of which each token uses k (Shazeer et al. 2017): x (..., C) -> y (..., C).

    y = sum over chosen i of w_i FFN_i(x)      p = softmax(x R), the k largest are chosen, w as in `expert_weights`

    No expert has a capacity: none drops tokens, and what a token gets does not depend on the tokens beside it. Each
    expert computes all of its tokens at once.

    backward adds the gradient of two losses that are not in y, once for each call: balance_weight times `balance_loss`
    and z_weight times `z_loss`. So `gradcheck` needs both weights 0. Both losses, and the loads below, are means over
    the `tokens` that are not padding; padding is routed too, but its output is not used.

    scores="sigmoid" is DeepSeek-V3's router (2024, section 2.1.2): p = sigmoid(x R), the k largest p + bias are
    chosen, and w is made of p alone. The choice has no derivative, so instead of the balance loss, bias gets a gradient
    of its own, balance_weight (load - 1 / E): busy experts are chosen less often. DeepSeek-V3 moves it by a fixed step
    against the sign of load - mean, as Adam with betas=(0, 0) does; with other betas it averages over some steps.
    """

    def __init__(
        self,
        router: Linear,
        experts: Sequence[Layer],
        *,
        experts_per_token: int = 2,
        renormalize: bool = True,
        scores: str = "softmax",
        balance_weight: float = 0.01,
        z_weight: float = 0.0,
    ) -> None:
        self.experts_per_token, self.renormalize = experts_per_token, renormalize
        self.balance_weight, self.z_weight = balance_weight, z_weight
        self.router = router
        self.experts = list(experts)
        is_sigmoid = check_choice("scores", scores, ("softmax", "sigmoid")) == "sigmoid"
        self.bias = Parameter(np.zeros(len(self.experts), router.W.data.dtype)) if is_sigmoid else None

    def forward(
        self, x: xp.ndarray, tokens: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, ExpertsCache]:
        """x (..., C), tokens with a boolean for each vector, False for padding; None: no padding -> y (..., C)."""
        flat, used = x.reshape(-1, x.shape[-1]), []
        logits, cache_router = self.router.forward(flat)
        p, cache_p = softmax(logits) if self.bias is None else sigmoid(logits)
        chosen = routing.top_k(logits if self.bias is None else p + self.bias.data, self.experts_per_token)
        w, cache_w = routing.expert_weights(p, chosen, self.renormalize)
        y = xp.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            rows = xp.flatnonzero(chosen[:, e])
            if len(rows) > 0:
                output, cache = expert.forward(flat[rows], rng)
                y[rows] += w[rows, e : e + 1] * output  # no row occurs twice
                used.append((e, rows, output, cache))
        counted = None if tokens is None else tokens.reshape(-1)
        return y.reshape(x.shape), ExpertsCache(x.shape, cache_router, logits, cache_p, chosen, cache_w, used, counted)

    def backward(self, dy: xp.ndarray, cache: ExpertsCache) -> xp.ndarray:
        """dy (..., C) -> dx (..., C); with dL/dw_i = FFN_i(x) . dy the router learns which expert was useful."""
        check_shape("dy", dy, cache.shape)
        flat, w = dy.reshape(-1, dy.shape[-1]), cache.weights[0]
        dw, dx = xp.zeros_like(w), xp.zeros_like(flat)
        if not len(flat):  # a mean over no tokens has no gradient
            return dx.reshape(cache.shape)
        for e, rows, output, cache_expert in cache.used:
            column = slice(e, e + 1)
            dw[rows, column] = row_dot(output, flat[rows])
            dx[rows] += self.experts[e].backward(w[rows, column] * flat[rows], cache_expert)
        dx += self.router.backward(self._router_backward(dw, cache), cache.router)
        return dx.reshape(cache.shape)

    def _router_backward(self, dw, cache):
        """dlogits (N, E) from dw (N, E), and from the auxiliary losses."""
        dp, share = routing.expert_weights_backward(dw, cache.weights), cache.batch_weight
        rows = slice(None) if cache.tokens is None else xp.flatnonzero(cache.tokens)
        chosen, logits = cache.chosen[rows], cache.logits[rows]
        balance_weight, z_weight = (each * share * (len(logits) > 0) for each in (self.balance_weight, self.z_weight))
        if self.bias is None:
            if balance_weight:
                slope = routing.balance_loss(cache.scores[rows], chosen)[1]
                dp[rows] += routing.auxiliary_backward(balance_weight, slope)
            dlogits = softmax_backward(dp, cache.scores)
        else:
            if balance_weight:
                excess = routing.expert_loads(chosen) - 1.0 / len(self.experts)
                self.bias.add_grad((balance_weight * excess).astype(dw.dtype))
            dlogits = sigmoid_backward(dp, cache.scores)
        if z_weight:
            dlogits[rows] += routing.auxiliary_backward(z_weight, routing.z_loss(logits)[1])
        return dlogits


class RoutedEncoderLayer(EncoderLayer):
    """An encoder layer that tells its `MixtureOfExperts` which tokens are not padding."""

    def forward(  # type: ignore[override]  # an encoder layer has no use for `tokens`
        self,
        x: xp.ndarray,
        allowed: xp.ndarray | None = None,
        tokens: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, EncoderLayerCache]:
        """As `EncoderLayer.forward`; tokens (B, T), by default those that may attend to themselves."""
        a, cache_attention = self.self_attention.forward(x, allowed, rng=rng)
        tokens = attending_to_themselves(allowed, x) if tokens is None else tokens
        y, cache_network = self.feed_forward.forward(a, tokens, rng=rng)
        return y, EncoderLayerCache(cache_attention, cache_network)


class RoutedDecoderLayer(DecoderLayer):
    """A decoder layer that tells its `MixtureOfExperts` which tokens are not padding."""

    def forward(
        self,
        x: xp.ndarray,
        memory: xp.ndarray,
        allowed: xp.ndarray | None = None,
        memory_allowed: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, DecoderLayerCache]:
        """As `DecoderLayer.forward`."""
        a, cache_self = self.self_attention.forward(x, allowed, rng=rng)
        c, cache_cross = self.cross_attention.forward(a, memory, memory_allowed, rng=rng)
        y, cache_network = self.feed_forward.forward(c, attending_to_themselves(allowed, x), rng=rng)
        return y, DecoderLayerCache(cache_self, cache_cross, cache_network)


def attending_to_themselves(allowed: xp.ndarray | None, x: xp.ndarray) -> xp.ndarray | None:
    """Which of the tokens x (B, T, C) are not padding, by a mask for (B, H, T, T) -> (B, T), or None without a mask."""
    if allowed is None:
        return None
    row = allowed[..., 0, :] if allowed.shape[-2] == 1 else allowed.diagonal(axis1=-2, axis2=-1)
    return xp.broadcast_to(row[..., 0, :] if row.ndim > 2 else row, x.shape[:-1])
