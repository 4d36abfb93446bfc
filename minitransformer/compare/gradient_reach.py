"""How far a gradient reaches: the norm of dLoss/dx_1, where the loss is on the last of n tokens, before any training.

In an LSTM the gradient is multiplied by about the same factor at each step, so it falls geometrically, and the bias of
the forget gate decides how fast. Attention has no steps: the gradient is divided among the n tokens.
"""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.compare.figures import plot_reach
from minitransformer.core import Layer
from minitransformer.layers import LSTM, SelfAttention

NAME = "gradient-reach"
DESCRIPTION = "the norm of dLoss/dx_1 against the distance: LSTM by its forget bias, and attention"
SECONDS = {True: 5, False: 15}
WIDTH, HEADS, SEQUENCES = 64, 4, 8
DISTANCES = {True: (1, 4, 16, 64, 256), False: (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)}
FLOAT32_DIGITS = 2.0**-24  # relative to what it is added to, a smaller gradient is lost in float32


def even_attention(n: int, rng: np.random.Generator) -> SelfAttention:
    """Attention with queries of 0: all scores are equal, so every weight is 1 / n."""
    layer = SelfAttention(WIDTH, HEADS, rng=rng, dtype=np.float64)
    layer.qkv.W.data[:, :WIDTH] = 0.0
    return layer


def lstm(bias: Callable[[int], float]) -> Callable[[int, np.random.Generator], LSTM]:
    """A function (n, rng) -> LSTM whose forget gates begin with bias(n)."""
    return lambda n, rng: LSTM(WIDTH, WIDTH, forget_bias=bias(n), rng=rng, dtype=np.float64)


KINDS: dict[str, Callable[[int, np.random.Generator], Layer]] = {
    "LSTM, forget bias 0": lstm(lambda n: 0.0),
    "LSTM, forget bias 1": lstm(lambda n: 1.0),
    "LSTM, forget bias log n": lstm(math.log),  # the gate forgets 1 / (n + 1): Tallec and Ollivier 2018
    "attention, initial weights": lambda n, rng: SelfAttention(WIDTH, HEADS, rng=rng, dtype=np.float64),
    "attention, even": even_attention,
}


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Measure all kinds, print a table, and draw gradient_reach.png into `directory` -> the numbers."""
    distances = DISTANCES[quick]
    reaches = {name: [reach(name, distance + 1, seed) for distance in distances] for name in KINDS}
    print(f"norm of dLoss/dx_1 relative to a sequence of one token, d = {WIDTH}, mean of {SEQUENCES} sequences\n")
    print(f"{'distance':<28}" + "".join(f"{distance:>9}" for distance in distances) + f"{'lost from':>12}")
    for name, values in reaches.items():
        lost = next((d for d, value in zip(distances, values, strict=True) if value < FLOAT32_DIGITS), None)
        print(f"{name:<28}" + "".join(f"{value:>9.0e}" for value in values) + f"{lost or 'never':>12}")
    print(f"{'1 / n':<28}" + "".join(f"{1 / (distance + 1):>9.0e}" for distance in distances))
    print(f"\nlost: less than 2^-24 = {FLOAT32_DIGITS:.0e}, the rounding error of a float32 of size 1")
    figure = directory / "gradient_reach.png"
    plot_reach(distances, reaches, figure)
    print(f"\nsaved {figure}")
    return {"distances": distances, "reaches": reaches}


def reach(name: str, n: int, seed: int) -> float:
    """||dLoss/dx_1|| for n tokens, divided by that for one token; the loss weights the last output at random."""
    return first_gradient(name, n, seed) / first_gradient(name, 1, seed)


def first_gradient(name: str, n: int, seed: int) -> float:
    """The geometric mean over sequences of ||dLoss/dx_1||."""
    rng = np.random.default_rng(seed)
    layer = KINDS[name](max(n, 2), rng)
    dlast = rng.standard_normal((SEQUENCES, WIDTH))  # first, so that it is the same for every n
    x = rng.standard_normal((SEQUENCES, n, WIDTH))
    y, cache = layer.forward(x)
    y = y[0] if isinstance(layer, LSTM) else y
    dy = np.zeros_like(y)
    dy[:, -1] = dlast
    dx = layer.backward(dy, cache)
    dx = dx[0] if isinstance(layer, LSTM) else dx
    norms = np.sqrt((dx[:, 0] ** 2).sum(axis=-1))
    return float(np.exp(np.log(np.maximum(norms, np.finfo(np.float64).tiny)).mean()))
