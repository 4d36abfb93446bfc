"""`minitransformer bench --attention`: time and memory of the kinds of attention as the text grows."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.bench.figures import plot_attention
from minitransformer.bench.steps import torch_is_installed
from minitransformer.bench.timing import interleave, median
from minitransformer.config import ATTENTION, TransformerConfig
from minitransformer.functional import causal_mask
from minitransformer.layers.attention_kinds import make_attention
from minitransformer.system.process import blas_threads, keep_freed_memory
from minitransformer.system.progress import tqdm

HEADS, WIDTH = 8, 64  # of queries, keys and values; batch 1
WINDOW, STRIDE = 256, 64
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
PYTORCH = {"PyTorch flash": "FLASH_ATTENTION", "PyTorch math": "MATH"}  # the names in torch.nn.attention.SDPBackend
KINDS = (*ATTENTION, *PYTORCH)
LONGEST = {"full": 2048, "PyTorch math": 2048}  # both keep T^2 weights: 2 GB and more for the next length


def run(seconds: float, folder: Path) -> dict[str, Any]:
    """Time and measure every kind at each of LENGTHS, `seconds` each -> {"threads", "rows"}.

    Prints two tables, and draws bench_attention.png into `folder`. Without PyTorch, its columns are left out.
    """
    keep_freed_memory()
    threads = blas_threads()
    kinds = [kind for kind in KINDS if kind in ATTENTION or torch_is_installed()]
    print(f"causal attention, forward and backward, {HEADS} heads of {WIDTH} features, float32, threads: {threads}")
    print(f"window {WINDOW}, stride {STRIDE}; {' and '.join(LONGEST)} keep all weights, and end at {LONGEST['full']}\n")
    print(f"{'ms':>6}" + "".join(f"{kind:>14}" for kind in kinds), flush=True)
    rows: list[dict[str, Any]] = []
    found: dict[str, dict[str, Any]]
    with tqdm(total=2 * len(LENGTHS), leave=False, unit="length") as bar:
        for length in LENGTHS:
            here = [kind for kind in kinds if length <= LONGEST.get(kind, length)]
            times = interleave({kind: make_call(kind, length, threads) for kind in here}, seconds)
            found = {kind: {"kind": kind, "length": length, "seconds": median(times[kind])} for kind in here}
            rows += found.values()
            tqdm.write(table_row(length, kinds, {kind: 1e3 * row["seconds"] for kind, row in found.items()}))
            bar.update()
        tqdm.write("\npeak memory (MB) of a process of its own, above inputs and imports")
        for length in LENGTHS:
            found = {row["kind"]: row for row in rows if row["length"] == length}
            for kind, row in found.items():
                row["bytes"] = peak_memory(kind, length, threads)
            tqdm.write(table_row(length, kinds, {kind: 1e-6 * row["bytes"] for kind, row in found.items()}))
            bar.update()
    figure = folder / "bench_attention.png"
    plot_attention(rows, figure, threads)
    print(f"\nsaved {figure}")
    return {"threads": threads, "rows": rows}


def table_row(length: int, kinds: list[str], values: dict[str, float]) -> str:
    """One line of a table; kinds without a value have an empty place."""
    return f"{length:>6}" + "".join(f"{values[kind]:>14,.1f}" if kind in values else f"{'':>14}" for kind in kinds)


def make_call(kind: str, length: int, threads: int) -> Callable[[], Any]:
    """Forward and backward of one call -> a function without arguments."""
    return pytorch_call(kind, length, threads) if kind in PYTORCH else numpy_call(kind, length)


def make_inputs(length: int) -> list[np.ndarray]:
    """q, k, v and dy, all (1, HEADS, T, WIDTH) in float32."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, length, WIDTH), dtype=np.float32) for _ in range(4)]


def numpy_call(name: str, length: int) -> Callable[[], Any]:
    """One of the kinds that a model can have -> a function that returns the gradients."""
    window, stride = (WINDOW if name in ("windowed", "strided") else None), (STRIDE if name == "strided" else None)
    config = TransformerConfig(1, attention=name, window=window, stride=stride)
    kind = make_attention(config, bidirectional=False)
    q, k, v, dy = make_inputs(length)
    allowed = causal_mask(length) if kind.needs_causal_mask else None

    def call() -> Any:
        _, cache = kind.forward(q, k, v, allowed)
        return kind.backward(dy, cache)[:3]

    return call


def pytorch_call(name: str, length: int, threads: int) -> Callable[[], Any]:
    """PyTorch's scaled_dot_product_attention, by one of its paths -> a function that returns the gradients."""
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.set_num_threads(threads)
    backend = getattr(SDPBackend, PYTORCH[name])
    q, k, v, dy = (torch.from_numpy(x) for x in make_inputs(length))
    for x in (q, k, v):
        x.requires_grad_()

    def call() -> Any:
        with sdpa_kernel(backend):
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.autograd.grad(y, (q, k, v), dy)

    return call


PROBE = """
import sys
from minitransformer.bench.attention import make_call
from minitransformer.bench.timing import resident_peak
kind, length, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
make_call(kind, 16, threads)()
call = make_call(kind, length, threads)
before = resident_peak()
call()
print(resident_peak() - before)
"""


def peak_memory(kind: str, length: int, threads: int) -> int:
    """Bytes that one forward and backward needs at its peak: outputs, gradients, and all that lies between.

    Measured as the memory of a process of its own, so that it is the same for NumPy and PyTorch, beyond what the
    process holds after a short first call and once the inputs are made.
    """
    command = [sys.executable, "-c", PROBE, kind, str(length), str(threads)]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(result.stdout.split()[-1])
