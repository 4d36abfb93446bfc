"""Lesson 12: the backward passes of an encoder layer, of a decoder layer, and of a stack of them."""

import dataclasses
import functools

import numpy as np

from minitransformer.exercises.catalogue import mistakes_12
from minitransformer.exercises.exercise import Exercise, Output, Problem, Task, backward_problem
from minitransformer.exercises.replacement import Replacement
from minitransformer.gradcheck import complex_step
from minitransformer.layers import Decoder

B, T, S, C, D, F, N = 2, 3, 5, 4, 6, 7, 3  # D features of the one head, N layers
TINY = 1e-30


def make_weights(rng, attentions):
    """The pieces' weights of one layer, of order one: as many norms as sub-layers."""

    def draw(rows, columns):
        return rng.standard_normal((rows, columns)) * rows**-0.5

    weights = {name: (draw(C, D), draw(C, D), draw(C, D), draw(D, C)) for name in attentions}
    weights["feed_forward"] = (draw(C, F), draw(F, C))
    for number in range(1, len(attentions) + 2):
        weights[f"norm_{number}"] = (rng.uniform(0.5, 2.0, C), rng.standard_normal(C))
    return weights


def not_padding(length):
    """The last token of the second sequence is padding, which nobody may look at -> (B, 1, length)."""
    allowed = np.ones((B, 1, length), dtype=bool)
    allowed[1, 0, -1] = False
    return allowed


def make_encoder_layer(rng, given):
    """The gradients of x, and of what the first half makes of it."""
    p = make_weights(rng, ("attention",))
    inputs = {"x": rng.standard_normal((B, T, C)), "allowed": not_padding(T), "p": p}
    problem = backward_problem(given.encoder_layer, inputs, ("x",), rng)
    x, dy = inputs["x"], problem.args[0]
    a, _ = given.layer_norm(x + given.attention(x, x, x, inputs["allowed"], p["attention"])[0], p["norm_1"])

    def second_half(a):
        return given.layer_norm(a + given.feed_forward(a, p["feed_forward"])[0], p["norm_2"])[0]

    da = complex_step(lambda a: np.sum(dy * second_half(a)), a)
    return dataclasses.replace(problem, expected=(*problem.expected, da))


def make_decoder_inputs(rng):
    """Target and memory, of other lengths, and the two masks."""
    return {
        "x": rng.standard_normal((B, T, C)),
        "memory": rng.standard_normal((B, S, C)),
        "allowed": not_padding(T) & np.tri(T, dtype=bool),
        "memory_allowed": not_padding(S),
    }


def make_decoder_layer(rng, given):
    """The gradients of the target and of the memory."""
    inputs = {**make_decoder_inputs(rng), "p": make_weights(rng, ("self_attention", "cross_attention"))}
    return backward_problem(given.decoder_layer, inputs, ("x", "memory"), rng)


def make_decoder(rng, given):
    """The same of a stack. All derivatives here, each layer's and the whole decoder's, are complex steps."""
    x, memory, *masks = make_decoder_inputs(rng).values()
    layers = [make_weights(rng, ("self_attention", "cross_attention")) for _ in range(N)]
    dy = rng.standard_normal(x.shape)
    expected = backward_of(lambda x, memory: given.decoder(x, memory, *masks, layers)[0], x, memory)(dy)
    backs = []
    for p in layers:
        backs.append(backward_of(lambda x, memory, p=p: given.decoder_layer(x, memory, *masks, p)[0], x, memory))
        x, _ = given.decoder_layer(x, memory, *masks, p)
    return Problem((dy, backs), expected, ratios={"the number of layers": N})


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


ENCODER_LAYER = Exercise(
    name="12_encoder_layer_backward",
    see="lesson 12, parts 1 and 2, and lesson 11, part 1",
    hints=(
        "How often is a used in the forward, and how often x? Draw an arrow for each use.",
        "a has two uses, as it stands in a sum and is the network's input. x has four: a sum, and three "
        "inputs of the attention. Each path begins at the gradient of a sum, behind which is a norm.",
        "all of them (B, T, C).  dy → ds₂ by norm 2; da = ds₂ + (ds₂ → network);  da → ds₁ by norm 1; "
        "dx = ds₁ + three more, all of ds₁ → attention",
    ),
    tasks=(
        Task(
            function="encoder_layer_backward",
            forward="encoder_layer",
            outputs=(Output("dx", "BTC"), Output("da", "BTC")),
            make=make_encoder_layer,
            linear=True,
            mistakes=mistakes_12.ENCODER_LAYER,
        ),
    ),
)

DECODER_LAYER = Exercise(
    name="12_decoder_layer_backward",
    see="lesson 12, parts 2 and 3",
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
            linear=True,
            mistakes=mistakes_12.DECODER_LAYER,
        ),
        Task(
            function="decoder_backward",
            outputs=(Output("dx", "BTC"), Output("dmemory", "BSC")),
            make=make_decoder,
            linear=True,
            mistakes=mistakes_12.DECODER,
        ),
    ),
    replaces={"decoder_backward": Replacement(Decoder.backward, adapt_decoder, owner=Decoder)},
)

EXERCISES = (ENCODER_LAYER, DECODER_LAYER)
