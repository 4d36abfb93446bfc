"""Every function with a backward, and how to find out whether it is right in float32 for numbers from 1e-30 to 1e30.

What is right is computed by the same functions in float64, where nothing here overflows. That float64 is right is shown
by the other tests.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minitransformer import functional as F
from minitransformer.backend import backend_name
from minitransformer.functional.since_2017.activations import ACTIVATIONS
from minitransformer.system.generators import make_generator
from tests.helpers import device, host

SCALES = (1e-30, 1e-20, 1e-6, 1.0, 1e6, 1e13, 1e20, 1e30)
LARGEST, SMALLEST = float(np.finfo(np.float32).max), float(np.finfo(np.float32).tiny)
FLUSHED = 1000 * SMALLEST  # CuPy lets the GPU round numbers below SMALLEST to 0; a norm multiplies them by up to 316
TOLERANCE = 1e-5
B, H, T, S, C, D, V = 2, 3, 4, 5, 8, 6, 9


class Pair(NamedTuple):
    """A function and its backward."""

    shapes: dict[str, tuple[int, ...]]  # of the inputs in floating point
    forward: Callable[..., Any]  # of the inputs -> y, cache
    backward: Callable[..., Any]  # of dy, cache -> the gradients


def dropped(x):
    return F.dropout(x, 0.3, make_generator(5))


def lookup(E):
    ids = np.array([[0, 2, 0], [1, 0, 2]])
    y, cache = F.embedding(ids, E, scale=2.5)
    return y, (cache, E)


def lookup_backward(dy, cache):
    dE = 0.0 * cache[1]
    F.embedding_backward(dy, cache[0], dE)
    return dE


def distances(table):
    y, buckets = F.relative_bias(table, F.relative_buckets(T, S, 8, 16))
    return y, (buckets, table)


def distances_backward(dy, cache):
    dtable = 0.0 * cache[1]
    F.relative_bias_backward(dy, cache[0], dtable)
    return dtable


def turned(x):
    cos, sin = F.rotary_tables(T, D, dtype=x.dtype)
    return F.rotate(x, device(cos), device(sin))


def smoothed(logits):
    return F.cross_entropy(logits, device(np.array([[1, 3, 0], [8, 2, 2]])), smoothing=0.1)


COUNTED = np.arange(T) < [[T], [2]]


def log_probs(z):
    return F.token_log_probs(z, device(np.array([[1, 3, 0], [8, 2, 2]])), device(COUNTED[:, :3]))


def preferred(chosen, rejected):
    return F.dpo(chosen, rejected, 0 * chosen, 0 * rejected)


def rewarded(log_p):
    """With a negative advantage, or with a penalty, the right loss is itself exponential."""
    advantages = device(np.array([1.0, 2.0], log_p.dtype))
    return F.grpo(log_p, device(np.zeros((B, T), log_p.dtype)), advantages, device(COUNTED))


def attention(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, device(np.tri(T, S, 1, dtype=bool)), bias=bias)


def additive(q, k, v, w):
    return F.additive_attention(q, k, v, w, device(np.tri(T, S, 1, dtype=bool)))


TOKENS = np.arange(T) < [[T], [T - 1]]  # the second sequence ends with padding


def recurrent(name):
    """The function `name` without its final state, and its backward with all gradients in one tuple."""
    function, backward = getattr(F, name), getattr(F, f"{name}_backward")

    def forward(*arrays):
        (y, _), cache = function(*arrays, mask=device(TOKENS))
        return y, cache

    def gradients(dy, cache):
        *rest, state = backward(dy, cache)
        return (*rest, *state)

    return lambda **arrays: forward(*arrays.values()), gradients


def repeated(x):
    return F.repeat_heads(x, device(np.empty((B, 2 * H, T, D)))), None


def repeated_backward(dy, cache):
    return F.repeat_heads_backward(dy, (H,))


def masked(scores):
    return F.softmax(scores, device(np.tri(T, S, 1, dtype=bool)))


VECTOR, ROWS, HEADS = (C,), (B, T, C), (B, H, T, S)
PAIRS = {
    "attention": Pair(
        {"q": (B, H, T, D), "k": (B, H, S, D), "v": (B, H, S, D), "bias": (H, T, S)},
        attention,
        F.scaled_dot_product_attention_backward,
    ),
    "conv1d": Pair({"x": ROWS, "W": (3, C, D), "b": (D,)}, F.conv1d, F.conv1d_backward),
    "cross_entropy": Pair({"logits": (2, 3, V)}, smoothed, F.cross_entropy_backward),
    "token_log_probs": Pair({"z": (2, 3, V)}, log_probs, F.token_log_probs_backward),
    "dpo": Pair({"chosen": (B, T), "rejected": (B, S)}, preferred, F.dpo_backward),
    "grpo": Pair({"log_p": (B, T)}, rewarded, F.grpo_backward),
    "dropout": Pair({"x": ROWS}, dropped, F.dropout_backward),
    "embedding": Pair({"E": (V, C)}, lookup, lookup_backward),
    "layer_norm": Pair({"x": ROWS, "gamma": VECTOR, "beta": VECTOR}, F.layer_norm, F.layer_norm_backward),
    "linear": Pair({"x": ROWS, "W": (C, D), "b": (D,)}, F.linear, F.linear_backward),
    "relative_bias": Pair({"table": (8, H)}, distances, distances_backward),
    "rms_norm": Pair({"x": ROWS, "gamma": VECTOR}, F.rms_norm, F.rms_norm_backward),
    "rotate": Pair({"x": (B, H, T, D)}, turned, F.rotate_backward),
    "softmax": Pair({"scores": HEADS}, F.softmax, F.softmax_backward),
    "softmax with a mask": Pair({"scores": HEADS}, masked, F.softmax_backward),
    "repeat_heads": Pair({"x": (B, H, S, D)}, repeated, repeated_backward),
    **{
        name: Pair({"x": ROWS}, getattr(F, name), getattr(F, f"{name}_backward"))
        for name in (*ACTIVATIONS, "tanh", "glu", "elu_plus_one")
    },
}

# tanh and sigmoid hide that their argument has overflowed, perhaps with the wrong sign: one argument at a time is large
SATURATING = {
    "gru": Pair({"x": ROWS, "W": (C, 3 * D), "U": (D, 3 * D), "b": (3 * D,), "d": (D,)}, *recurrent("gru")),
    "lstm": Pair({"x": ROWS, "W": (C, 4 * D), "U": (D, 4 * D), "b": (4 * D,)}, *recurrent("lstm")),
}


def drawn(pair):
    """Inputs and dy of order one, in float32, on the host."""
    rng = np.random.default_rng(1)
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in pair.shapes.items()}
    y, _ = pair.forward(**{name: device(array) for name, array in inputs.items()})
    return {**inputs, "dy": rng.standard_normal(y.shape).astype(np.float32)}


def results(pair, arrays, dtype):
    """The output and all gradients, on the host."""
    *inputs, dy = (device(array.astype(dtype)) for array in arrays.values())
    y, cache = pair.forward(**dict(zip(pair.shapes, inputs, strict=True)))
    gradients = pair.backward(dy, cache)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    return [np.asarray(host(array), np.float64) for array in (y, *gradients)]


def wrong(got, exact):
    """Which entries are finite and wrong, compared with the largest right one."""
    allowed = TOLERANCE * np.abs(exact).max() + (FLUSHED if backend_name() == "cupy" else SMALLEST)
    return np.isfinite(got) & ~(np.abs(got - exact) <= allowed)


def check_one_argument(pair, argument):
    """AssertionError unless all results are right when one argument is scaled, or infinite where the right one is."""
    usual = drawn(pair)
    for scale in SCALES:
        arrays = {**usual, argument: (usual[argument] * scale).astype(np.float32)}
        exact = results(pair, arrays, np.float64)
        overflow = "ignore" if any((np.abs(array) > LARGEST).any() for array in exact) else "warn"
        with np.errstate(over=overflow, invalid=overflow):
            got = results(pair, arrays, np.float32)
        for i, (ours, right) in enumerate(zip(got, exact, strict=True)):
            assert not wrong(ours, right).any(), f"result {i} is wrong at {scale}"
            assert np.isfinite(ours[np.abs(right) < LARGEST]).all(), f"result {i} is not finite at {scale}"


def check_all_arguments(pair):
    """AssertionError unless all results are right, or not finite, when all arguments and dy are scaled alike."""
    usual = drawn(pair)
    for scale in SCALES:
        arrays = {argument: (array * scale).astype(np.float32) for argument, array in usual.items()}
        with np.errstate(over="ignore", invalid="ignore"):
            got, exact = results(pair, arrays, np.float32), results(pair, arrays, np.float64)
        for i, (ours, right) in enumerate(zip(got, exact, strict=True)):
            assert not wrong(ours, right).any(), f"result {i} is wrong at {scale}"


def tiled(q, k, v):
    return F.tiled_attention(q, k, v, device(np.tri(T, dtype=bool)), tile=(2, 2))


def summed(q, k, v):
    return F.linear_attention(q, k, v, causal=True, chunk=2)


# gradients that are differences of sums: where they cancel, what is left is the rounding error of the sums, whose size
# tests/precision measures
SUMS = {
    "additive_attention": Pair(
        {"q": (B, T, D), "k": (B, S, D), "v": (B, S, C), "w": (D,)}, additive, F.additive_attention_backward
    ),
    "tiled_attention": Pair(
        dict.fromkeys("qkv", (B, H, T, D)), tiled, lambda dy, cache: F.tiled_attention_backward(dy, cache)[:3]
    ),
    "linear_attention": Pair(dict.fromkeys("qkv", (B, H, T, D)), summed, F.linear_attention_backward),
}
