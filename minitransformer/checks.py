"""Refusing bad input early and in one plain sentence: which argument, what was given, what is allowed."""

import numpy as np

DTYPES = ("float32", "float64", "complex128")


def check_dtype(dtype):
    """`dtype` as a NumPy dtype, if it is one that the library computes in; else ValueError."""
    try:
        name = "None" if dtype is None else np.dtype(dtype).name  # NumPy takes None for float64
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {name}")
    return np.dtype(name)


def check_heads(d_model, num_heads):
    """ValueError unless `num_heads` divides `d_model` into equal parts."""
    if num_heads < 1 or d_model % num_heads:
        raise ValueError(
            f"d_model must be a multiple of num_heads, got d_model = {d_model} and num_heads = {num_heads}"
        )


def check_choice(name, value, allowed):
    """`value`, if it is among `allowed`; else ValueError with the list of what is."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, got {value!r}")
    return value


def check_rate(name, rate):
    """`rate`, if it is a probability below 1; else ValueError."""
    if not 0.0 <= rate < 1.0:
        raise ValueError(f"{name} must be at least 0 and less than 1, got {rate}")
    return rate


def check_width(layer_name, x, width, dtype):
    """TypeError or ValueError unless `x` (..., width) can enter a layer whose weights have `dtype`.

    A complex array may meet real weights and the reverse, as in a complex-step check; float32 and float64 may not
    be mixed, because the result would silently be float64.
    """
    if x.dtype is dtype and x.ndim > 1 and x.shape[-1] == width:
        return  # the usual case, and one of a few tests that count when tokens are decoded one by one
    if x.ndim < 2 or x.shape[-1] != width:
        raise ValueError(f"{layer_name} takes an array of shape (..., {width}), got {tuple(x.shape)}")
    if x.dtype.kind not in "fc" or (x.dtype.kind == dtype.kind and x.dtype != dtype):
        raise TypeError(f"{layer_name} has weights of {dtype} and cannot take an input of {x.dtype}")


def check_positions(start, T, max_len):
    """ValueError unless the positions start ... start + T - 1 are among the `max_len` that there are."""
    if start < 0:
        raise ValueError(f"a sequence starts at position 0 or later, got start = {start}")
    if max_len < start + T:
        raise ValueError(f"the sequence is {start + T} tokens long, but there are only {max_len} positions")


def check_names(complaint, given, wanted):
    """ValueError, beginning with `complaint`, unless the two dictionaries have the same names."""
    missing, unexpected = wanted.keys() - given.keys(), given.keys() - wanted.keys()
    if missing or unexpected:
        raise ValueError(
            f"{complaint}: missing {sorted(missing) or 'nothing'}, unexpected {sorted(unexpected) or 'nothing'}"
        )


def check_mask(allowed):
    """TypeError unless `allowed` is None or boolean: numbers would leave open whether 1 means look or ignore."""
    if allowed is not None and allowed.dtype != bool:
        raise TypeError(f"allowed must be boolean with True = may attend, got an array of {allowed.dtype}")


def check_ids(name, ids, vocab_size):
    """TypeError, ValueError or IndexError unless `ids` is a non-empty integer array with 0 <= id < vocab_size.

    Checked on the host: NumPy would wrap a negative id silently, and CuPy every id that is out of range.
    """
    _check_array_of_ids(name, ids)
    if ids.size == 0:
        raise ValueError(f"{name} is empty: got token ids of shape {tuple(ids.shape)}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        bad = low if low < 0 else high
        raise IndexError(f"{name} has the token id {bad}, but the vocabulary has the ids 0 to {vocab_size - 1}")


def _check_array_of_ids(name, ids):
    if not hasattr(ids, "dtype"):
        raise TypeError(f"{name} must be an array of integer token ids, got a {type(ids).__name__}")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integer token ids, got an array of {ids.dtype}")


def check_batch_of_ids(name, ids, vocab_size, max_len):
    """As `check_ids`, and also ValueError unless `ids` is (B, T) with T <= max_len."""
    _check_array_of_ids(name, ids)
    if ids.ndim != 2:
        raise ValueError(f"{name} must be a batch of sequences of shape (B, T), got {tuple(ids.shape)}")
    check_ids(name, ids, vocab_size)
    if ids.shape[1] > max_len:
        raise ValueError(f"{name} is {ids.shape[1]} tokens long, but the model has only {max_len} positions")
