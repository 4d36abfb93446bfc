"""Muon (Jordan et al. 2024): momentum whose matrices are made nearly orthogonal, and Adam for all other parameters.

Adam gives every number of a matrix a step of about the same size, whatever the others do. But a matrix is used as a
whole, x W, and a few singular values of its gradient x^T dy are much larger than the others: most of the step goes into
a few directions, and the rest hardly moves. If U S V^T is the singular value decomposition of the momentum, Muon steps
along nearly U V^T, so that all directions move by about the same amount.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.checks import check_rate, check_shape
from minitransformer.core import Layer, Parameter
from minitransformer.functional.since_2017.activations import GATED
from minitransformer.layers import CrossAttention, FeedForward, Linear, SelfAttention
from minitransformer.layers.since_2017.lora import linear_places
from minitransformer.layers.since_2017.qk_norm import NormalizedProjection
from minitransformer.layers.stack import LayerStack
from minitransformer.training.optimizers import Adam

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of X, X^3 and X^5; chosen to raise small singular values fast
ITERATIONS = 5
SMALL = 1e-7  # added to the norm of the momentum, which may be zero


def newton_schulz(G: xp.ndarray) -> xp.ndarray:
    """The matrix G (I, O) with its singular values between 0.68 and 1.14, and its singular vectors -> (I, O).

    X <- a X + b (X X^T) X + c (X X^T)^2 X        X = G / |G| at first, with the root of the sum of all squares

    X X^T has the same singular vectors as X, so each iteration applies s -> a s + b s^3 + c s^5 to every singular value
    and needs products alone. Five of them bring each that was at least 0.01 into [0.682, 1.134]. That is not U V^T: the
    coefficients do not converge to 1, but raise a small singular value by 3.4 each time (0.001 becomes 0.47, 0 stays).
    Check: an orthogonal factor on either side passes through, and so does a transposition.
    """
    a, b, c = COEFFICIENTS
    X = G / (xp.sqrt(xp.vdot(G, G)) + SMALL)
    is_tall = X.shape[0] > X.shape[1]
    X = X.T if is_tall else X  # so that X X^T is the smaller of the two products
    for _ in range(ITERATIONS):
        A = X @ X.T
        polynomial = A @ A
        polynomial *= c
        polynomial += b * A
        X = polynomial @ X + a * X
    return X.T if is_tall else X


class Muon(Adam):
    """Muon for the matrices in the layers of `model`, and Adam for the rest; an optimizer like `Adam` otherwise.

    m <- momentum m + (1 - momentum) g        u = momentum m + (1 - momentum) g        (Nesterov)
    W <- W (1 - rate weight_decay) - rate sqrt(max(1, O / I)) newton_schulz(u)         rate = lr ratio

    W (I, O) is each matrix of `matrices_in_layers`. Embeddings, the output, gains and biases move as Adam moves them,
    with `betas`, `eps` and `lr`, which may be set before each step: so one schedule serves both. A step of Adam changes
    every number by about lr, and one of Muon a matrix of C x C by a root mean square of about rate / sqrt(C).

    There is one running mean for a matrix instead of Adam's two. The step of a matrix does not depend on how many
    tokens the batch had, so Muon's share of the time falls as batches grow. Raises what Adam raises, and ValueError for
    a momentum outside [0, 1).
    """

    def __init__(
        self,
        model: Layer,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.98),
        eps: float = 1e-9,
        weight_decay: float = 0.0,
        *,
        ratio: float = 10.0,
        momentum: float = 0.95,
    ) -> None:
        self.ratio, self.momentum = ratio, check_rate("momentum", momentum)
        self.matrices = [(W, widths) for W, widths in matrices_in_layers(model) if not W.frozen]
        inside = {id(W) for W, _ in self.matrices}
        rest = [parameter for parameter in model.parameters() if id(parameter) not in inside and not parameter.frozen]
        self.rest = sum(parameter.data.size for parameter in rest)
        super().__init__([*rest, *(W for W, _ in self.matrices)], lr, betas, eps, weight_decay)
        self.means = [xp.zeros_like(W.data) for W, _ in self.matrices]

    @property
    def shard(self) -> slice:
        """The part of `weights` that Adam moves: they come first, and the matrices after them."""
        return slice(0, self.rest)

    def step(self, *, scale: Any = 1.0) -> None:
        """Move every weight once. `scale` multiplies the gradient, as in `Adam.step`."""
        super().step(scale=scale)
        self.moving = True
        self.team.map(partial(self._move, scale=scale), self.matrices, self.means)
        self.moving = False

    def _move(self, matrix: tuple[Parameter, list[int]], mean: xp.ndarray, scale: Any) -> None:
        W, widths = matrix
        g = W.grad * ((1.0 - self.momentum) * scale)
        mean *= self.momentum
        mean += g
        g += self.momentum * mean
        rate, start = self.lr * self.ratio, 0
        if self.weight_decay:
            W.data *= 1.0 - rate * self.weight_decay
        for width in widths:
            columns = slice(start, start + width)
            step = newton_schulz(g[:, columns])
            step *= rate * max(1.0, width / len(g)) ** 0.5
            W.data[:, columns] -= step
            start += width

    def state(self) -> tuple[dict, dict]:
        """As `Adam.state`, and the running means of the matrices."""
        arrays, facts = super().state()
        return {**arrays, **{f"muon.{i}": to_host(mean) for i, mean in enumerate(self.means)}}, facts

    def load_state(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        """Continue from what `state` returned. Raises ValueError for arrays of another shape."""
        saved = {"adam.m": self.m, "adam.v": self.v, **{f"muon.{i}": mean for i, mean in enumerate(self.means)}}
        for name, array in saved.items():
            check_shape(name, arrays[name], array.shape)
            array[...] = to_device(arrays[name])
        self.t, self.moving = facts["adam_steps"], False


def matrices_in_layers(model: Layer) -> list[tuple[Parameter, list[int]]]:
    """Every W (I, O) of a `Linear` in a `LayerStack` of `model`, and the widths of the matrices side by side in it.

    The queries', keys' and values' matrices are one array here, as are the two of a gated feed-forward network. Muon
    takes them one by one, as they are in the papers: made orthogonal together, they would move differently.
    """
    places = [place for layer in layers_in(model) if isinstance(layer, LayerStack) for place in linear_places(layer)]
    return list({id(linear.W): (linear.W, _widths(owner, key, linear)) for _, owner, key, linear in places}.values())


def layers_in(layer: Layer) -> Iterator[Layer]:
    """The layer, and all layers inside it."""
    yield layer
    for _, inner in layer.children():
        yield from layers_in(inner)


def _widths(owner: Any, name: str | int, linear: Linear) -> list[int]:
    if isinstance(owner, NormalizedProjection) or (isinstance(owner, SelfAttention) and name == "qkv"):
        return list(owner.widths)
    if isinstance(owner, CrossAttention) and name == "kv":
        return list(owner.widths[1:])
    O = linear.W.data.shape[1]
    return [O // 2] * 2 if isinstance(owner, FeedForward) and name == "expand" and owner.activation in GATED else [O]
