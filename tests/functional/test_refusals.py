"""What does not fit is refused by its name, whatever the function; the other files show that a refusal changes nothing.

Each row is a call and the words of its refusal.
"""

import re

import numpy as np
import pytest

from minitransformer import functional as F
from minitransformer.functional.embedding import scatter_add
from minitransformer.functional.positions import rows_from
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.functional.since_2017.routing import expert_weights
from tests.helpers import device

pytestmark = pytest.mark.host_only  # tests/kernels/test_refusals.py has the functions that have kernels
WHOLE = np.int64


def n(*shape, dtype=np.float64):
    """An array of ones."""
    return device(np.ones(shape, dtype))


def after(forward, backward):
    """A call of `backward` with the cache of `forward`."""
    return lambda: backward(forward()[1])


def recurrent(kind, **changes):
    """A call of `lstm` or `gru` for x (3, 5, 4) and two hidden units, with some arguments replaced."""
    blocks = {"lstm": 4, "gru": 3}[kind]
    weights = {
        "W": n(4, 2 * blocks),
        "U": n(2, 2 * blocks),
        "b": n(2 * blocks),
        **({"d": n(2)} if kind == "gru" else {}),
    }
    given = {"x": n(3, 5, 4), **weights, "state": (n(3, 2),) * (blocks - 2), "mask": None, **changes}
    return getattr(F, kind)(*given.values())


def attend(kind, *shapes, dtypes=(np.float64,) * 3, **options):
    """A call of any kind of attention with q, k and v of these shapes."""
    return getattr(F, kind)(*(n(*shape, dtype=dtype) for shape, dtype in zip(shapes, dtypes, strict=True)), **options)


QKV = ((2, 6, 7, 3), (2, 6, 5, 3), (2, 6, 5, 3))
KINDS = ("scaled_dot_product_attention", "tiled_attention", "linear_attention")
MISFITS = {  # of keys and values, for the queries of QKV
    "keys of another width": ((2, 6, 5, 4), (2, 6, 5, 3)),
    "more values than keys": ((2, 6, 5, 3), (2, 6, 6, 3)),
    "more sequences": ((3, 6, 5, 3), (3, 6, 5, 3)),
    "4 for 6 heads": ((2, 4, 5, 3), (2, 4, 5, 3)),
    "values of one head": ((2, 6, 5, 3), (2, 1, 5, 3)),
}
FLOATS = "must be an array of floating-point numbers"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("misfit", MISFITS)
def test_keys_and_values_that_do_not_fit_are_refused_by_every_kind_of_attention(kind, misfit):
    with pytest.raises(ValueError, match=r"q, k and v must be of shape \(B, H, T, D\), \(B, G, S, D\) and"):
        attend(kind, QKV[0], *MISFITS[misfit])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_arrays_of_integers_or_of_two_precisions_are_refused_by_every_kind_of_attention(kind, place):
    for wrong, message in ((WHOLE, FLOATS), (np.float32, "of one dtype")):
        dtypes = [wrong if i == place else np.float64 for i in range(3)]
        with pytest.raises(TypeError, match=message):
            attend(kind, *QKV, dtypes=dtypes)


