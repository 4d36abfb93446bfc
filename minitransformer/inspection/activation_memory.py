"""Everything that a training step keeps between forward and backward, read off the caches themselves."""

import dataclasses
import itertools
import math
import re
from typing import NamedTuple

import numpy as np

from minitransformer.backend import use_backend
from minitransformer.functional import cross_entropy
from minitransformer.models.transformer import Transformer

# lengths of a small model to try, all prime, so that a length, or a product of two, names its letters
PRIMES = {"B": 2, "S": 3, "T": 5, "H": 7, "D": 22, "F": 13, "V": 17, "L": 19}


class Kept(NamedTuple):
    """An array that some cache holds."""

    name: str  # where, in the names of caches
    letters: tuple  # its shape in letters, such as ("B", "T", "3C")
    shape: tuple  # its shape in numbers
    dtype: str
    bytes: int  # of one
    count: int  # how many layers keep one like it


def kept_activations(config, batch, source_length, target_length, kind=Transformer):
    """The arrays that one float32 training step of the model `config` keeps, in the order of forward -> list of Kept.

    `kind` is the model's class; GPT and BERT read the target alone.
    One step of a model with the same layers and switches but small, distinct sizes is run, dropout included, and its
    caches are walked; the lengths in their shapes are then replaced by the real ones. Parameters are not counted, nor
    is an array twice that two caches share. The layers of a stack are one row, `layers.*`. That step is always run with
    NumPy, which can tell whose memory an array shows.
    """
    real = {**_real_sizes(config), "B": batch, "S": source_length, "T": target_length}
    real = _with_products(real)
    letters_of = {length: letters for letters, length in _with_products(PRIMES).items()}
    rows = {}
    with use_backend("numpy"):
        step = _small_step(config, kind)
    for name, array in _distinct_arrays(step):
        letters = tuple("1" if length == 1 else letters_of[length] for length in array.shape)
        shape = tuple(1 if letter == "1" else real[letter] for letter in letters)
        itemsize = 4 if array.dtype.kind == "f" else array.dtype.itemsize
        dtype = "float32" if array.dtype.kind == "f" else str(array.dtype)
        row = Kept(re.sub(r"layers\.\d+", "layers.*", name), letters, shape, dtype, itemsize * math.prod(shape), 1)
        count = rows[row.name].count if row.name in rows else 0
        rows[row.name] = row._replace(count=count + 1)
    return list(rows.values())


def count_parameters(config, kind=Transformer):
    """How many numbers a model of `config` learns, without making it.

    The lengths in the shapes of a small one's parameters are replaced by the real ones.
    """
    real, small = (_with_products({**lengths, "B": 0, "S": 0, "T": 0}) for lengths in (_real_sizes(config), PRIMES))
    real_of = {length: real[letters] for letters, length in small.items() if length}
    with use_backend("numpy"):
        parameters = _small_model(config, kind).parameters()
    return sum(math.prod(real_of.get(length, length) for length in parameter.data.shape) for parameter in parameters)


def _real_sizes(config):
    sizes = {"H": config.num_heads, "D": config.d_model // config.num_heads, "F": config.d_ff}
    return {**sizes, "V": config.vocab_size, "L": config.max_len}


def _with_products(lengths):
    """The lengths, and those made of them: C = H D, 2C, 3C, D/2, and the flattened B T and B S."""
    C = lengths["H"] * lengths["D"]
    made = {
        "C": C,
        "2C": 2 * C,
        "3C": 3 * C,
        "2F": 2 * lengths["F"],
        "D/2": lengths["D"] // 2,
        "BT": lengths["B"] * lengths["T"],
        "BS": lengths["B"] * lengths["S"],
    }
    return {**made, **lengths}


def _small_model(config, kind):
    P = PRIMES
    sizes = {"vocab_size": P["V"], "d_model": P["H"] * P["D"], "num_heads": P["H"], "d_ff": P["F"], "max_len": P["L"]}
    return kind(dataclasses.replace(config, **sizes), seed=None)


def _small_step(config, kind):
    """The parameters of a small model of the same make, and the caches of a forward pass with its loss."""
    model, B = _small_model(config, kind), PRIMES["B"]
    source, target = np.ones((B, PRIMES["S"]), int), np.ones((B, PRIMES["T"]), int)
    inputs = (source, target) if kind is Transformer else (target,)
    logits, cache = model.forward(*inputs, rng=np.random.default_rng(0))
    _, cache_loss = cross_entropy(logits, target, config.label_smoothing, overwrite=True)
    return model.parameters(), {"model": cache, "loss": cache_loss}


def _distinct_arrays(step):
    """(name, array) for each block of memory in the caches that is no parameter, once."""
    parameters, caches = step
    seen = {_memory(parameter.data) for parameter in parameters}
    for name, array in itertools.chain.from_iterable(_walk(cache, key) for key, cache in caches.items()):
        if _memory(array) not in seen:
            seen.add(_memory(array))
            yield name, _owner(array)


def _owner(array):
    """The array whose memory a view shows: what is kept alive is the whole of it."""
    while array.base is not None and isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _memory(array):
    return _owner(array).__array_interface__["data"][0]


def _walk(cache, name):
    """(name, array) for each array in a cache, which is an array, a tuple or list of caches, or something small."""
    if isinstance(cache, np.ndarray):
        yield name, cache
    elif isinstance(cache, (tuple, list)):
        fields = getattr(cache, "_fields", range(len(cache)))
        for field, part in zip(fields, cache, strict=True):
            yield from _walk(part, f"{name}.{field}")
