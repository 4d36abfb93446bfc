"""The problems, the hints and the known mistakes of 12_decoder_layer_backward."""

import functools

import numpy as np
from exercise_problems import backward_problem, make_weights, not_padding, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Replacement, Task
from minitransformer.layers import Decoder

LAYER_SIZES = sizes("B T S C D F", (2, 3, 5, 4, 6, 7), (3, 4, 2, 5, 7, 6), (1, 1, 1, 3, 1, 1), (1, 1, 1, 1, 1, 1))
STACK_SIZES = sizes("layers B T S C", (3, 2, 4, 6, 5), (2, 3, 5, 1, 4), (1, 1, 1, 1, 1))
TINY = 1e-30


def make_decoder_inputs(rng, B, T, S, C):
    """Target and memory of different lengths, and the two masks."""
    return {
        "x": rng.standard_normal((B, T, C)),
        "M": rng.standard_normal((B, S, C)),
        "allowed": not_padding(B, T) & np.tri(T, dtype=bool),
        "memory_allowed": not_padding(B, S),
    }


def make_decoder_layer(rng, given, B, T, S, C, D, F):
    """The gradients of the target and of the memory."""
    weights = make_weights(rng, (C, D, F), ("self_attention", "cross_attention"))
    inputs = {**make_decoder_inputs(rng, B, T, S, C), "weights": weights}
    return backward_problem(given.decoder_layer, inputs, ("x", "M"), rng)


def make_decoder(rng, given, layers, B, T, S, C):
    """The same for a stack. The derivatives of each layer and of the whole decoder are complex steps."""
    x, M, *masks = make_decoder_inputs(rng, B, T, S, C).values()
    stack = [make_weights(rng, (C, 6, 7), ("self_attention", "cross_attention")) for _ in range(layers)]
    dy = rng.standard_normal(x.shape)
    expected = backward_of(lambda x, M: given.decoder(x, M, *masks, stack)[0], x, M)(dy)
    backs = []
    for weights in stack:
        backs.append(backward_of(lambda x, M, own=weights: given.decoder_layer(x, M, *masks, own)[0], x, M))
        x, _ = given.decoder_layer(x, M, *masks, weights)
    return Problem((dy, backs), expected, ratios={"the number of layers": layers})


def backward_of(f, x, M):
    """The backward of f(x, M), which takes further axes in front -> a function of dy that returns dx, dM."""
    dy_dx, dy_dM = (
        f(x + complex_steps(x), M).imag / TINY,  # (entries of x, B, T, C): each with another entry of x changed
        f(x, M + complex_steps(M)).imag / TINY,
    )

    def back(dy):
        dx, dM = (np.tensordot(slopes, dy, dy.ndim) for slopes in (dy_dx, dy_dM))
        return dx.reshape(x.shape), dM.reshape(M.shape)

    return back


def complex_steps(x):
    """A tiny imaginary step for each entry of x -> (entries of x, *the shape of x)."""
    return 1j * TINY * np.eye(x.size).reshape(x.size, *x.shape)


def adapt_decoder(mine):
    """A Decoder.backward that goes through the layers with the learner's function."""

    def backward(self, dy, cache):
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        pairs = zip(self.layers, cache.layers, strict=True)
        backs = [functools.partial(layer.backward, cache=layer_cache) for layer, layer_cache in pairs]
        dx, dM = (np.asarray(array, dtype=dy.dtype) for array in mine(dy, backs))
        cache.layers.clear()
        return dx, dM

    return backward


DECODER_LAYER_MISTAKES = (
    Mistake("memory-through-keys", {"dM = dkey + dvalue": "dM = dkey"}),
    Mistake("memory-through-values", {"dM = dkey + dvalue": "dM = dvalue"}),
    Mistake("residual-forgotten", {"dfirst = dsum + dquery": "dfirst = dquery"}),
    Mistake("gradient-cross-attentions-queries-forgotten", {"dfirst = dsum + dquery": "dfirst = dsum"}),
    Mistake("norm-of-sum-skipped", {"back_cross(dsum)": "back_cross(dsecond)"}),
    Mistake("queries-only", {"return dsum + dquery + dkey + dvalue": "return dsum + dquery"}),
)

DECODER_MISTAKES = (
    Mistake("memory-gets-only-share-last", {"dM = dM + share": "dM = share if back is backs[-1] else dM"}),
    Mistake("each-layers-share-dm-replaces", {"dM + share": "share"}),
    Mistake("shares-dm-averaged", {"dM + share": "dM + share / len(backs)"}),
    Mistake("layers-come-order-forward", {"reversed(backs)": "backs"}),
    Mistake("every-layer-gets-same-dy", {"dy, share": "dx, share", "return dy": "return dx"}),
)

EXERCISE = Exercise(
    name="12_decoder_layer_backward",
    hints=(
        "How often does one layer use x, `first`, `second` and M? And how often does the whole stack use M?",
        "M makes keys and values. `first` makes the queries, and it is in a sum. In a stack, the dx of one layer "
        "is the dy of the layer below, and its dM is one share of many.",
        "(B, T, C): dsecond has 2 terms, dfirst 2, and dx 4: the gradient of a sum, and what comes back through a "
        "piece.  (B, S, C): dM has 2 terms in one layer, and as many shares as the stack has layers",
    ),
    tasks=(
        Task(
            function="decoder_layer_backward",
            forward="decoder_layer",
            outputs=(Output("dx", "BTC"), Output("dM", "BSC")),
            make=make_decoder_layer,
            sizes=LAYER_SIZES,
            linear=True,
            mistakes=DECODER_LAYER_MISTAKES,
        ),
        Task(
            function="decoder_backward",
            outputs=(Output("dx", "BTC"), Output("dM", "BSC")),
            make=make_decoder,
            sizes=STACK_SIZES,
            linear=True,
            mistakes=DECODER_MISTAKES,
        ),
    ),
    replaces={"decoder_backward": Replacement(Decoder.backward, adapt_decoder)},
)
