"""Attention weights that can be read, trained and moved: a kind of attention around another, and a linear program."""

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from minitransformer import xp

SMALL = 1e-10  # a reduced cost that counts as 0


class Tap:
    """A kind of attention whose weights can be read, and have a gradient of their own besides that through y.

    Each key gets S more values, a row of the identity matrix: then y has S more features, p I = p, and what is put into
    their gradient is added to dp, whatever the kind does before. `weights` (B, H, T, S) and `values` (B, G, S, D) are
    those of the last forward pass, and `pull`, broadcastable to the weights, is added to dLoss/dp.
    """

    def __init__(self, kind: Any) -> None:
        self.kind, self.pull = kind, xp.zeros(1)
        self.takes_bias_by_distance = getattr(kind, "takes_bias_by_distance", False)

    def forward(self, q: Any, k: Any, v: Any, *context: Any, **options: Any) -> tuple[Any, Any]:
        """What the kind takes -> what it returns."""
        D, S = v.shape[-1], v.shape[-2]
        identity = xp.broadcast_to(xp.eye(S, dtype=v.dtype), (*v.shape[:-1], S))
        y, cache = self.kind.forward(q, k, xp.concatenate([v, identity], axis=-1), *context, **options)
        self.values, self.weights = v, y[..., D:]
        return y[..., :D], cache

    def backward(self, dy: Any, cache: Any) -> tuple:
        """dy (B, H, T, D) -> what the kind returns."""
        pull = xp.broadcast_to(self.pull, self.weights.shape).astype(dy.dtype)
        dq, dk, dv, dbias = self.kind.backward(xp.concatenate([dy, pull], axis=-1), cache)
        return dq, dk, dv[..., : dy.shape[-1]], dbias


@contextlib.contextmanager
def tapped(model: Any, part: str = "") -> Iterator[dict[str, Tap]]:
    """{path: the tap} of all attentions whose path contains `part`, inside a `with` block."""
    found = {path: layer for path, layer in attentions(model) if part in path}
    taps = {path: Tap(layer.kind) for path, layer in found.items()}
    try:
        for path, layer in found.items():
            layer.kind = taps[path]
        yield taps
    finally:
        for path, layer in found.items():
            layer.kind = taps[path].kind


def attentions(layer: Any, path: str = "") -> list[tuple[str, Any]]:
    """(path, layer) of all layers with a kind of attention."""
    here = [(path, layer)] if hasattr(getattr(layer, "kind", None), "backward") else []
    return sum((attentions(child, f"{path}.{name}".lstrip(".")) for name, child in layer.children()), here)


def moved(p: np.ndarray, v: np.ndarray) -> np.ndarray:
    """q >= 0 (S,) with q v = p v and sum q = sum p, and the least weight on the key that has the most in p.

    p (S,), v (S, D). Keys with p = 0, which a mask hides, stay at 0. An active-set method for this linear program: step
    from p against the reduced costs r, within the null space, until a weight is 0; where nothing falls any more, let a
    key with r < 0 have weight again. At the end r >= 0, so by duality no q is better.
    """
    seen = np.flatnonzero(p)
    A, q, cost = np.column_stack([v, np.ones(len(v))])[seen], p[seen].copy(), np.zeros(len(seen))
    cost[q.argmax()] = 1.0
    free = np.ones(len(q), bool)
    for _ in range(20 * len(q)):
        r = cost - A @ np.linalg.lstsq(A[free], cost[free], rcond=None)[0]
        d = np.where(free, -r, 0.0)
        d[free] -= A[free] @ np.linalg.lstsq(A[free], d[free], rcond=None)[0]  # rounding has left the null space
        if abs(d).max(initial=0.0) < SMALL or not (d < 0).any():
            waiting = np.where(free, 0.0, r)
            if waiting.min() > -SMALL:
                break
            free[waiting.argmin()] = True
            continue
        steps = np.where(d < 0, q / np.where(d < 0, -d, 1.0), np.inf)
        q += steps.min() * d
        q[steps.argmin()], free[steps.argmin()] = 0.0, False
    whole = np.zeros_like(p)
    whole[seen] = np.maximum(q, 0.0)
    return whole


def judge_move(p: np.ndarray, q: np.ndarray, v: np.ndarray) -> dict[str, float]:
    """The directions in which p could move; its largest weight, what is left of it, and the total variation."""
    seen = p > 0
    rank = np.linalg.matrix_rank(np.column_stack([v, np.ones(len(v))])[seen])
    first = p.argmax()
    return {
        "directions": int(seen.sum() - rank),
        "largest": p[first],
        "left": q[first],
        "moved": 0.5 * abs(p - q).sum(),
    }
