"""The problems, the hints and the known mistakes of 06_attention_backward."""

import math
from types import FunctionType

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.backend import xp
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.functional import dropout_backward, scaled_dot_product_attention_backward

# a copy, which stays the library's when the learner's function takes the place of the original
LIBRARYS = FunctionType(
    scaled_dot_product_attention_backward.__code__, scaled_dot_product_attention_backward.__globals__
)
SIZES = sizes("B T S D width", (2, 3, 4, 5, 6), (3, 5, 2, 6, 4), (1, 1, 1, 1, 1))


def make_attention(rng, given, B, T, S, D, width):
    """Queries, keys and values of order one."""
    inputs = {
        "q": rng.standard_normal((B, T, D)),
        "k": rng.standard_normal((B, S, D)),
        "v": rng.standard_normal((B, S, width)),
    }
    ratios = {"sqrt(D)": math.sqrt(D), "D": D}
    return backward_problem(given.attention, inputs, ("q", "k", "v"), rng, ratios=ratios)


def as_the_librarys(mine):
    """The learner's backward, which knows one head, no dropout and the scale 1/√D, in the library's place.

    A bias asks for more than the learner's function gives, so there the library does it.
    """

    def backward(dy, cache):
        if cache.biased:
            return LIBRARYS(dy, cache)
        q, k, v, p = map(flat_heads, cache[:4])  # heads as if they were sequences
        upstream = flat_heads(dy)
        q = q / cache.scale  # the library's is scaled
        if cache.keep is None:
            dq, dk, dv = mine(upstream, (q, k, v, p))
        else:
            dv = mine(upstream, (q, k, v, flat_heads(dropout_backward(cache.weights, cache.keep))))[2]
            dp = dropout_backward(dy @ cache.v.swapaxes(-1, -2), cache.keep)  # what comes back to the weights
            identity = xp.broadcast_to(xp.eye(p.shape[-1], dtype=p.dtype), (len(p), p.shape[-1], p.shape[-1]))
            dq, dk, _ = mine(flat_heads(dp), (q, k, identity, p))  # p I = p, so that dp passes as it is
        factor = cache.scale * math.sqrt(q.shape[-1])  # 1, unless the scale is not 1/√D
        results = ((factor * dq, cache.q), (factor * dk, cache.k), (dv, cache.v))
        return *(xp.asarray(value, dtype=dy.dtype).reshape(like.shape) for value, like in results), None

    return backward


def flat_heads(x):
    """(B, H, ...) -> (B H, ...)."""
    return x.reshape(-1, *x.shape[2:])


EXERCISE = Exercise(
    name="06_attention_backward",
    hints=(
        "Attention has three steps: scores, softmax, mean of the values. Which of q, k and v does each step depend on?",
        "dq and dk both start from ds, and ds starts from dp. All weights of a row share one sum. Which term of ds "
        "comes from it?",
        "dv (S, width) = (S, T) (T, width);  dp (T, S) = (T, width) (width, S);  ds = p ∘ (dp − a number for each "
        "row);  dq = (T, S) (S, D)",
    ),
    tasks=(
        Task(
            function="attention_backward",
            forward="attention",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD"), Output("dv", ("B", "S", "width"))),
            make=make_attention,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "dk summed over the keys is 0: adding one vector to all keys changes no weight",
                    lambda outputs, problem: np.abs(outputs[1].sum(axis=-2)).max() < 1e-9,
                ),
            ),
            mistakes=(
                Mistake("no-scale-backward", {" / math.sqrt(q.shape[-1])": ""}),
                Mistake("divided-by-root-of-keys", {"q.shape[-1]": "k.shape[1]"}),
                Mistake("softmax-entry-by-entry", {"(dp * p).sum(axis=-1, keepdims=True)": "dp * p"}),
                Mistake("average-over-rows", {"axis=-1": "axis=-2"}),
                Mistake("dq-made-v", {"ds @ k": "ds @ v[..., : k.shape[-1]]"}),
                Mistake("average-forgotten", {" - (dp * p).sum(axis=-1, keepdims=True)": ""}),
                Mistake("average-unweighted", {"(dp * p).sum": "dp.mean"}),
                Mistake("scale-applied-twice-dk", {"@ q": "@ q / math.sqrt(q.shape[-1])"}),
                Mistake(
                    "dk-dv-made-reshape-instead",
                    {
                        "p.swapaxes(-1, -2)": "p.reshape(len(p), p.shape[2], p.shape[1])",
                        "ds.swapaxes(-1, -2)": "ds.reshape(len(p), p.shape[2], p.shape[1])",
                    },
                ),
            ),
        ),
    ),
    replaces={"attention_backward": Replacement(scaled_dot_product_attention_backward, as_the_librarys)},
)
