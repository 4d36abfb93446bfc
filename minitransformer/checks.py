"""Argument checks that fail early with one plain sentence: which argument, what is allowed, what was given."""

import math
import numbers
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp

DTYPES = ("float32", "float64", "complex128")  # complex numbers are for the proofs of gradcheck/


def check_dtype(dtype: DTypeLike) -> np.dtype:
    """`dtype` as a NumPy dtype, if the library can compute in it; else ValueError."""
    try:
        name = "None" if dtype is None else np.dtype(dtype).name  # NumPy would read None as float64
    except TypeError:
        name = str(dtype)
    if name not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {name}")
    return np.dtype(name)


def check_heads(d_model: int, num_heads: int) -> None:
    """ValueError unless `num_heads` divides `d_model` into equal parts."""
    for name, value in (("d_model", d_model), ("num_heads", num_heads)):
        check_integer(name, value)
    if num_heads < 1 or d_model % num_heads:
        raise ValueError(
            f"d_model must be a multiple of num_heads, got d_model = {d_model} and num_heads = {num_heads}"
        )


def check_choice(name: str, value: str | None, allowed: Collection[str]) -> str:
    """`value`, if it is among `allowed`; else ValueError with the list of allowed values."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}, got {value!r}")
    return value


def check_integer(name: str, value: int, least: float = -math.inf) -> int:
    """`value`, if it is a whole number (else TypeError) of at least `least` (else ValueError)."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {value}")
    return value


def check_number(name: str, value: float) -> float:
    """`value`, if it is a real number; else TypeError. Infinity and nan are allowed."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return value


def check_switch(name: str, value: bool) -> bool:
    """`value`, if it is True or False; else TypeError, because the string "false" would count as true."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return value


def check_rate(name: str, rate: float) -> float:
    """`rate`, if it is a number (else TypeError) of at least 0 and less than 1 (else ValueError)."""
    if not 0.0 <= check_number(name, rate) < 1.0:
        raise ValueError(f"{name} must be at least 0 and less than 1, got {rate}")
    return rate


def check_width(layer_name: str, x: xp.ndarray, width: int, dtype: np.dtype) -> None:
    """TypeError or ValueError unless `x` (..., width) can enter a layer whose weights have `dtype`.

    Complex input with real weights is allowed, and the reverse: the proofs of gradcheck/ need both. float32 and float64
    must not be mixed, because the result would silently be float64.
    """
    if not hasattr(x, "dtype"):
        raise TypeError(f"{layer_name} takes an array, got {type(x).__name__}")
    if x.dtype is dtype and x.ndim > 1 and x.shape[-1] == width:
        return  # the usual case: this check must be cheap, as it runs for every token in incremental decoding
    if x.ndim < 2 or x.shape[-1] != width:
        raise ValueError(f"{layer_name} takes an array of shape (..., {width}), got {tuple(x.shape)}")
    if x.dtype.kind not in "fc" or (x.dtype.kind == dtype.kind and x.dtype != dtype):
        raise TypeError(f"{layer_name} has weights of {dtype} and cannot take an input of {x.dtype}")


def check_precision(layer: object, y: xp.ndarray, x: xp.ndarray) -> None:
    """An error, with the layer's name, if its y has another shape or precision than its x; the next would be blamed."""
    if y.shape != x.shape:
        raise ValueError(f"{type(layer).__name__} returned an array of shape {y.shape}, and got {x.shape}")
    if y.dtype is not x.dtype and y.dtype.kind == x.dtype.kind and y.dtype != x.dtype:
        raise TypeError(f"{type(layer).__name__} returned {y.dtype}, and got {x.dtype}")


def check_numbers(name: str, x: xp.ndarray) -> None:
    """TypeError or ValueError unless `x` is an array of floating-point numbers with at least one in its last axis."""
    kind = getattr(getattr(x, "dtype", None), "kind", None)
    if kind is None:
        raise TypeError(f"{name} must be an array of floating-point numbers, got {type(x).__name__}")
    if kind not in "fc":
        raise TypeError(f"{name} must be an array of floating-point numbers, got one of {x.dtype}")
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one number in its last axis, got the shape {tuple(x.shape)}")


def check_shape(name: str, x: xp.ndarray, shape: Sequence[int]) -> None:
    """ValueError unless `x` has exactly this shape: a smaller one would often be broadcast without an error."""
    if tuple(x.shape) != tuple(shape):
        raise ValueError(f"{name} must be of shape {tuple(shape)}, got {tuple(x.shape)}")


def check_attention(q: xp.ndarray, k: xp.ndarray, v: xp.ndarray) -> None:
    """TypeError or ValueError unless q, k and v have the shapes and dtypes that attention needs.

    An array may have fewer leading axes than the others; it is then the same for all of them. A leading axis of length
    1 where the others are longer is refused: its gradient would have the length of the others.
    """
    if _are_usual(q, k, v):
        return
    for name, x in (("q", q), ("k", k), ("v", v)):
        check_numbers(name, x)
        if x.dtype != q.dtype and x.dtype.kind == q.dtype.kind:
            raise TypeError(f"q, k and v must be of one dtype, got {q.dtype}, {k.dtype} and {v.dtype}")
    leading = max(q.shape[:-2], k.shape[:-2], v.shape[:-2], key=len)
    grouped = q.ndim == k.ndim == v.ndim == 4 and k.shape[1] > 0 and q.shape[1] % k.shape[1] == 0
    if grouped:
        fit = q.shape[0] == k.shape[0] and k.shape[:2] == v.shape[:2]
    else:
        fit = all(x.ndim > 1 and x.shape[:-2] == leading[len(leading) + 2 - x.ndim :] for x in (q, k, v))
    if not fit or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        shapes = " and ".join(str(tuple(x.shape)) for x in (q, k, v))
        raise ValueError(
            f"q, k and v must be of shape (B, H, T, D), (B, G, S, D) and (B, G, S, D), where G divides H, got {shapes}"
        )


