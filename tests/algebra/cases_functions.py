"""The cases of functions that act on each entry, each token or each position."""

import math
from unittest import mock

import numpy as np
import sympy

from minitransformer import functional as F
from minitransformer.functional import reductions
from minitransformer.functional.since_2017 import activations
from minitransformer.functional.since_2017.activations import ACTIVATIONS, GATED
from minitransformer.functional.since_2017.diagonals import diagonal_sums, toeplitz
from tests.algebra import names, symbols
from tests.algebra.pairs import Case, Signed, variables

EPS = symbols.Open("eps", positive=True)
RATE = symbols.Open("smoothing", real=True)
SCALE = sympy.Symbol("scale", positive=True)
MASK = np.array([[True, False, True], [False, False, False]])  # the second row may attend to nothing
CONSTANTS = {"LINEAR": sympy.Symbol("linear", real=True), "CUBIC": sympy.Symbol("cubic", real=True)}


def normal_cdf(x):
    """The function whose derivative is exp(-x^2 / 2) / sqrt(2 pi), with the constant rounded as in the code."""
    return symbols.wrap(np.vectorize(lambda a: names.named("normal_cdf", a), otypes=[object])(x))


names.RULES["normal_cdf"] = lambda value, a: names.exp(-(a**2) / 2) * symbols.exact(1.0 / math.sqrt(2.0 * math.pi))


def with_exact_cdf(function):
    """`function` with `normal_cdf` itself instead of the fit that computes it."""

    def patched(*arguments):
        with mock.patch.object(activations, "normal_cdf", normal_cdf):
            return function(*arguments)

    return patched


def with_any_constants(function):
    """`function` with symbols for the two constants of GELU's tanh form."""

    def patched(*arguments):
        with mock.patch.multiple(activations, **CONSTANTS):
            return function(*arguments)

    return patched


def activation_case(name):
    """An activation for inputs, or gates, of both signs, unless it has a constant or a function of its own."""
    forward, backward = getattr(F, name), getattr(F, f"{name}_backward")
    shape, what = ((2, 6), "gates") if name in (*GATED, "glu") else ((2, 3), "x")
    if name in ("gelu", "geglu"):
        branch = "where the derivative of normal_cdf is exp(-x^2 / 2) / sqrt(2 pi)"
        return Case(name, branch, with_exact_cdf(forward), backward, {"x": shape})
    if name in ("gelu_tanh", "geglu_tanh"):
        branch, pair = "for |x| <= 10 and any two constants", map(with_any_constants, (forward, backward))
        return Case(name, branch, *pair, {"x": shape}, answer=True)
    return Case(name, f"for {what} above and below 0", forward, backward, {"x": Signed(shape)})


def added(function, shape):
    """The gradient that a function adds to a table, where there has been another one."""

    def backward(dy, cache):
        before = variables("before", shape)
        table = before.copy()
        function(dy, cache, table)
        return table - before

    return backward


def in_blocks(function):
    """`function` with blocks of two tokens instead of thousands."""

    def patched(*arguments):
        with mock.patch.object(reductions, "BLOCK", 6):
            return function(*arguments)

    return patched


TARGETS = symbols.wrap(np.array([[1, 0, 2]]))  # 0 is padding
COUNTED = np.array([[True, True, False]])
ADVANTAGES, ANSWERS = np.array([2, -3]), np.array([[True, True, False], [True, True, True]])
OLD, REF = np.zeros((2, 3), int), np.array([[1, -2, 3], [2, 1, -1]])
IDS = np.array([[1, 3, 1], [0, 1, 1]])  # 1 occurs four times, 2 never
BUCKETS = F.relative_buckets(2, 3, num_buckets=4, max_distance=3)
TOKENS = np.array([[True, True], [False, True]])
COS, SIN = variables("cos", (2, 2)), variables("sin", (2, 2))
Q, K = variables("q", (1, 4, 2, 1)), variables("k", (1, 2, 3, 1))

