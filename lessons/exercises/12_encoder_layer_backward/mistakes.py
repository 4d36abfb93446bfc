"""The problems that 12_encoder_layer_backward is tried on, its hints, and the mistakes that are known."""

import dataclasses

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, make_weights, not_padding, sizes
from minitransformer.gradcheck import complex_step

SIZES = sizes("B T C D F", (2, 3, 4, 6, 7), (3, 2, 5, 4, 6), (1, 1, 3, 1, 1), (1, 1, 1, 1, 1))


def make_encoder_layer(rng, given, B, T, C, D, F):
    """The gradients of x, and of what the first half makes of it."""
    p = make_weights(rng, (C, D, F), ("attention",))
    inputs = {"x": rng.standard_normal((B, T, C)), "allowed": not_padding(B, T), "p": p}
    problem = backward_problem(given.encoder_layer, inputs, ("x",), rng)
    x, dy = inputs["x"], problem.args[0]
    a, _ = given.layer_norm(x + given.attention(x, x, x, inputs["allowed"], p["attention"])[0], p["norm_1"])

    def second_half(a):
        return given.layer_norm(a + given.feed_forward(a, p["feed_forward"])[0], p["norm_2"])[0]

    da = complex_step(lambda a: np.sum(dy * second_half(a)), a)
    return dataclasses.replace(problem, expected=(*problem.expected, da))


ENCODER_LAYER_MISTAKES = (
    Mistake(
        "the path past the feed-forward network is forgotten",
        "How often is a used in the forward? Which of its uses is not in your da?",
        {"da = ds + ": "da = "},
    ),
    Mistake(
        "the path past the attention is forgotten",
        "x is an input of the attention, and where else does it stand?",
        {"return ds + ": "return "},
    ),
    Mistake(
        "the attention gives x only the gradient of its queries",
        "The attention is called with x, x, x. To how many of its inputs does x belong?",
        {" + dkey + dvalue": ""},
    ),
    Mistake(
        "the gradient of the values does not come back to x",
        "The attention is called with x, x, x. What are the weights' means taken of?",
        {" + dvalue": ""},
    ),
    Mistake(
        "the path past the attention does not go through the norm",
        "Where does x enter the sum: before the norm, or after it? Has da been through that norm?",
        {"return ds": "return da"},
    ),
    Mistake(
        "the feed-forward network gets the gradient of y, not that of the sum",
        "f is a part of the sum a + f, and the sum goes into the norm. Which gradient has reached the sum?",
        {"back_feed_forward(ds)": "back_feed_forward(dy)"},
    ),
    Mistake(
        "this is the backward of a pre-norm layer",
        "In this forward, what goes into each norm: the input of a piece, or a sum?",
        {
            "ds = back_norm_2(dy)": "da = dy + back_norm_2(back_feed_forward(dy))",
            "    da = ds + back_feed_forward(ds)\n    ds = back_norm_1(da)  # the gradient of x + s\n": "",
            "back_attention(ds)": "back_attention(da)",
            "ds + dquery + dkey + dvalue": "da + back_norm_1(dquery + dkey + dvalue)",
        },
    ),
)

EXERCISE = Exercise(
    name="12_encoder_layer_backward",
    see='lesson 12, "The machine", and lesson 11',
    hints=(
        "How often is a used in the forward, and how often x? Draw an arrow for each use.",
        "a has two uses, as it stands in a sum and is the network's input. x has four: a sum, and three "
        "inputs of the attention. Each path begins at the gradient of a sum, after which there is a norm.",
        "all of them (B, T, C).  dy → ds₂ by norm 2; da = ds₂ + (ds₂ → network);  da → ds₁ by norm 1; "
        "dx = ds₁ + three more, all of ds₁ → attention",
    ),
    tasks=(
        Task(
            function="encoder_layer_backward",
            forward="encoder_layer",
            outputs=(Output("dx", "BTC"), Output("da", "BTC")),
            make=make_encoder_layer,
            sizes=SIZES,
            linear=True,
            mistakes=ENCODER_LAYER_MISTAKES,
        ),
    ),
)