def _are_usual(q: xp.ndarray, k: xp.ndarray, v: xp.ndarray) -> bool:
    """Whether the arrays are valid in the usual way: a few cheap tests, run for every token in incremental decoding."""
    if not hasattr(q, "dtype") or not hasattr(k, "dtype") or not hasattr(v, "dtype"):
        return False
    shape, shape_k, shape_v = q.shape, k.shape, v.shape
    return (
        q.dtype is k.dtype
        and k.dtype is v.dtype
        and q.dtype.kind in "fc"
        and len(shape) > 1
        and shape[:-2] == shape_k[:-2]
        and shape[-1] == shape_k[-1] > 0
        and shape_k[:-1] == shape_v[:-1]
        and shape_v[-1] > 0
    )


def check_generator(rng: np.random.Generator | None) -> None:
    """TypeError unless `rng` is None or a random generator such as `numpy.random.default_rng(seed)`."""
    if rng is not None and not hasattr(rng, "integers"):
        raise TypeError(f"rng must be a numpy.random.Generator or None, got {type(rng).__name__}")


def check_positions(start: int, T: int, max_len: int) -> None:
    """ValueError unless the positions start ... start + T - 1 are all in 0 ... max_len - 1."""
    if start < 0:
        raise ValueError(f"a sequence starts at position 0 or later, got start = {start}")
    if max_len < start + T:
        raise ValueError(f"the sequence is {start + T} tokens long, but there are only {max_len} positions")


def check_names(complaint: str, given: Mapping, wanted: Mapping) -> None:
    """ValueError, beginning with `complaint`, unless both have the same names; TypeError if `given` is no mapping."""
    if not hasattr(given, "keys"):
        raise TypeError(f"{complaint}: it must be a dictionary, got {type(given).__name__}")
    missing, unexpected = wanted.keys() - given.keys(), given.keys() - wanted.keys()
    if missing or unexpected:
        raise ValueError(f"{complaint}: missing {_some(missing)}, unexpected {_some(unexpected)}")


def _some(names: Collection[str]) -> str:
    """The first three names, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{sorted(names)[:3] or 'nothing'}{more}"


def check_mask(allowed: xp.ndarray | None, shape: Sequence[int]) -> None:
    """TypeError unless `allowed` is None or boolean, ValueError unless it can be broadcast to scores of `shape`.

    A mask of numbers is refused because it would not be clear whether 1 means "may attend" or "ignore".
    """
    if allowed is None:
        return
    if not hasattr(allowed, "dtype"):
        raise TypeError(f"allowed must be a boolean array with True = may attend, got {type(allowed).__name__}")
    if allowed.dtype != bool:
        raise TypeError(f"allowed must be boolean with True = may attend, got an array of {allowed.dtype}")
    given, more = allowed.shape, len(shape) - allowed.ndim
    if more >= 0:
        for axis, length in enumerate(given):  # a loop is the cheapest test, and this runs for every decoded token
            if length != 1 and length != shape[more + axis]:
                break
        else:
            return
    raise ValueError(f"allowed must be broadcastable to the scores {tuple(shape)}, got the shape {tuple(given)}")


def check_ids(name: str, ids: np.ndarray, vocab_size: int) -> None:
    """TypeError, ValueError or IndexError unless `ids` is a non-empty integer array with 0 <= id < vocab_size.

    Without this check on the host, NumPy would silently wrap negative ids, and CuPy all ids that are out of range.
    """
    _check_array_of_ids(name, ids)
    if ids.size == 0:
        raise ValueError(f"{name} is empty: got token ids of shape {tuple(ids.shape)}")
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= vocab_size:
        bad = low if low < 0 else high
        raise IndexError(f"{name} has the token id {bad}, but the vocabulary has the ids 0 to {vocab_size - 1}")


def _check_array_of_ids(name: str, ids: np.ndarray | xp.ndarray) -> None:
    if not hasattr(ids, "dtype"):
        raise TypeError(f"{name} must be an array of integer token ids, got {type(ids).__name__}")
    if ids.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integer token ids, got an array of {ids.dtype}")


def check_batch_of_ids(name: str, ids: np.ndarray, vocab_size: int, max_len: float) -> None:
    """As `check_ids`, and also ValueError unless `ids` is (B, T) with T <= max_len."""
    _check_array_of_ids(name, ids)
    if ids.ndim != 2:
        raise ValueError(f"{name} must be a batch of sequences of shape (B, T), got {tuple(ids.shape)}")
    check_ids(name, ids, vocab_size)
    if ids.shape[1] > max_len:
        raise ValueError(f"{name} is {ids.shape[1]} tokens long, but the model has only {max_len} positions")


def check_targets(targets: np.ndarray | xp.ndarray, shape: Sequence[int], vocab_size: int, pad: int | None) -> None:
    """TypeError, ValueError or IndexError unless `targets`, of `shape`, are ids of the vocabulary or `pad`.

    The range is checked only for arrays on the host: for an array on a GPU the check would have to wait for the GPU.
    """
    _check_array_of_ids("targets", targets)
    check_shape("targets", targets, shape)
    if isinstance(targets, np.ndarray) and targets.size and not 0 <= targets.min() <= targets.max() < vocab_size:
        counted = targets if pad is None else targets[targets != pad]
        if counted.size:
            check_ids("targets", counted, vocab_size)
