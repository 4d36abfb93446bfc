"""How far does a gradient reach before any training, in an LSTM and in attention?

Measured is the norm of dLoss/dx_1, where the loss is on the last of n tokens.

In an LSTM the gradient is multiplied by about the same factor at each step, so it falls geometrically, and the bias of
the forget gate decides how fast. Attention has no steps: the gradient is divided among the n tokens.
"""

import itertools
import math
from collections.abc import Callable

import numpy as np

from experiments.report import Figure, Options, Rows, Table, by_name, draw_kinds, legend_below, pivot
from minitransformer import Layer
from minitransformer.layers import LSTM, SelfAttention
from minitransformer.plotting import GREY, pyplot

SECONDS = {True: 5, False: 15}
WIDTH, HEADS, SEQUENCES = 64, 4, 8
DISTANCES = {True: (1, 4, 16, 64, 256), False: (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)}
FLOAT32_DIGITS = 2.0**-24  # relative to what it is added to, a smaller gradient is lost in float32


def attention(n: int, rng: np.random.Generator) -> SelfAttention:
    """Attention with its initial weights."""
    return SelfAttention(WIDTH, HEADS, rng=rng, dtype=np.float64)


def even_attention(n: int, rng: np.random.Generator) -> SelfAttention:
    """Attention with queries of 0: all scores are equal, so every weight is 1 / n."""
    layer = attention(n, rng)
    layer.qkv.W.data[:, :WIDTH] = 0.0
    return layer


def lstm(bias: Callable[[int], float]) -> Callable[[int, np.random.Generator], LSTM]:
    """A function (n, rng) -> LSTM whose forget gates begin with bias(n)."""
    return lambda n, rng: LSTM(WIDTH, WIDTH, forget_bias=bias(n), rng=rng, dtype=np.float64)


def running_mean(n: int, rng: np.random.Generator) -> LSTM:
    """An LSTM that also lets each token in by 1 / (n + 1) only, so that its cells are about means of n tokens."""
    layer = lstm(math.log)(n, rng)
    layer.directions[0].b.data[WIDTH : 2 * WIDTH] = -math.log(n)
    return layer


KINDS: dict[str, Callable[[int, np.random.Generator], Layer]] = {
    "LSTM, forget bias 0": lstm(lambda n: 0.0),
    "LSTM, forget bias 1": lstm(lambda n: 1.0),
    "LSTM, forget bias log n": lstm(math.log),  # the gate forgets 1 / (n + 1): half of Tallec and Ollivier 2018
    "LSTM, and input bias -log n": running_mean,
    "attention, initial weights": attention,
    "attention, even": even_attention,
}


def rows(options: Options) -> Rows:
    """The gradient that arrives, of every kind at every distance."""
    found = itertools.product(KINDS, DISTANCES[options.quick])
    return {"gradients": [{"layer": k, "distance": n, "norm": reach(k, n + 1, options.seed)} for k, n in found]}


def tables(rows: Rows) -> list[Table]:
    """The norms, and the distance from which on a gradient is lost."""
    table = pivot(
        f"norm of dLoss/dx_1 relative to a sequence of one token, d = {WIDTH}, mean of {SEQUENCES} sequences",
        *(rows["gradients"], "layer", "distance", "norm", ".0e"),
    )
    cells = [
        [*("0" if value == "0e+00" else value for value in line), f"{lost_from(rows, line[0]) or 'never'}"]
        for line in table.cells
    ]
    return [table._replace(columns=[*table.columns, "lost from"], cells=cells)]


def lost_from(rows: Rows, name: str) -> int | None:
    """The first distance at which the gradient is lost to rounding in float32."""
    chosen = [row for row in rows["gradients"] if row["layer"] == name]
    return next((row["distance"] for row in chosen if row["norm"] < FLOAT32_DIGITS), None)


def findings(rows: Rows) -> list[str]:
    """Which gradients are lost."""
    lost = {name: lost_from(rows, name) for name in by_name(rows["gradients"], "layer")}
    return [
        f"{k}: {f'lost to rounding in float32 from {n} tokens on' if n else 'never lost'}." for k, n in lost.items()
    ]


def draw(rows: Rows) -> Figure:
    """How much of the gradient arrives at the first token, over its distance from the loss."""
    figure, axis = pyplot().subplots(figsize=(8.2, 4.6))
    distances = list(dict.fromkeys(row["distance"] for row in rows["gradients"]))
    draw_kinds(axis, rows["gradients"], "layer", "distance", "norm")
    axis.loglog(distances, [1 / (n + 1) for n in distances], "--", color=GREY, linewidth=1, label="1 / n")
    axis.set(title="How far a gradient reaches, before training", xlabel="distance between the token and the loss")
    axis.set(ylabel="norm of dLoss/dx_1, divided by dLoss/dx_n at n = 1", ylim=(1e-16, 1e3))
    axis.axhline(FLOAT32_DIGITS, color=GREY, linewidth=1, linestyle=":", label="rounding error of float32")
    legend_below(figure, axis, ncols=3)
    return figure


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
