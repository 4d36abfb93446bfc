"""`minitransformer bench --recurrent`: a training step of LSTM and GRU layers, ours and PyTorch's, on one thread.

Forward and backward of two layers at d = 128, with 64 sequences of 32 tokens. The third column is the least that any
step can take with NumPy: its matrix products alone, with the same shapes, in the same number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from minitransformer.bench.steps import torch_is_installed
from minitransformer.bench.timing import interleave, median
from minitransformer.layers import GRU, LSTM
from minitransformer.system.process import limit_threads

WIDTH, LAYERS, BATCH, LENGTH = 128, 2, 64, 32
KINDS: dict[str, Any] = {"LSTM": LSTM, "GRU": GRU}
BLOCKS = {"LSTM": 4, "GRU": 3}


def run(seconds: float) -> dict[str, Any]:
    """Time LSTM and GRU for `seconds` each and print a table -> {"rows": [{"kind": ..., "ours_ms": ...}, ...]}."""
    print(f"{LAYERS} layers, d = {WIDTH}, {BATCH} sequences of {LENGTH} tokens, forward and backward, one thread\n")
    print(f"{'':<6}{'ours, ms':>12}{'PyTorch, ms':>14}{'ratio':>8}{'products alone, ms':>22}")
    rows = []
    with limit_threads(1):
        for kind in KINDS:
            calls = {"ours": our_step(kind), "products": products(kind)}
            if torch_is_installed():
                calls["pytorch"] = pytorch_step(kind)
            times = {name: 1e3 * median(found) for name, found in interleave(calls, seconds).items()}
            row = {"kind": kind, **{f"{name}_ms": value for name, value in times.items()}}
            theirs, ratio = "-", "-"
            if "pytorch" in times:
                row["ratio"] = times["pytorch"] / times["ours"]
                theirs, ratio = f"{times['pytorch']:.1f}", f"{row['ratio']:.2f}"
            print(f"{kind:<6}{times['ours']:>12.1f}{theirs:>14}{ratio:>8}{times['products']:>22.1f}")
            rows.append(row)
    print("\nratio: PyTorch's time divided by ours")
    return {"rows": rows}


def our_step(kind: str) -> Callable[[], Any]:
    """A function that takes one step of our layers."""
    layer, rng = KINDS[kind](WIDTH, WIDTH, num_layers=LAYERS, rng=np.random.default_rng(0)), np.random.default_rng(1)
    x, dy = (rng.standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32) for _ in range(2))

    def step() -> None:
        layer.zero_grad()
        _, cache = layer.forward(x)
        layer.backward(dy, cache)

    return step


def pytorch_step(kind: str) -> Callable[[], Any]:
    """A function that takes one step of PyTorch's layers."""
    import torch

    torch.set_num_threads(1)
    layer = getattr(torch.nn, kind)(WIDTH, WIDTH, num_layers=LAYERS, batch_first=True)
    x, dy = torch.randn(BATCH, LENGTH, WIDTH, requires_grad=True), torch.randn(BATCH, LENGTH, WIDTH)

    def step() -> None:
        layer.zero_grad()
        x.grad = None
        layer(x)[0].backward(dy)

    return step


def products(kind: str) -> Callable[[], Any]:
    """A function that computes the matrix products of a step, and nothing else."""
    rng, width = np.random.default_rng(0), BLOCKS[kind] * WIDTH
    x, W, da = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((BATCH * LENGTH, WIDTH), (WIDTH, width), (BATCH * LENGTH, width))
    )
    h, d, transposed_W = x[:BATCH], da[:BATCH], np.ascontiguousarray(W.T)
    a, dh = np.empty_like(d), np.empty_like(h)

    def step() -> None:
        for _ in range(LAYERS):
            x @ W
            for _ in range(LENGTH):
                np.matmul(h, W, out=a)
                np.matmul(d, transposed_W, out=dh)
            for _ in range(2):  # the gradients of W and U
                x.T @ da
            da @ W.T

    return step
