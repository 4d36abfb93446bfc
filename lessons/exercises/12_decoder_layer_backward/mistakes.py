"""The problems that 12_decoder_layer_backward is tried on, its hints, and the mistakes that are known."""

import functools

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import backward_problem, make_weights, not_padding, sizes
from minitransformer.layers import Decoder

LAYER_SIZES = sizes("B T S C D F", (2, 3, 5, 4, 6, 7), (3, 4, 2, 5, 7, 6), (1, 1, 1, 3, 1, 1), (1, 1, 1, 1, 1, 1))
STACK_SIZES = sizes("layers B T S C", (3, 2, 4, 6, 5), (2, 3, 5, 1, 4), (1, 1, 1, 1, 1))
TINY = 1e-30


def make_decoder_inputs(rng, B, T, S, C):
    """Target and memory, of other lengths, and the two masks."""
    return {
        "x": rng.standard_normal((B, T, C)),
        "memory": rng.standard_normal((B, S, C)),
        "allowed": not_padding(B, T) & np.tri(T, dtype=bool),
        "memory_allowed": not_padding(B, S),
    }


def make_decoder_layer(rng, given, B, T, S, C, D, F):
    """The gradients of the target and of the memory."""
    weights = make_weights(rng, (C, D, F), ("self_attention", "cross_attention"))
    inputs = {**make_decoder_inputs(rng, B, T, S, C), "p": weights}
    return backward_problem(given.decoder_layer, inputs, ("x", "memory"), rng)


def make_decoder(rng, given, layers, B, T, S, C):
    """The same of a stack. All derivatives here, each layer's and the whole decoder's, are complex steps."""
    x, memory, *masks = make_decoder_inputs(rng, B, T, S, C).values()
    weights = [make_weights(rng, (C, 6, 7), ("self_attention", "cross_attention")) for _ in range(layers)]
    dy = rng.standard_normal(x.shape)
    expected = backward_of(lambda x, memory: given.decoder(x, memory, *masks, weights)[0], x, memory)(dy)
    backs = []
    for p in weights:
        backs.append(backward_of(lambda x, memory, p=p: given.decoder_layer(x, memory, *masks, p)[0], x, memory))
        x, _ = given.decoder_layer(x, memory, *masks, p)
    return Problem((dy, backs), expected, ratios={"the number of layers": layers})


def backward_of(f, x, memory):
    """The backward of f(x, memory), which takes further axes in front -> a function of dy that returns dx, dmemory."""
    dy_dx, dy_dmemory = (
        f(x + complex_steps(x), memory).imag / TINY,  # (entries of x, B, T, C): each with another entry of x changed
        f(x, memory + complex_steps(memory)).imag / TINY,
    )

    def back(dy):
        dx, dmemory = (np.tensordot(slopes, dy, dy.ndim) for slopes in (dy_dx, dy_dmemory))
        return dx.reshape(x.shape), dmemory.reshape(memory.shape)

    return back


def complex_steps(x):
    """One for each entry of x, tiny and imaginary -> (entries of x, *the shape of x)."""
    return 1j * TINY * np.eye(x.size).reshape(x.size, *x.shape)


def adapt_decoder(mine):
    """A Decoder.backward that goes through the layers with the learner's function."""

    def backward(self, dy, cache):
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        pairs = zip(self.layers, cache.layers, strict=True)
        backs = [functools.partial(layer.backward, cache=layer_cache) for layer, layer_cache in pairs]
        dx, dmemory = (np.asarray(array, dtype=dy.dtype) for array in mine(dy, backs))
        cache.layers.clear()
        return dx, dmemory

    return backward


DECODER_LAYER_MISTAKES = (
    Mistake(
        "the memory gets the gradient of its keys alone",
        "The cross-attention is called with a, memory, memory. What else is made of the memory?",
        {"dmemory = dkey + dvalue": "dmemory = dkey"},
    ),
    Mistake(
        "the memory gets the gradient of its values alone",
        "The cross-attention is called with a, memory, memory. What else is made of the memory?",
        {"dmemory = dkey + dvalue": "dmemory = dvalue"},
    ),
    Mistake(
        "the path past the cross-attention is forgotten",
        "a is an input of the cross-attention, and where else does it stand?",
        {"da = ds + dquery": "da = dquery"},
    ),
    Mistake(
        "the gradient of the cross-attention's queries is forgotten",
        "Who asks the memory? Does a matter for the answer only by standing beside it in the sum?",
        {"da = ds + dquery": "da = ds"},
    ),
    Mistake(
        "the cross-attention gets the gradient of c, not that of the sum",
        "r is a part of the sum a + r, and the sum goes into the norm. Which gradient has reached the sum?",
        {"back_cross(ds)": "back_cross(dc)"},
    ),
    Mistake(
        "the self-attention gives x only the gradient of its queries",
        "The self-attention is called with x, x, x. To how many of its inputs does x belong?",
        {"return ds + dquery + dkey + dvalue": "return ds + dquery"},
    ),
)

DECODER_MISTAKES = (
    Mistake(
        "the memory gets the last layer's part alone",
        "Which of the layers read the memory?",
        {"dmemory = dmemory + part": "dmemory = part if back is backs[-1] else dmemory"},
    ),
    Mistake(
        "each layer's part of dmemory takes the place of the one before",
        "The memory was used once by every layer. What do the gradients of several uses make: the last of them?",
        {"dmemory + part": "part"},
    ),
    Mistake(
        "the parts of dmemory are averaged",
        "If every layer would gain 1 by a change of the memory, how much would be gained in all?",
        {"dmemory + part": "dmemory + part / len(backs)"},
    ),
    Mistake(
        "the layers are gone through in the order of the forward",
        "dy is the gradient of what the last layer returned. Which layer can take it?",
        {"reversed(backs)": "backs"},
    ),
    Mistake(
        "every layer gets the same dy",
        "Layer 1 did not return what the loss was computed of, but the input of layer 2. Whose gradient is that?",
        {"dy, part": "dx, part", "return dy": "return dx"},
    ),
)

EXERCISE = Exercise(
    name="12_decoder_layer_backward",
    see='lesson 12, "The machine"',
    hints=(
        "How often are x, a, c and the memory used in one layer? And how often is the memory used in the whole stack?",
        "The memory gives keys and values, and a gives the queries and stands in the sum. In a stack, what a layer "
        "returns for its x is the dy of the layer below, and what it returns for the memory is one part of many.",
        "(B, T, C): dc = 2 terms, da = 2 terms, dx = 4 terms, each sum of a norm's gradient and those of a piece.  "
        "(B, S, C): dmemory = 2 terms in one layer, as many parts as layers in the stack",
    ),
    tasks=(
        Task(
            function="decoder_layer_backward",
            forward="decoder_layer",
            outputs=(Output("dx", "BTC"), Output("dmemory", "BSC")),
            make=make_decoder_layer,
            sizes=LAYER_SIZES,
            linear=True,
            mistakes=DECODER_LAYER_MISTAKES,
        ),
        Task(
            function="decoder_backward",
            outputs=(Output("dx", "BTC"), Output("dmemory", "BSC")),
            make=make_decoder,
            sizes=STACK_SIZES,
            linear=True,
            mistakes=DECODER_MISTAKES,
        ),
    ),
    replaces={"decoder_backward": Replacement(Decoder.backward, adapt_decoder, owner=Decoder)},
)
