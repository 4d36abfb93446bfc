"""How fast greedy decoding with a kv is: here, in PyTorch eager, and as the text grows."""

import time

import numpy as np

from minitransformer.bench.sizes import SIZES
from minitransformer.decoding import generate
from minitransformer.decoding.incremental import GPTState
from minitransformer.models import GPT, gpt_config

COUNT = 64  # tokens decoded in one call
BATCHES = (1, 32)
LONG = 1024  # tokens of the text whose cost per token is drawn
AGAIN = (16, 32, 64, 128, 256, 512, 1024)  # lengths at which reading all again is measured


def decoder_only(name, room=COUNT):
    """A GPT in the sizes of SIZES[name], without dropout."""
    size = SIZES[name]
    sizes = {key: getattr(size, key) for key in ("d_model", "num_heads", "d_ff", "num_layers")}
    return GPT(gpt_config(size.vocab_size, **sizes, dropout=0.0, max_len=room))


def numpy_decoding(name, batch):
    """Decode COUNT tokens of `batch` texts -> a function without arguments that returns the ids (B, COUNT)."""
    model, first = decoder_only(name), np.ones((batch, 1), dtype=np.int64)
    return lambda: generate(GPTState(model, batch, COUNT), first, COUNT, eos=None).ids


def pytorch_decoding(name, batch, threads):
    """The same model with the same weights in PyTorch eager -> a function that returns the ids (B, COUNT)."""
    import torch

    from minitransformer.bench.pytorch_gpt import PyTorchGPT, load_ours

    torch.set_num_threads(threads)
    ours = decoder_only(name)
    model = PyTorchGPT(ours.config, batch, COUNT).eval()
    load_ours(model, ours)
    first = torch.ones((batch, 1), dtype=torch.int64)
    return lambda: model.decode(first, COUNT).numpy()


def cost_per_token(name, batch, repeats=5):
    """Seconds of each of LONG tokens, the median of `repeats` texts, with the kv and by reading all again.

    Reading again is measured at a few lengths only -> (LONG,) seconds, and {length: seconds}.
    """
    model, ids = decoder_only(name, LONG), np.ones((batch, 1), dtype=np.int64)
    seconds = np.empty((repeats, LONG))
    for row in seconds:
        state = GPTState(model, batch, LONG)
        for i in range(LONG):
            before = time.perf_counter()
            state.extend(ids)
            row[i] = time.perf_counter() - before
    again = {}
    for length in AGAIN:
        text, times = np.ones((batch, length), dtype=np.int64), []
        for _ in range(repeats):
            before = time.perf_counter()
            model(text)
            times.append(time.perf_counter() - before)
        again[length] = float(np.median(times))
    return np.median(seconds, axis=0), again