CASES = (
    *map(activation_case, (*ACTIVATIONS, "glu")),
    Case("tanh", "", F.tanh, F.tanh_backward, {"x": (2, 3)}),
    Case("linear", "", F.linear, F.linear_backward, {"x": (2, 3, 2), "W": (2, 4), "b": (4,)}),
    Case(
        "conv1d",
        "causal, with gaps",
        lambda x, W, b: F.conv1d(x, W, b, dilation=2),
        F.conv1d_backward,
        {"x": (2, 4, 1), "W": (3, 1, 2), "b": (2,)},
    ),
    Case(
        "conv1d",
        "in both directions, with padding",
        lambda x, W, b: F.conv1d(x, W, b, causal=False, mask=TOKENS),
        F.conv1d_backward,
        {"x": (2, 2, 3), "W": (3, 3, 2), "b": (2,)},
    ),
    Case(
        "layer_norm",
        "as on a CPU, for any eps",
        lambda *inputs: F.layer_norm(*inputs, eps=EPS),
        F.layer_norm_backward,
        {"x": (2, 3), "gamma": (3,), "beta": (3,)},
        answer=True,
        backend="numpy",
    ),
    Case(
        "layer_norm",
        "as on a GPU, with means near 0",
        lambda *inputs: F.layer_norm(*inputs, eps=EPS),
        F.layer_norm_backward,
        {"x": (2, 3), "gamma": (3,), "beta": (3,)},
        answer=False,
    ),
    Case(
        "layer_norm",
        "as on a GPU, with means far from 0",
        lambda *inputs: F.layer_norm(*inputs, eps=EPS),
        F.layer_norm_backward,
        {"x": (2, 3), "gamma": (3,), "beta": (3,)},
        answer=True,
    ),
    Case(
        "rms_norm",
        "as on a CPU, for any eps",
        lambda *inputs: F.rms_norm(*inputs, eps=EPS),
        F.rms_norm_backward,
        {"x": (2, 3), "gamma": (3,)},
        answer=True,
        backend="numpy",
    ),
    Case(
        "rms_norm",
        "as on a GPU, for any eps",
        lambda *inputs: F.rms_norm(*inputs, eps=EPS),
        F.rms_norm_backward,
        {"x": (2, 3), "gamma": (3,)},
    ),
    Case("softmax", "", F.softmax, F.softmax_backward, {"scores": (2, 3)}),
    Case(
        "softmax",
        "with a mask and an empty row",
        lambda scores: F.softmax(scores, MASK),
        F.softmax_backward,
        {"scores": (2, 3)},
    ),
    Case(
        "cross_entropy",
        "with padding, and any smoothing",
        in_blocks(lambda logits: F.cross_entropy(logits, TARGETS, smoothing=RATE)),
        in_blocks(F.cross_entropy_backward),
        {"logits": (1, 3, 3)},
        answer=True,
    ),
    Case(
        "cross_entropy",
        "without smoothing",
        lambda logits: F.cross_entropy(logits, TARGETS),
        F.cross_entropy_backward,
        {"logits": (1, 3, 3)},
    ),
    Case(
        "token_log_probs",
        "one of which does not count",
        lambda z: F.token_log_probs(z, TARGETS, COUNTED),
        F.token_log_probs_backward,
        {"z": (1, 3, 3)},
    ),
    Case("dpo", "", lambda w, x: F.dpo(w, x, OLD, REF, SCALE), F.dpo_backward, {"w": (2, 3), "x": (2, 3)}),
    *(
        Case(
            "grpo",
            f"clipped and not clipped, mean over {mean_over}",  # with clip = 0 the signs decide
            lambda log_p, mean_over=mean_over: F.grpo(log_p, OLD, ADVANTAGES, ANSWERS, 0.0, REF, 0.3, mean_over),
            F.grpo_backward,
            {"log_p": Signed((2, 3))},
        )
        for mean_over in ("answers", "tokens")
    ),
    Case(
        "dropout",
        "for one mask",
        lambda x: F.dropout(x, 0.4, np.random.default_rng(2)),
        F.dropout_backward,
        {"x": (2, 3)},
    ),
    Case(
        "embedding",
        "with a token that occurs four times, and any scale",
        lambda E: F.embedding(IDS, E, SCALE),
        added(F.embedding_backward, (4, 2)),
        {"E": (4, 2)},
    ),
    Case(
        "relative_bias",
        "",
        lambda table: F.relative_bias(table, BUCKETS),
        added(F.relative_bias_backward, (4, 2)),
        {"table": (4, 2)},
    ),
    Case(
        "rotate",
        "for any numbers instead of cosines and sines",
        lambda x: F.rotate(x, COS, SIN),
        F.rotate_backward,
        {"x": (1, 2, 2, 4)},
    ),
    Case(
        "split_heads",
        "whose backward is merge_heads",
        lambda x: (F.split_heads(x, 2), None),
        lambda dy, _: F.merge_heads(dy),
        {"x": (2, 3, 4)},
    ),
    Case(
        "merge_heads",
        "whose backward is split_heads",
        lambda x: (F.merge_heads(x), 2),
        F.split_heads,
        {"x": (1, 2, 3, 4)},
    ),
    Case(
        "group_heads",
        "whose backward is ungroup_heads",
        lambda x: (F.group_heads(x, K), None),
        lambda dy, _: F.ungroup_heads(dy, Q),
        {"x": (1, 4, 2, 3)},
    ),
    Case(
        "ungroup_heads",
        "whose backward is group_heads",
        lambda x: (F.ungroup_heads(x, Q), None),
        lambda dy, _: F.group_heads(dy, K),
        {"x": (1, 2, 4, 3)},
    ),
    Case("repeat_heads", "", lambda x: (F.repeat_heads(x, Q), (2,)), F.repeat_heads_backward, {"x": (1, 2, 3, 1)}),
    Case(
        "toeplitz",
        "whose backward is diagonal_sums",
        lambda values: (toeplitz(values, 2, 3), None),
        lambda dy, _: diagonal_sums(dy),
        {"values": (2, 4)},
    ),
)
