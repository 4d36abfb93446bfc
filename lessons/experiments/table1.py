"""What are the numbers of the paper's table 1, when five kinds of layers are counted while they run, and timed?

The paper compares complexity per layer, the number of sequential operations, and the longest path between any two
positions. Here the first is the number of multiply-adds, the second the longest chain of operations that must wait for
each other, and the third the number of layers that connect the first position with the last.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from experiments.measuring.timing import medians
from experiments.measuring.tracing import Trace
from experiments.report import (
    Figure,
    Options,
    Rows,
    Table,
    draw_kinds,
    grouped,
    legend_below,
    listed,
    name_ticks,
    pivot,
)
from minitransformer import Layer
from minitransformer.functional import causal_mask
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.layers import GeneralSelfAttention, SelfAttention
from minitransformer.layers.before_2017.convolution import Conv1d
from minitransformer.layers.before_2017.recurrent import LSTM
from minitransformer.layers.since_2017.attention_kinds import TiledAttention
from minitransformer.plotting import COLORS, GREY, pyplot
from minitransformer.system.progress import tqdm

SECONDS = {True: 20, False: 90}
WIDTH, HEADS, KERNEL, WINDOW = 128, 8, 3, 32  # d, h, k and r
TOKENS = 2048  # in a batch that is timed: TOKENS / n sequences
LENGTHS = {True: (16, 64, 256), False: (16, 32, 64, 128, 256, 512, 1024)}  # n
DISTANCE, NARROW = 128, 16  # how far apart are the positions of the longest path, and d for finding it
SECONDS_PER_LENGTH = {True: 4.0, False: 8.0}


class Kind(NamedTuple):
    """A kind of layer in the table."""

    in_paper: str  # its complexity per layer
    chain_in_paper: str  # its sequential operations
    path_in_paper: str  # its maximum path length
    make: Callable[[int, int, np.random.Generator], Layer]  # (d, how many layers are below it, rng) -> layer
    outside: tuple[str, ...] = ()  # the weights of projections, which the paper leaves out


PROJECTIONS = ("qkv.W", "output.W")
TILED = TiledAttention(Pattern(causal=True, window=WINDOW))
KINDS = {
    "self-attention": Kind(
        *("n^2 d", "O(1)", "O(1)"),
        lambda d, below, rng: SelfAttention(d, HEADS, rng=rng),  # `forward` gives it a causal mask
        PROJECTIONS,
    ),
    "recurrent": Kind("n d^2", "O(n)", "O(n)", lambda d, below, rng: LSTM(d, d, rng=rng), ("directions.0.W",)),
    "convolutional": Kind("k n d^2", "O(1)", "O(n / k)", lambda d, below, rng: Conv1d(d, d, KERNEL, rng=rng)),
    "dilated": Kind(  # its reach grows KERNEL-fold from layer to layer
        *("k n d^2", "O(1)", "O(log_k n)"),
        lambda d, below, rng: Conv1d(d, d, KERNEL, dilation=KERNEL**below, rng=rng),
    ),
    "restricted": Kind(  # to the WINDOW tokens up to one's own
        *("r n d", "O(1)", "O(n / r)"),
        lambda d, below, rng: GeneralSelfAttention(d, HEADS, rng=rng, kind=TILED),
        PROJECTIONS,
    ),
}


def rows(options: Options) -> Rows:
    """Count and time all kinds, and find the paths."""
    layers = [count(name, n, options.seed) for name in KINDS if name != "dilated" for n in LENGTHS[options.quick]]
    for (n,), found in tqdm(grouped(layers, "n").items(), unit="length"):
        calls = {row["kind"]: timed_call(row["kind"], n, options.seed) for row in found}
        times = medians(calls, SECONDS_PER_LENGTH[options.quick])
        for row in found:
            row["milliseconds"] = 1e3 * times[row["kind"]]
    return {"layers": layers, "paths": [path(name, DISTANCE, options.seed) for name in KINDS]}


def forward(layer: Layer, x: np.ndarray) -> tuple[Any, Any]:
    """The output of a layer, causal where it has a choice -> (y (B, n, d), cache)."""
    if type(layer) is SelfAttention:
        return layer.forward(x, causal_mask(x.shape[1]))
    y, cache = layer.forward(x)
    return (y[0] if isinstance(layer, LSTM) else y), cache  # an LSTM returns its final state as well


def backward(layer: Layer, dy: np.ndarray, cache: Any) -> np.ndarray:
    """dx (B, n, d) from dy."""
    dx = layer.backward(dy, cache)
    return dx[0] if isinstance(layer, LSTM) else dx


def count(name: str, n: int, seed: int, d: int = WIDTH) -> dict[str, Any]:
    """The multiply-adds of a forward pass over one sequence, and the chains of forward and backward."""
    kind, rng = KINDS[name], np.random.default_rng(seed)
    layer = kind.make(d, 0, rng)
    row: dict[str, Any] = {"kind": name, "n": n}
    for key, products_only in (("operations_in_chain", False), ("products_in_chain", True)):
        trace = Trace(products_only=products_only)
        with trace.recording(layer):
            y, cache = forward(layer, trace.watch(rng.standard_normal((1, n, d)).astype(np.float32)))
            counted = trace.multiply_adds.copy()
            backward(layer, y, cache)  # as if the loss were |y|^2 / 2, so that the backward waits for the forward
        row[key] = int(trace.longest)
    row["multiply_adds"] = counted.total()
    row["without_projections"] = counted.total() - sum(counted[weight] for weight in kind.outside)
    return row


def path(name: str, distance: int, seed: int) -> dict[str, Any]:
    """How many layers connect two positions, and how many operations and products the shortest chain between them has.

    Layers are added until the last output has a gradient with respect to the first input that is not 0.
    """
    rng = np.random.default_rng(seed)
    layers: list[Layer] = []
    reached = False
    while not reached:
        layers.append(KINDS[name].make(NARROW, len(layers), rng))
        x, caches = rng.standard_normal((1, distance + 1, NARROW)).astype(np.float32), []
        for layer in layers:
            x, cache = forward(layer, x)
            caches.append(cache)
        dx = np.zeros_like(x)
        dx[:, -1] = 1.0
        for layer, cache in zip(reversed(layers), reversed(caches), strict=True):
            dx = backward(layer, dx, cache)
            dx /= np.abs(dx).max()  # so that nothing is lost to underflow
        reached = bool(dx[0, 0].any())
    operations, products = (shortest_chain(layers, distance, only, rng) for only in (False, True))
    return {"kind": name, "distance": distance, "layers": len(layers), "operations": operations, "products": products}


def shortest_chain(layers: list[Layer], distance: int, products_only: bool, rng: np.random.Generator) -> int:
    """The length of the shortest chain of operations from the first input of a stack to its last output."""
    trace = Trace(shortest=True, products_only=products_only)
    x = trace.watch(rng.standard_normal((1, distance + 1, NARROW)).astype(np.float32))
    trace.starts_from(x, (0, 0))
    for layer in layers:
        with trace.recording(layer):
            x, _ = forward(layer, x)
    return int(trace.chains(x)[0, -1].min())


def timed_call(name: str, n: int, seed: int) -> Callable[[], Any]:
    """A function that runs forward and backward of a layer over a batch of TOKENS tokens."""
    rng = np.random.default_rng(seed)
    layer = KINDS[name].make(WIDTH, 0, rng)
    x = rng.standard_normal((TOKENS // n, n, WIDTH)).astype(np.float32)

    def call() -> None:
        layer.zero_grad()
        y, cache = forward(layer, x)
        backward(layer, y, cache)

    return call


def crossing(rows: list[dict[str, Any]], other: str, key: str) -> float | None:
    """The n from which on self-attention costs more than `other`, between two lengths along a power law; else None."""
    ratios = [
        (row["n"], math.log(row[key] / rival[key]))
        for row in rows
        for rival in rows
        if (row["kind"], rival["kind"], rival["n"]) == ("self-attention", other, row["n"])
    ]
    for (n, before), (next_n, after) in itertools.pairwise(ratios):
        if before <= 0 < after:
            return float(n * (next_n / n) ** (-before / (after - before)))
    return None


def tables(rows: Rows) -> list[Table]:
    """What was counted and timed of each layer, and the paths."""
    columns = {
        "multiply-adds of a forward pass (millions)": ("multiply_adds", ".2f", 1e-6),
        "the same without projections (millions)": ("without_projections", ".2f", 1e-6),
        "longest chain of operations, forward and backward": ("operations_in_chain", ",.0f", 1),
        "longest chain of products, forward and backward": ("products_in_chain", ",.0f", 1),
        f"time of forward and backward of {TOKENS:,} tokens (ms)": ("milliseconds", ".1f", 1),
    }
    found = []
    for title, (key, form, unit) in columns.items():
        if all(key in row for row in rows["layers"]):
            table = pivot(title, rows["layers"], "kind", "n", key, form, unit)
            paper = "chain_in_paper" if "chain" in key else "in_paper"
            cells = [[line[0], getattr(KINDS[line[0]], paper), *line[1:]] for line in table.cells]
            names = [f"n = {n}" for n in dict.fromkeys(row["n"] for row in rows["layers"])]
            found.append(Table(title, ["layer", "paper", *names], cells))
    title = f"path between positions {rows['paths'][0]['distance']} apart"
    paths: dict[str, tuple] = {"layer": ("kind",), "paper": (lambda row: KINDS[row["kind"]].path_in_paper,)}
    return [*found, listed(title, rows["paths"], paths | {key: (key,) for key in ("layers", "operations", "products")})]


def crossings(rows: Rows) -> dict[str, dict[str, float | None]]:
    """{what: {layer: the n from which on self-attention costs more than this layer}}."""
    return {
        key: {other: crossing(rows["layers"], other, key) for other in ("recurrent", "convolutional")}
        for key in ("without_projections", "multiply_adds", "milliseconds")
        if all(key in row for row in rows["layers"])
    }


def findings(rows: Rows) -> list[str]:
    """From which length on self-attention costs more."""
    return [
        f"By {key.replace('_', ' ')}, self-attention costs more than the {other} layer "
        + ("at none of these lengths." if n is None else f"from n = {n:.0f} on, between two of these lengths.")
        for key, others in crossings(rows).items()
        for other, n in others.items()
    ]


def draw(rows: Rows) -> Figure:
    """The multiply-adds, the chains and the times over n, and the layers that connect two positions."""
    figure, axes = pyplot().subplots(2, 2, figsize=(9.0, 6.4))
    panels = {
        "multiply_adds": ("Multiply-adds of a layer, with projections", "millions, forward", 1e-6),
        "operations_in_chain": ("Operations that must wait for each other", "longest chain, forward and backward", 1),
        "milliseconds": ("Time of forward and backward, one core", "ms for a batch of 2,048 tokens", 1),
    }
    layers, paths = rows["layers"], rows["paths"]
    lengths = list(dict.fromkeys(row["n"] for row in layers))
    for axis, (key, (title, label, unit)) in zip((axes[0, 0], axes[0, 1], axes[1, 0]), panels.items(), strict=True):
        draw_kinds(axis, layers, "kind", "n", key, unit)
        name_ticks(axis, lengths)
        axis.set(title=title, xlabel="length of the sequence, n", ylabel=label)
    for axis, n, name in ((axes[0, 0], 2 * WIDTH, "n = 2d"), (axes[1, 0], WIDTH, "n = d")):
        axis.axvline(n, color=GREY, linewidth=1, linestyle="--")
        axis.annotate(name, (0.97 * n, 0.02), xycoords=("data", "axes fraction"), color=GREY, ha="right")
    bars = axes[1, 1].barh([row["kind"] for row in paths], [row["layers"] for row in paths], color=COLORS[0])
    axes[1, 1].bar_label(bars, [str(row["layers"]) for row in paths], padding=3)
    axes[1, 1].invert_yaxis()
    axes[1, 1].margins(x=0.12)
    title = f"Layers until two tokens {paths[0]['distance']} apart are connected"
    axes[1, 1].set(title=title, xlabel="layers in the stack", ylabel="layer")
    legend_below(figure, axes[0, 0])
    return figure
