"""Fits of scaling laws: parabolas, powers, and L = E + A / N^a + B / D^b, with intervals by the bootstrap."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

FLOPS_PER_WEIGHT = 6  # for each token: a multiplication and an addition in forward, and twice as many in backward
GRID, ROUNDS, SHRINK = 11, 18, 0.4  # of the search for the powers
DRAWS = 300


class Law(NamedTuple):
    """The loss of N parameters after D tokens, L = E + A / N^a + B / D^b (Hoffmann et al. 2022, equation 2)."""

    E: float
    A: float
    B: float
    a: float
    b: float

    def loss(self, N: Any, D: Any) -> Any:
        """The loss in nats per token."""
        return self.E + self.A * N**-self.a + self.B * D**-self.b

    def optimum(self, flops: float) -> tuple[float, float]:
        """The N and D with the lowest loss among all with 6 N D = `flops`.

        With D = K / N and K = flops / 6, dL/dN = 0 says a A N^-a = b B (K / N)^-b, so N^(a + b) = (a A / b B) K^b.
        """
        K = flops / FLOPS_PER_WEIGHT
        N = (self.a * self.A / (self.b * self.B) * K**self.b) ** (1 / (self.a + self.b))
        return N, K / N


PUBLISHED = {
    "Hoffmann et al. 2022": Law(1.69, 406.4, 410.7, 0.34, 0.28),
    "Besiroglu et al. 2024": Law(1.8172, 482.01, 2085.43, 0.3478, 0.3658),
}
CHINCHILLA = 5.76e23  # FLOP: the budget of Hoffmann et al., who trained 70 billion parameters on 1.4 trillion tokens


def fit_law(sizes: np.ndarray, tokens: np.ndarray, losses: np.ndarray) -> Law:
    """The law of N = `sizes`, D = `tokens` and `losses` (runs,) with the smallest squares of relative errors.

    It is a variable projection: for given powers (a, b), finding E, A and B is linear least squares. So only the plane
    of the powers is searched: a grid around the best point so far, which shrinks unless that point is on its border.
    """
    n, d = (x / np.exp(np.log(x).mean()) for x in (sizes, tokens))
    center, radius = np.array([0.5, 0.5]), 0.48
    for _ in range(ROUNDS):
        lines = (np.maximum(x + radius * np.linspace(-1, 1, GRID), 1e-3) for x in center)
        a, b = (x.reshape(-1, 1) for x in np.meshgrid(*lines))
        X = np.stack(np.broadcast_arrays(1.0, n**-a, d**-b), axis=-1) / losses[:, None]
        Q = np.linalg.qr(X)[0]  # (grid, runs, 3); the target is 1 for every run
        errors = 1 - np.einsum("gri,gi->gr", Q, Q.sum(axis=1))
        best = int(np.argmin((errors**2).sum(axis=1)))
        center = np.array([a[best, 0], b[best, 0]])
        if 0 < best % GRID < GRID - 1 and 0 < best // GRID < GRID - 1:
            radius *= SHRINK
    E, A, B = np.linalg.lstsq(X[best], np.ones(len(losses)), rcond=None)[0]
    a, b = map(float, center)
    return Law(float(E), float(A * (sizes / n)[0] ** a), float(B * (tokens / d)[0] ** b), a, b)


def parabola(sizes: np.ndarray, losses: np.ndarray) -> tuple[float, float]:
    """The N and the loss at the lowest point of the parabola over log N through the runs of one budget."""
    curvature, slope, height = np.polyfit(np.log(sizes), losses, 2)
    return float(np.exp(-slope / (2 * curvature))), float(height - slope**2 / (4 * curvature))


def power(x: Any, y: Any) -> tuple[float, float]:
    """(factor, exponent) of y = factor x^exponent for x and y (points,): a straight line through the logarithms."""
    exponent, factor = np.polyfit(np.log(x), np.log(y), 1)
    return float(np.exp(factor)), float(exponent)


def bootstrap(
    measure: Callable[[np.ndarray], dict[str, float]], losses: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """What `measure` says of the mean losses (cells,), for DRAWS means over seeds that are drawn with replacement.

    `losses` (cells, seeds) has the runs that differ only in their seed in one row -> {name: (DRAWS,)}.
    """
    cells, seeds = losses.shape
    draws = [
        measure(np.take_along_axis(losses, rng.integers(0, seeds, (cells, seeds)), axis=1).mean(axis=1))
        for _ in range(DRAWS)
    ]
    return {name: np.array([draw[name] for draw in draws]) for name in draws[0]}
