"""How fast is greedy decoding with a KV cache, against PyTorch eager and as the text grows?

A GPT decodes 64 tokens after a first one, here and in PyTorch eager with the same weights, in turns. Then every token
of a long text is timed, with a KV cache and without.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from experiments.measuring.steps import SIZES, torch_is_installed
from experiments.measuring.timing import medians, seconds_of
from experiments.report import Figure, Options, Rows, Table, legend_below, listed
from minitransformer import GPT, gpt_config
from minitransformer.decoding import decoding_state, generate_from
from minitransformer.plotting import BLUE, ORANGE, counted, mark_powers, moving_average, plot_line, pyplot
from minitransformer.system.process import blas_threads
from minitransformer.system.progress import tqdm

PER_ROW = 10.0
SECONDS = {True: 60, False: 120}
THREADS = None
NAMES = ("tiny", "small")  # of SIZES
BATCHES = (1, 32)
COUNT = 64  # tokens decoded in one call
LONG = 1024  # tokens of the text whose cost per token is drawn
RECOMPUTED = (16, 32, 64, 128, 256, 512, 1024)  # lengths at which decoding without a KV cache is measured


def rows(options: Options) -> Rows:
    """Tokens per second of both models, and the seconds of each token of a long text."""
    speeds = []
    for name, batch in tqdm([(name, batch) for name in NAMES for batch in BATCHES], leave=False, unit="size"):
        calls = {"numpy": numpy_decoding(name, batch)}
        if torch_is_installed():
            calls["pytorch"] = pytorch_decoding(name, batch, blas_threads())
        rates = {key: batch * COUNT / seconds for key, seconds in medians(calls, options.seconds).items()}
        ratio = rates["numpy"] / rates["pytorch"] if "pytorch" in rates else None
        speeds.append({"size": name, "batch": batch, **rates, "ratio": ratio})
    return {"speeds": speeds, **cost_per_token(repeats=1 if options.quick else 5)}


def tables(rows: Rows) -> list[Table]:
    """Tokens per second."""
    rates = {"ours": ("numpy", ",.0f"), "PyTorch": ("pytorch", ",.0f"), "ratio": ("ratio", ".2f")}
    return [listed("tokens per second", rows["speeds"], {"size": ("size",), "batch": ("batch",), **rates})]


def findings(rows: Rows) -> list[str]:
    """What a KV cache is worth for the longest text."""
    if not rows.get("tokens"):
        return []
    last, without = (rows[key][-1] for key in ("tokens", "recomputed"))
    ratio = without["seconds"] / last["seconds"]
    return [f"Without a KV cache, token {last['length']:,} takes {ratio:.0f} times as long as with one."]


def draw(rows: Rows) -> Figure:
    """The time of each new token, with a KV cache and without one."""
    figure, axis = pyplot().subplots()
    seconds = np.array([row["seconds"] for row in rows["tokens"]])
    window = min(16, len(seconds))
    label = f"with a KV cache, mean of the last {counted(window, 'token')}"
    smooth = moving_average(1e3 * seconds, window)
    plot_line(axis, np.arange(window, len(seconds) + 1), smooth, color=BLUE, label=label)
    lengths, milliseconds = zip(*((row["length"], 1e3 * row["seconds"]) for row in rows["recomputed"]), strict=True)
    axis.plot(lengths, milliseconds, "o-", color=ORANGE, label="recomputing the whole text")
    title = f"Cost of one more token, small model, batch 1, up to {len(seconds)} tokens"
    axis.set(xlabel="tokens read so far", ylabel="time for one more token (ms)", title=title, yscale="log")
    axis.locator_params(axis="x", integer=True)
    mark_powers(axis)
    legend_below(figure, axis, ncols=2)
    return figure


def decoder_only(name: str, max_len: int) -> GPT:
    """A GPT in the sizes of SIZES[name], without dropout."""
    size = SIZES[name]
    sizes = {key: getattr(size, key) for key in ("d_model", "num_heads", "d_ff", "num_layers")}
    return GPT(gpt_config(size.vocab_size, **sizes, dropout=0.0, max_len=max_len))


def numpy_decoding(name: str, batch: int) -> Callable[[], np.ndarray]:
    """Decode COUNT tokens of `batch` texts -> a function without arguments that returns the ids (B, COUNT)."""
    model, first = decoder_only(name, COUNT), np.ones((batch, 1), dtype=np.int64)
    return lambda: generate_from(decoding_state(model, first[:, :0], COUNT), first, COUNT, eos=None).ids


def pytorch_decoding(name: str, batch: int, threads: int) -> Callable[[], np.ndarray]:
    """The same model with the same weights in PyTorch eager -> a function that returns the ids (B, COUNT)."""
    import torch

    from experiments.measuring.pytorch_gpt import PyTorchGPT, load_ours

    torch.set_num_threads(threads)
    ours = decoder_only(name, COUNT)
    model = PyTorchGPT(ours.config, batch, COUNT).eval()
    load_ours(model, ours)
    first = torch.ones((batch, 1), dtype=torch.int64)
    return lambda: model.decode(first, COUNT).numpy()


def cost_per_token(repeats: int) -> Rows:
    """The seconds of each new token, the median of `repeats` texts, with a KV cache and without.

    Without a cache the whole text is recomputed, which is measured at the lengths of RECOMPUTED only.
    """
    model, ids = decoder_only("small", LONG), np.ones((1, 1), dtype=np.int64)
    seconds = np.empty((repeats, LONG))
    for row in seconds:
        extend = partial(decoding_state(model, ids[:, :0], LONG).extend, ids)
        row[:] = [seconds_of(extend) for _ in range(LONG)]
    found: Rows = {"recomputed": []}
    for length in RECOMPUTED:
        read = partial(model, np.ones((1, length), dtype=np.int64))
        median = float(np.median([seconds_of(read) for _ in range(repeats)]))
        found["recomputed"].append({"length": length, "seconds": median})
    medians = np.median(seconds, axis=0).tolist()
    return {"tokens": [{"length": i, "seconds": each} for i, each in enumerate(medians, start=1)], **found}
