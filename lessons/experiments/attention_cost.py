"""What do the kinds of attention cost in time and memory as the text grows?

One causal call, forward and backward, with 8 heads of 64 features in float32. Full attention and PyTorch's math path
keep all weights, and end where these take gigabytes. Memory is that of a process of its own, above inputs and imports.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from experiments.measuring.steps import torch_is_installed
from experiments.measuring.timing import medians, peak_of_process
from experiments.report import Figure, Options, Rows, Table, draw_kinds, legend_below, name_ticks, pivot
from minitransformer.config import ATTENTION, Strided, TransformerConfig, Windowed
from minitransformer.functional import causal_mask
from minitransformer.layers.since_2017.attention_kinds import IncrementalAttention
from minitransformer.models.since_2017.build import attention_kind
from minitransformer.plotting import counted, pyplot
from minitransformer.system.process import blas_threads
from minitransformer.system.progress import tqdm

PER_ROW = 10.0
SECONDS = {True: 120, False: 300}
THREADS = None
HEADS, WIDTH = 8, 64  # of queries, keys and values; batch 1
WINDOW, STRIDE = 256, 64
LENGTHS = (256, 512, 1024, 2048, 4096, 8192)
PYTORCH = {"PyTorch flash": "FLASH_ATTENTION", "PyTorch math": "MATH"}  # the names in torch.nn.attention.SDPBackend
KINDS = (*ATTENTION, *PYTORCH)
LONGEST = {"full": 2048, "PyTorch math": 2048}  # both keep T^2 weights: 2 GB and more for the next length


def rows(options: Options) -> Rows:
    """Seconds and bytes of every kind at each length; without PyTorch, its kinds are left out."""
    threads, calls = blas_threads(), []
    kinds = [kind for kind in KINDS if kind in ATTENTION or torch_is_installed()]
    for length in tqdm(LENGTHS[: 3 if options.quick else None], leave=False, unit="length"):
        here = [kind for kind in kinds if length <= LONGEST.get(kind, length)]
        times = medians({kind: make_call(kind, length, threads) for kind in here}, options.seconds)
        for kind, seconds in times.items():
            memory = peak_memory(kind, length, threads)
            calls.append({"kind": kind, "length": length, "seconds": seconds, "bytes": memory, "threads": threads})
    return {"calls": calls}


def tables(rows: Rows) -> list[Table]:
    """Milliseconds, and megabytes."""
    return [
        pivot("forward and backward (ms)", rows["calls"], "length", "kind", "seconds", ",.1f", 1e3),
        pivot("peak memory (MB)", rows["calls"], "length", "kind", "bytes", ",.1f", 1e-6),
    ]


def findings(rows: Rows) -> list[str]:
    """What tiles save at the longest text that full attention reaches."""
    found = {(row["kind"], row["length"]): row for row in rows["calls"]}
    length = max(length for kind, length in found if kind == "full")
    full, tiled = found["full", length], found["tiled", length]
    return [
        f"At {length:,} tokens tiled attention needs {full['bytes'] / tiled['bytes']:.1f} times less memory than full "
        f"attention, and {tiled['seconds'] / full['seconds']:.2f} of its time."
    ]


def draw(rows: Rows) -> Figure:
    """Time and peak memory of each kind over the length of the text, all axes logarithmic."""
    figure, axes = pyplot().subplots(1, 2, figsize=(8.6, 4.2))
    time_label = f"forward and backward, {counted(rows['calls'][0]['threads'], 'thread')} (ms)"
    panels = (("seconds", 1e3, time_label), ("bytes", 1e-6, "peak memory (MB)"))
    for axis, (key, unit, label) in zip(axes, panels, strict=True):
        draw_kinds(axis, rows["calls"], "kind", "length", key, unit)
        name_ticks(axis, sorted({row["length"] for row in rows["calls"]}))
        axis.set(xlabel="length of the text (tokens)", ylabel=label)
        for line in axis.lines:
            line.set(linestyle="--" if "PyTorch" in line.get_label() else "-")
    figure.suptitle("Cost of causal attention as the text grows")
    legend_below(figure, axes[0])
    return figure


def make_call(kind: str, length: int, threads: int) -> Callable[[], Any]:
    """Forward and backward of one call -> a function without arguments."""
    return pytorch_call(kind, length, threads) if kind in PYTORCH else numpy_call(kind, length)


def make_inputs(length: int) -> list[np.ndarray]:
    """q, k, v and dy, all (1, HEADS, T, WIDTH) in float32."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal((1, HEADS, length, WIDTH), dtype=np.float32) for _ in range(4)]


def numpy_call(name: str, length: int) -> Callable[[], Any]:
    """One of the kinds that a model can have -> a function that returns the gradients."""
    attention: Any = {"windowed": Windowed(WINDOW), "strided": Strided(WINDOW, STRIDE)}.get(name, name)
    is_full = attention == "full"  # a GPT's full attention to long texts is in tiles
    kind = IncrementalAttention() if is_full else attention_kind(TransformerConfig(1, attention=attention), False)
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


def peak_memory(kind: str, length: int, threads: int) -> int:
    """Bytes that one forward and backward needs at its peak: outputs, gradients, and all that lies between.

    Counted after a short first call and once the inputs are made.
    """
    prepare = (
        "from experiments.attention_cost import make_call\n"
        f"make_call({kind!r}, 16, {threads})()\ncall = make_call({kind!r}, {length}, {threads})"
    )
    return peak_of_process(prepare, "call()")
