"""How far is a training step of LSTM and GRU layers from PyTorch's, and from its own matrix products?

Forward and backward of two layers at d = 128, with 64 sequences of 32 tokens, on one thread. The last column is the
least that any step can take with NumPy: its matrix products alone, with the same shapes, in the same number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.measuring.steps import multiply, products_of, torch_is_installed
from experiments.measuring.timing import medians
from experiments.report import Options, Rows, Table, cell
from minitransformer.core import Layer
from minitransformer.layers import GRU, LSTM
from minitransformer.system.process import limit_threads

PER_ROW = 10.0
SECONDS = {True: 10, False: 60}
WIDTH, LAYERS, BATCH, LENGTH = 128, 2, 64, 32
KINDS: dict[str, Any] = {"LSTM": LSTM, "GRU": GRU}


def rows(options: Options) -> Rows:
    """Milliseconds of a step of each kind; the ratio is PyTorch's time divided by ours."""
    steps = []
    with limit_threads(1):
        for kind in KINDS:
            layer, step = our_step(kind)
            calls = {"ours": step, "products": multiply(products_of(layer, step))}
            if torch_is_installed():
                calls["pytorch"] = pytorch_step(kind)
            times = {f"{name}_ms": 1e3 * time for name, time in medians(calls, options.seconds).items()}
            ratio = times["pytorch_ms"] / times["ours_ms"] if "pytorch_ms" in times else None
            steps.append({"kind": kind, **times, "ratio": ratio})
    return {"steps": steps}


def tables(rows: Rows) -> list[Table]:
    """One line for each kind."""
    forms = {"ours_ms": ".1f", "pytorch_ms": ".1f", "ratio": ".2f", "products_ms": ".1f"}
    cells = [[row["kind"], *(cell(row.get(key), form) for key, form in forms.items())] for row in rows["steps"]]
    return [Table("", ["layers", "ours (ms)", "PyTorch (ms)", "ratio", "matrix products alone (ms)"], cells)]


def findings(rows: Rows) -> list[str]:
    """The share of the products."""
    shares = [f"{row['products_ms'] / row['ours_ms']:.2f} of our {row['kind']} step" for row in rows["steps"]]
    return [f"Matrix products alone take {' and '.join(shares)}."]


def our_step(kind: str) -> tuple[Layer, Callable[[], Any]]:
    """Our layers, and a function that takes one step of them."""
    layer, rng = KINDS[kind](WIDTH, WIDTH, num_layers=LAYERS, rng=np.random.default_rng(0)), np.random.default_rng(1)
    x, dy = (rng.standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32) for _ in range(2))

    def step() -> None:
        layer.zero_grad()
        _, cache = layer.forward(x)
        layer.backward(dy, cache)

    return layer, step


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
