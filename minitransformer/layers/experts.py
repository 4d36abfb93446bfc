"""A mixture of experts: several feed-forward networks, of which a router chooses a few for each token."""

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_choice, check_shape
from minitransformer.config import EXPERT_SCORES
from minitransformer.core import Layer, Parameter
from minitransformer.functional import softmax, softmax_backward
from minitransformer.functional.gated import sigmoid, sigmoid_backward
from minitransformer.functional.linear import LinearCache
from minitransformer.functional.reductions import row_dot
from minitransformer.functional.routing import (
    WeightsCache,
    balance_loss,
    balance_loss_backward,
    expert_loads,
    expert_weights,
    expert_weights_backward,
    top_k,
    z_loss,
    z_loss_backward,
)
from minitransformer.layers.feed_forward import FeedForward, FeedForwardCache
from minitransformer.layers.linear import Linear

_batch_weight: contextvars.ContextVar[float] = contextvars.ContextVar("batch_weight", default=1.0)


@contextlib.contextmanager
def weighing(weight: float) -> Iterator[None]:
    """Inside a `with` block, this thread's backward passes add `weight` times the auxiliary gradients.

    For one part of a batch it is the part's share, because dy is weighted with it, and auxiliary losses have no dy.
    """
    token = _batch_weight.set(weight)
    try:
        yield
    finally:
        _batch_weight.reset(token)


class Used(NamedTuple):
    """The tokens of one expert."""

    rows: xp.ndarray  # (n,), their places among the N tokens
    output: xp.ndarray  # (n, C), before it is weighted
    network: FeedForwardCache


class ExpertsCache(NamedTuple):
    """The cache of `MixtureOfExperts`; `weights.chosen` says which tokens went where."""

    shape: tuple[int, ...]  # of x
    router: LinearCache
    logits: xp.ndarray  # (N, E)
    scores: Any  # of `softmax` or `sigmoid`
    weights: WeightsCache
    used: list[Used | None]  # for each expert; None if it has no tokens


class MixtureOfExperts(Layer):
    """E feed-forward networks, of which each token uses k (Shazeer et al. 2017): x (..., C) -> y (..., C).

    y = sum over chosen i of w_i FFN_i(x)      p = softmax(x R), the k largest are chosen, w as in `expert_weights`

    No expert has a capacity: none drops tokens, and what a token gets does not depend on the tokens beside it. Each
    expert computes all of its tokens at once. `options` are those of every `FeedForward`.

    backward adds the gradient of two losses that are not in y, once for each call: balance_weight times `balance_loss`
    over all tokens, padding among them, and z_weight times `z_loss` (see `weighing` for parts of a batch). So
    `gradcheck` needs both weights 0.

    scores="sigmoid" is DeepSeek-V3's router (2024, section 2.1.2): p = sigmoid(x R), the k largest p + bias are chosen,
    and w is made of p alone. The choice has no derivative, so instead of the balance loss, bias gets a gradient of its
    own, balance_weight (load - 1 / E): busy experts are chosen less often. DeepSeek-V3 moves it by a fixed step against
    the sign of load - mean. So does Adam with betas=(0, 0); with others it smooths the loads over several steps.
    Raises ValueError or TypeError for options that cannot be used.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        num_experts: int,
        experts_per_token: int = 2,
        *,
        renormalize: bool = True,
        scores: str = "softmax",
        balance_weight: float = 0.0,
        z_weight: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
        **options: Any,
    ) -> None:
        self.experts_per_token, self.renormalize = experts_per_token, renormalize
        self.balance_weight, self.z_weight = balance_weight, z_weight
        self.router = Linear(d_model, num_experts, bias=False, rng=rng, dtype=dtype)
        self.experts = [FeedForward(d_model, d_ff, rng=rng, dtype=dtype, **options) for _ in range(num_experts)]
        is_sigmoid = check_choice("scores", scores, EXPERT_SCORES) == "sigmoid"
        self.bias = Parameter(np.zeros(num_experts, dtype)) if is_sigmoid else None

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, ExpertsCache]:
        """x (..., C) -> y (..., C)."""
        logits, cache_router = self.router.forward(x.reshape(-1, x.shape[-1]))
        p, cache_p = softmax(logits) if self.bias is None else sigmoid(logits)
        chosen = top_k(logits if self.bias is None else p + self.bias.data, self.experts_per_token)
        w, cache_w = expert_weights(p, chosen, self.renormalize)
        flat, y = cache_router.x, xp.zeros_like(cache_router.x)
        used: list[Used | None] = []
        for e, expert in enumerate(self.experts):
            rows = xp.flatnonzero(chosen[:, e])
            if len(rows) == 0:
                used.append(None)
                continue
            output, cache = expert.forward(flat[rows], rng)
            y[rows] += w[rows, e : e + 1] * output  # no row occurs twice
            used.append(Used(rows, output, cache))
        return y.reshape(x.shape), ExpertsCache(x.shape, cache_router, logits, cache_p, cache_w, used)

    def backward(self, dy: xp.ndarray, cache: ExpertsCache) -> xp.ndarray:
        """dy (..., C) -> dx (..., C); with dL/dw_i = FFN_i(x) . dy the router learns which expert was useful."""
        check_shape("dy", dy, cache.shape)
        flat, w = dy.reshape(-1, dy.shape[-1]), cache.weights.w
        dw, dx = xp.zeros_like(w), xp.zeros_like(flat)
        for e, used in enumerate(cache.used):
            if used is not None:
                rows, column = used.rows, slice(e, e + 1)
                dw[rows, column] = row_dot(used.output, flat[rows])
                dx[rows] += self.experts[e].backward(w[rows, column] * flat[rows], used.network)
        dx += self.router.backward(self._router_backward(dw, cache), cache.router)
        return dx.reshape(cache.shape)

    def _router_backward(self, dw, cache):
        """dlogits (N, E) from dw (N, E), and from the auxiliary losses."""
        dp, share = expert_weights_backward(dw, cache.weights), _batch_weight.get()
        if self.bias is not None:
            dlogits = sigmoid_backward(dp, cache.scores)
            if self.balance_weight:
                excess = expert_loads(cache.weights.chosen) - 1.0 / len(self.experts)
                self.bias.add_grad((excess * (self.balance_weight * share)).astype(dw.dtype))
        else:
            if self.balance_weight:
                _, slope = balance_loss(cache.scores, cache.weights.chosen)
                dp += balance_loss_backward(self.balance_weight * share, slope)
            dlogits = softmax_backward(dp, cache.scores)
        if self.z_weight:
            _, slope = z_loss(cache.logits)
            dlogits += z_loss_backward(self.z_weight * share, slope)
        return dlogits