ADDITIVE = "q, k and v must be of shape (B, T, A), (B, S, A) and (B, S, E), got"
REFUSED = [
    (lambda: F.linear(n(2, 4, 5), n(6, 7)), "W must be of shape (5, 7), got (6, 7)"),
    (lambda: F.linear(n(2, 4, 5), n(1, 5, 7)), "W must be of shape (5, 7), got (1, 5, 7)"),
    (lambda: F.linear(n(2, 4, 5), n(5, 7), n(1)), "b must be of shape (7,), got (1,)"),
    (lambda: F.layer_norm(n(2, 7, dtype=WHOLE), n(7), n(7)), f"x {FLOATS}, got one of"),
    (lambda: F.layer_norm(n(2, 0), n(0), n(0)), "x must have at least one number in its last axis"),
    (lambda: F.layer_norm(n(2, 7), n(1), n(7)), "gamma must be of shape (7,), got (1,)"),
    (lambda: F.layer_norm(n(2, 7), n(7), n(2, 7)), "beta must be of shape (7,), got (2, 7)"),
    (lambda: F.elu_plus_one(n(3, dtype=WHOLE)), f"x {FLOATS}"),
    (lambda: F.split_heads(n(2, 15), 3), "(B, T, C) with C a multiple of 3, got"),
    # convolution
    (lambda: F.conv1d(n(7, 3), n(3, 3, 4)), "x and W must be of shape (B, T, I) and (K, I, O), got (7, 3) and"),
    (lambda: F.conv1d(n(2, 7, 3), n(0, 3, 4)), "x and W must be"),
    (lambda: F.conv1d(n(2, 7, 3), n(3, 3, 4), n(3)), "b must be of shape (4,), got (3,)"),
    (lambda: F.conv1d(n(2, 7, 3), n(3, 3, 4), mask=n(2, 8, dtype=bool)), "mask must be of shape (2, 7), got (2, 8)"),
    (lambda: F.conv1d(n(2, 7, 3), n(3, 3, 4), mask=n(2, 7)), "mask must be a boolean array with True = a token"),
    (lambda: F.conv1d(n(2, 7, 3), n(3, 3, 4), dilation=0), "dilation must be at least 1, got 0"),
    # attention
    (lambda: F.additive_attention(n(2, 3, 6), n(2, 4, 5), n(2, 4, 8), n(5)), "k must be of shape (2, 4, 6), got"),
    (lambda: F.additive_attention(n(2, 3, 5), n(3, 4, 5), n(2, 4, 8), n(5)), ADDITIVE),
    (lambda: F.additive_attention(n(2, 3, 5), n(2, 4, 5), n(2, 5, 8), n(5)), ADDITIVE),
    (lambda: F.additive_attention(n(2, 3, 5), n(2, 4, 5), n(2, 4, 8), n(1)), "w must be of shape (5,), got (1,)"),
    (lambda: F.additive_attention(n(2, 3, 5), n(2, 4, 5, dtype=WHOLE), n(2, 4, 8), n(5)), f"k {FLOATS}"),
    (lambda: F.additive_attention([[[0.5]]], n(1, 1, 1), n(1, 1, 1), n(1)), f"q {FLOATS}"),
    (
        after(
            lambda: F.additive_attention(n(2, 3, 5), n(2, 4, 5), n(2, 4, 8), n(5)),
            lambda cache: F.additive_attention_backward(n(2, 1, 8), cache),
        ),
        "dy must be of shape (2, 3, 8), got (2, 1, 8)",
    ),
    (lambda: attend("tiled_attention", *QKV, tile=(4, 0)), "tile must be at least 1"),
    (lambda: attend("tiled_attention", *QKV, dropout_rate=1.0), "dropout_rate must be"),
    (lambda: attend("tiled_attention", *QKV, rng=7), "rng must be a numpy.random.Generator or None, got int"),
    (lambda: attend("tiled_attention", *QKV, bias=n(6, 7, 1)), "bias must be of shape"),
    (lambda: attend("tiled_attention", *QKV, allowed=n(2, 6, 7, 6, dtype=bool)), "allowed must be broadcastable"),
    (lambda: attend("tiled_attention", (7, 3), (5, 3), (5, 3)), "q of shape"),
    (
        after(lambda: attend("tiled_attention", *QKV), lambda cache: F.tiled_attention_backward(n(2, 6, 1, 3), cache)),
        "dy must be of shape (2, 6, 7, 3), got (2, 6, 1, 3)",
    ),
    (lambda: attend("linear_attention", *QKV, causal=True), "as many queries as keys"),
    (lambda: attend("linear_attention", *QKV, causal=1), "causal must be"),
    (lambda: attend("linear_attention", *QKV, chunk=0), "chunk must be at least 1"),
    (lambda: attend("linear_attention", *QKV, chunk=2.0), "chunk must be"),
    (lambda: attend("linear_attention", *QKV, allowed=n(2, 6, 1, 5, dtype=bool)), "allowed must be broadcastable"),
    *(
        (lambda shape=shape: attend("linear_attention", *QKV, allowed=n(*shape, dtype=bool)), "allowed must be broad")
        for shape in ((2, 2, 1, 5), (2, 1, 2, 5))
    ),
    (lambda: attend("linear_attention", *QKV, allowed=n(5, dtype=bool)), "allowed must be of shape (B, 1, 1, S)"),
    (lambda: attend("linear_attention", (7, 3), (5, 3), (5, 3)), "linear attention takes q of shape (B, H, T, D), got"),
    *(
        (
            after(
                lambda causal=causal: attend("linear_attention", *[(2, 6, 7, 3)] * 3, causal=causal),
                lambda cache: F.linear_attention_backward(n(2, 6, 1, 3), cache),
            ),
            "dy must be of shape (2, 6, 7, 3), got (2, 6, 1, 3)",
        )
        for causal in (False, True)
    ),
    # patterns of attention and positions
    (lambda: Pattern(window=0), "window must be at least 1"),
    (lambda: Pattern(stride=1.5), "stride must be a whole number"),
    (lambda: Pattern(num_global=-1), "num_global must be at least 0"),
    (lambda: Pattern(causal=1), "causal must be True or False"),
    *((lambda start=start: rows_from(np.ones((9, 4)), start, 4), "position") for start in (6, -1)),
    *((lambda start=start: rows_from(np.ones((9, 4)), np.array(start), 4), "position") for start in ([6, 0], [0, 9])),
    (lambda: F.relative_buckets(3, 3, 7, 128, True), "must be even, got 7"),
    (lambda: F.relative_buckets(3, 3, 1, 128, False), "num_buckets = 1"),
    (lambda: F.relative_buckets(3, 3, 32, 8, True), "max_distance = 8"),
    (lambda: F.relative_buckets(3, 3, 32, 16, False), "max_distance = 16"),
    (lambda: F.sinusoidal_positions(5, 7), "sinusoidal positions need an even d_model, got 7"),
    (lambda: F.rotary_tables(5, 7), "the width of a head must be even, got 7"),
    (lambda: F.rotate(n(1, 1, 5, 8), *F.rotary_tables(5, 8)), "x is float64, but the cosines and sines belong to"),
    # losses
    (lambda: F.cross_entropy(n(2, 4, 7, dtype=WHOLE), n(2, 4, dtype=WHOLE)), f"logits {FLOATS}"),
    (lambda: F.cross_entropy(n(2, 4, 7), n(2, 4, dtype=WHOLE), 1.0), "smoothing must be at least 0"),
    (lambda: F.cross_entropy(n(2, 4, 7), n(2, 4, dtype=WHOLE), pad=0.0), "pad must be"),
    (lambda: F.cross_entropy(n(2, 4, 7), n(1, 4, dtype=WHOLE)), "targets must be of shape"),
    (lambda: F.token_log_probs(n(4, 5, 7), n(4, 5, dtype=WHOLE), n(4, 5)), "counted must be a boolean array"),
    (lambda: F.token_log_probs(n(4, 5, 7), n(4, 5, dtype=WHOLE), n(1, 5, dtype=bool)), "counted must be of shape"),
    (lambda: F.token_log_probs(n(4, 5, 7), n(1, 5, dtype=WHOLE), n(4, 5, dtype=bool)), "targets must be of shape"),
    (
        after(
            lambda: F.token_log_probs(n(4, 5, 7), n(4, 5, dtype=WHOLE), n(4, 5, dtype=bool)),
            lambda cache: F.token_log_probs_backward(n(4, 1), cache),
        ),
        "dlog_p must be of shape",
    ),
    (lambda: F.dpo(n(4, 5), n(4, 5), n(4, 5), n(1, 5)), "ref_rejected must be of shape"),
    (lambda: F.grpo(n(4, 5), n(1, 5), n(4), n(4, 5, dtype=bool)), "old_log_p must be of shape"),
    (lambda: F.grpo(n(4, 5), n(4, 5), n(4), n(4, 5, dtype=bool), ref_log_p=n(1, 5)), "ref_log_p must be of shape"),
    (lambda: F.grpo(n(4, 5), n(4, 5), n(4, 1), n(4, 5, dtype=bool)), "advantages must be of shape"),
    (lambda: F.grpo(n(4, 5), n(4, 5), n(4), n(4, 5, dtype=bool), clip=1.0), "clip must be at least 0"),
    (
        lambda: F.grpo(n(4, 5), n(4, 5), n(4), n(4, 5, dtype=bool), mean_over="batch"),
        "mean_over must be one of answers, tokens",
    ),
    (lambda: F.group_advantages(n(4), 3), "4 rewards cannot be divided into groups of 3"),
    (lambda: F.group_advantages(n(4), 1), "group_size must be at least 2"),
    (lambda: expert_weights(n(5, 4), n(5, 4)), "boolean"),
    *(
        (lambda shapes=shapes: scatter_add(n(*shapes[0]), np.zeros(shapes[1], int), n(*shapes[2])), message)
        for shapes, message in (
            (((9, 3, 1), (20,), (20, 3)), "table must be of shape (V, C)"),
            (((9, 3), (20,), (21, 3)), "rows must be of shape"),
            (((9, 3), (20, 1), (20, 3)), "ids must be of shape"),
        )
    ),
    # recurrent layers
    *(
        (
            lambda kind=kind, changes=changes: recurrent(kind, **{name: make() for name, make in changes.items()}),
            message,
        )
        for kind in ("lstm", "gru")
        for changes, message in (
            ({"x": lambda: n(3, 5)}, "x must be of shape (B, T, I), with at least one token, got (3, 5)"),
            ({"x": lambda: n(3, 0, 4)}, "x must be of shape (B, T, I), with at least one token, got (3, 0, 4)"),
            ({"x": lambda: n(3, 5, 4, dtype=WHOLE)}, f"x {FLOATS}, got one of int64"),
            ({"x": lambda: n(3, 5, 5)}, "W must be of shape (5, "),
            ({"U": lambda: n(2, 10)}, "U must be of shape (2, "),
            ({"b": lambda: n(1)}, "b must be of shape ("),
            ({"state": lambda: ()}, "the state must be (h"),
            ({"mask": lambda: n(1, 5, dtype=bool)}, "mask must be of shape (3, 5), got (1, 5)"),
        )
    ),
    (lambda: recurrent("lstm", state=(n(3, 2), n(4, 2))), "c must be of shape (3, 2), got (4, 2)"),
    (lambda: recurrent("gru", state=(n(4, 2),)), "h must be of shape (3, 2), got (4, 2)"),
    (lambda: recurrent("gru", d=n(1)), "d must be of shape (2,), got (1,)"),
    (
        after(lambda: recurrent("lstm"), lambda cache: F.lstm_backward(n(3, 4, 2), cache)),
        "dy must be of shape (3, 5, 2), got (3, 4, 2)",
    ),
    (
        after(lambda: recurrent("gru"), lambda cache: F.gru_backward(n(3, 4, 2), cache)),
        "dy must be of shape (3, 5, 2), got (3, 4, 2)",
    ),
    (
        after(lambda: recurrent("lstm"), lambda cache: F.lstm_backward(n(3, 5, 2), cache, (n(3, 2), n(1, 2)))),
        "dc must be of shape (3, 2), got (1, 2)",
    ),
    (
        after(lambda: recurrent("gru"), lambda cache: F.gru_backward(n(3, 5, 2), cache, (n(2, 2),))),
        "dh must be of shape (3, 2), got (2, 2)",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[f"{i}: {row[1][:40]}" for i, row in enumerate(REFUSED)])
def test_what_does_not_fit_is_refused_by_its_name(call, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        call()


def test_targets_outside_the_vocabulary_are_refused_on_the_host():
    with pytest.raises(IndexError, match="targets has the token id 7"):
        F.token_log_probs(np.zeros((1, 1, 7)), np.array([[7]]), np.array([[True]]))
