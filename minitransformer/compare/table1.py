"""The paper's table 1, measured: five kinds of layers, counted while they run, and timed.

The paper compares complexity per layer, the number of sequential operations, and the longest path between any two
positions. Here the first is the number of multiply-adds, the second the longest chain of operations that must wait for
each other, and the third the number of layers that connect the first position with the last.
"""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.bench.timing import interleave, median
from minitransformer.compare.figures import plot_table1
from minitransformer.compare.tracing import Trace
from minitransformer.core import Layer
from minitransformer.functional import causal_mask
from minitransformer.functional.attention import Pattern
from minitransformer.layers import LSTM, Conv1d, SelfAttention
from minitransformer.layers.attention_kinds import TiledAttention
from minitransformer.system.process import limit_threads
from minitransformer.system.progress import tqdm

NAME = "table1"
DESCRIPTION = "the paper's table 1: multiply-adds, sequential operations, path length and time of a layer"
SECONDS = {True: 20, False: 90}
WIDTH, HEADS, KERNEL, WINDOW = 128, 8, 3, 32  # d, h, k and r
TOKENS = 2048  # in a batch that is timed: TOKENS / n sequences
LENGTHS = {True: (16, 64, 256), False: (16, 32, 64, 128, 256, 512, 1024)}  # n
DISTANCE, NARROW = 128, 16  # how far apart are the positions of the longest path, and d for finding it
SECONDS_PER_LENGTH = {True: 4.0, False: 8.0}


class Kind(NamedTuple):
    """A kind of layer in the table."""

    in_paper: str  # its complexity per layer
    make: Callable[[int, int, np.random.Generator], Layer]  # (d, how many layers are below it, rng) -> layer
    outside: tuple[str, ...] = ()  # the weights of projections, which the paper leaves out


def attention(d: int, below: int, rng: np.random.Generator) -> SelfAttention:
    """Self-attention; `forward` gives it a causal mask."""
    return SelfAttention(d, HEADS, rng=rng)


def restricted(d: int, below: int, rng: np.random.Generator) -> SelfAttention:
    """Self-attention to the WINDOW tokens up to one's own."""
    return SelfAttention(d, HEADS, rng=rng, kind=TiledAttention(Pattern(causal=True, window=WINDOW)))


def recurrent(d: int, below: int, rng: np.random.Generator) -> LSTM:
    """An LSTM."""
    return LSTM(d, d, rng=rng)


def convolution(d: int, below: int, rng: np.random.Generator) -> Conv1d:
    """A causal convolution without gaps."""
    return Conv1d(d, d, KERNEL, rng=rng)


def dilated(d: int, below: int, rng: np.random.Generator) -> Conv1d:
    """A causal convolution whose reach grows KERNEL-fold from layer to layer."""
    return Conv1d(d, d, KERNEL, dilation=KERNEL**below, rng=rng)


PROJECTIONS = ("qkv.W", "output.W")
KINDS = {
    "self-attention": Kind("n^2 d", attention, PROJECTIONS),
    "recurrent": Kind("n d^2", recurrent, ("directions.0.W",)),
    "convolutional": Kind("k n d^2", convolution),
    "dilated": Kind("k n d^2", dilated),
    "restricted": Kind("r n d", restricted, PROJECTIONS),
}


def run(quick: bool, seed: int, directory: Path) -> dict[str, Any]:
    """Count and time all kinds, print three tables, and draw table1.png into `directory` -> the numbers."""
    lengths = LENGTHS[quick]
    rows = [count(name, n, seed) for name in KINDS if name != "dilated" for n in lengths]
    paths = [path(name, DISTANCE, seed) for name in KINDS]
    for row in tqdm(time_all(lengths, seed, SECONDS_PER_LENGTH[quick]), total=len(lengths), unit="length"):
        for one in rows:
            if one["n"] == row["n"]:
                one["milliseconds"] = row[one["kind"]]
    crossings = {
        key: {other: crossing(rows, other, key) for other in ("recurrent", "convolutional")}
        for key in ("without_projections", "multiply_adds", "milliseconds")
    }
    report(rows, paths, crossings)
    figure = directory / "table1.png"
    plot_table1(rows, paths, WIDTH, figure)
    print(f"\nsaved {figure}")
    return {"rows": rows, "paths": paths, "crossings": crossings}


def forward(layer: Layer, x: np.ndarray) -> tuple[Any, Any]:
    """The output of a layer, causal where it has a choice -> (y (B, n, d), cache)."""
    if isinstance(layer, SelfAttention) and layer.kind.needs_causal_mask:
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


def time_all(lengths: tuple[int, ...], seed: int, seconds: float) -> Any:
    """Yield for each n the median time of forward and backward on one core -> {"n", kind: milliseconds}."""
    for n in lengths:
        calls = {}
        for name, kind in KINDS.items():
            if name != "dilated":
                rng = np.random.default_rng(seed)
                calls[name] = timed_call(kind.make(WIDTH, 0, rng), n, rng)
        with limit_threads(1):
            times = interleave(calls, seconds)
        yield {"n": n, **{name: 1e3 * median(measured) for name, measured in times.items()}}


def timed_call(layer: Layer, n: int, rng: np.random.Generator) -> Callable[[], Any]:
    """A function that runs forward and backward over a batch of TOKENS tokens."""
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


def report(rows: list[dict[str, Any]], paths: list[dict[str, Any]], crossings: dict[str, dict[str, Any]]) -> None:
    """Print the tables."""
    columns = {
        "multiply-adds (millions)": ("multiply_adds", 1e-6, ".2f"),
        "without projections (millions)": ("without_projections", 1e-6, ".2f"),
        "chain of operations": ("operations_in_chain", 1, ".0f"),
        "chain of products": ("products_in_chain", 1, ".0f"),
        f"time of {TOKENS} tokens (ms)": ("milliseconds", 1, ".1f"),
    }
    lengths = list(dict.fromkeys(row["n"] for row in rows))
    print(f"one layer, d = {WIDTH}, h = {HEADS} heads, k = {KERNEL}, r = {WINDOW}; the rest: forward and backward")
    for title, (key, unit, form) in columns.items():
        forward_alone = " of a forward pass" if "millions" in title else ""
        print(f"\n{title + forward_alone:<48}" + "".join(f"{'n = ' + str(n):>10}" for n in lengths))
        for name in dict.fromkeys(row["kind"] for row in rows):
            numbers = [format(row[key] * unit, form) for row in rows if row["kind"] == name]
            print(f"  {name:<15} {KINDS[name].in_paper:<30}" + "".join(f"{number:>10}" for number in numbers))
    print(f"\n{f'path between positions {DISTANCE} apart':<48}{'layers':>10}{'operations':>12}{'products':>10}")
    for row in paths:
        print(f"  {row['kind']:<46}{row['layers']:>10}{row['operations']:>12}{row['products']:>10}")
    print("\nself-attention costs more than the other layer from this n on")
    for key, others in crossings.items():
        found = ", ".join(f"{name}: {'nowhere here' if n is None else format(n, '.0f')}" for name, n in others.items())
        print(f"  {key.replace('_', ' '):<22}{found}")
