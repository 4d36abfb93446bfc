"""`minitransformer bench --decoding`: greedy decoding with a KV cache, against PyTorch eager and as the text grows."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.bench.figures import plot_decoding
from minitransformer.bench.sizes import SIZES
from minitransformer.bench.steps import torch_is_installed
from minitransformer.bench.timing import interleave, median
from minitransformer.decoding import generate
from minitransformer.decoding.incremental import GPTState
from minitransformer.models import GPT, gpt_config
from minitransformer.system.process import blas_threads, keep_freed_memory
from minitransformer.system.progress import tqdm

NAMES = ("tiny", "small")  # of SIZES
BATCHES = (1, 32)
COUNT = 64  # tokens decoded in one call
LONG = 1024  # tokens of the text whose cost per token is drawn
RECOMPUTED = (16, 32, 64, 128, 256, 512, 1024)  # lengths at which decoding without a KV cache is measured


def run(seconds: float, folder: Path) -> dict[str, Any]:
    """Time both models for `seconds` each row, then every token of a long text -> {"threads", "rows", "recomputed"}.

    Prints a table in tokens per second, and draws the long text's cost as bench_decoding.png into `folder`.
    """
    keep_freed_memory()
    with_torch, threads = torch_is_installed(), blas_threads()
    print(f"GPT, greedy, {COUNT} tokens after the first one, float32, threads: {threads}")
    print("tokens per second:\n")
    print(f"{'size':<8} {'batch':>5} {'ours':>10} {'PyTorch':>10} {'ratio':>6}", flush=True)
    rows = []
    for name, batch in tqdm([(name, batch) for name in NAMES for batch in BATCHES], leave=False, unit="size"):
        calls = {"numpy": numpy_decoding(name, batch)}
        if with_torch:
            calls["pytorch"] = pytorch_decoding(name, batch, threads)
        rates = {key: batch * COUNT / median(times) for key, times in interleave(calls, seconds).items()}
        rows.append({"size": name, "batch": batch, "numpy": rates["numpy"], "pytorch": rates.get("pytorch")})
        theirs, ratio = ("", "")
        if with_torch:
            theirs, ratio = f"{rates['pytorch']:,.0f}", f"{rates['numpy'] / rates['pytorch']:.2f}"
        tqdm.write(f"{name:<8} {batch:>5} {rates['numpy']:>10,.0f} {theirs:>10} {ratio:>6}")
    times, recomputed = cost_per_token("small", 1)
    figure = folder / "bench_decoding.png"
    plot_decoding(times, recomputed, figure, f"Cost of one more token, small model, batch 1, up to {LONG} tokens")
    print(f"\nsaved {figure}")
    return {"threads": threads, "rows": rows, "recomputed": recomputed}


def decoder_only(name: str, max_len: int) -> GPT:
    """A GPT in the sizes of SIZES[name], without dropout."""
    size = SIZES[name]
    sizes = {key: getattr(size, key) for key in ("d_model", "num_heads", "d_ff", "num_layers")}
    return GPT(gpt_config(size.vocab_size, **sizes, dropout=0.0, max_len=max_len))


def numpy_decoding(name: str, batch: int) -> Callable[[], np.ndarray]:
    """Decode COUNT tokens of `batch` texts -> a function without arguments that returns the ids (B, COUNT)."""
    model, first = decoder_only(name, COUNT), np.ones((batch, 1), dtype=np.int64)
    return lambda: generate(GPTState(model, batch, COUNT), first, COUNT, eos=None).ids


def pytorch_decoding(name: str, batch: int, threads: int) -> Callable[[], np.ndarray]:
    """The same model with the same weights in PyTorch eager -> a function that returns the ids (B, COUNT)."""
    import torch

    from minitransformer.bench.pytorch_gpt import PyTorchGPT, load_ours

    torch.set_num_threads(threads)
    ours = decoder_only(name, COUNT)
    model = PyTorchGPT(ours.config, batch, COUNT).eval()
    load_ours(model, ours)
    first = torch.ones((batch, 1), dtype=torch.int64)
    return lambda: model.decode(first, COUNT).numpy()


def cost_per_token(name: str, batch: int, repeats: int = 5) -> tuple[np.ndarray, dict[int, float]]:
    """Seconds for each new token, the median of `repeats` texts -> with a KV cache (LONG,), without {length: seconds}.

    Without a cache the whole text is recomputed, which is measured at the lengths of RECOMPUTED only.
    """
    model, ids = decoder_only(name, LONG), np.ones((batch, 1), dtype=np.int64)
    seconds = np.empty((repeats, LONG))
    for row in seconds:
        state = GPTState(model, batch, LONG)
        for i in range(LONG):
            before = time.perf_counter()
            state.extend(ids)
            row[i] = time.perf_counter() - before
    recomputed = {}
    for length in RECOMPUTED:
        text, times = np.ones((batch, length), dtype=np.int64), []
        for _ in range(repeats):
            before = time.perf_counter()
            model(text)
            times.append(time.perf_counter() - before)
        recomputed[length] = float(np.median(times))
    return np.median(seconds, axis=0), recomputed
