"""The problems, the hints and the known mistakes of 12_encoder_layer_backward."""

import dataclasses

import numpy as np
from exercise_problems import backward_problem, make_weights, not_padding, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.gradcheck import complex_step

SIZES = sizes("B T C D F", (2, 3, 4, 6, 7), (3, 2, 5, 4, 6), (1, 1, 3, 1, 1), (1, 1, 1, 1, 1))


def make_encoder_layer(rng, given, B, T, C, D, F):
    """The gradients of x and of `middle`, which the first half makes from x."""
    weights = make_weights(rng, (C, D, F), ("attention",))
    inputs = {"x": rng.standard_normal((B, T, C)), "allowed": not_padding(B, T), "weights": weights}
    problem = backward_problem(given.encoder_layer, inputs, ("x",), rng)
    x, dy = inputs["x"], problem.args[0]
    attended, _ = given.attention(x, x, x, inputs["allowed"], weights["attention"])
    middle, _ = given.layer_norm(x + attended, weights["norm_1"])

    def second_half(middle):
        return given.layer_norm(middle + given.feed_forward(middle, weights["feed_forward"])[0], weights["norm_2"])[0]

    dmiddle = complex_step(lambda middle: np.sum(dy * second_half(middle)), middle)
    return dataclasses.replace(problem, expected=(*problem.expected, dmiddle))


ENCODER_LAYER_MISTAKES = (
    Mistake("path-around-feed-forward-forgotten", {"dmiddle = dsum + ": "dmiddle = "}),
    Mistake("path-around-attention-forgotten", {"return dsum + ": "return "}),
    Mistake("queries-only", {" + dkey + dvalue": ""}),
    Mistake("gradient-values-does-not-come", {" + dvalue": ""}),
    Mistake("identity-path-around-norm", {"return dsum": "return dmiddle"}),
    Mistake("norm-of-sum-skipped", {"back_feed_forward(dsum)": "back_feed_forward(dy)"}),
    Mistake(
        "backward-of-pre-norm",
        {
            "dsum = back_norm_2(dy)": "dmiddle = dy + back_norm_2(back_feed_forward(dy))",
            "    dmiddle = dsum + back_feed_forward(dsum)\n": "",
            "    dsum = back_norm_1(dmiddle)  # the gradient of x + attended\n": "",
            "back_attention(dsum)": "back_attention(dmiddle)",
            "dsum + dquery + dkey + dvalue": "dmiddle + back_norm_1(dquery + dkey + dvalue)",
        },
    ),
)

EXERCISE = Exercise(
    name="12_encoder_layer_backward",
    hints=(
        "How often does the forward use x, and how often `middle`? Draw an arrow for each use.",
        "`middle` has two uses: it is in a sum, and it is the input of the network. x has four: it is in a sum, "
        "and it is all three inputs of the attention. Every path starts from the gradient of a sum, and every sum "
        "goes into a norm.",
        "All arrays are (B, T, C).  dy → dsum by norm 2; dmiddle = dsum + (dsum → network);  dmiddle → a new dsum "
        "by norm 1; dx = this dsum + three more, all from (dsum → attention)",
    ),
    tasks=(
        Task(
            function="encoder_layer_backward",
            forward="encoder_layer",
            outputs=(Output("dx", "BTC"), Output("dmiddle", "BTC")),
            make=make_encoder_layer,
            sizes=SIZES,
            linear=True,
            mistakes=ENCODER_LAYER_MISTAKES,
        ),
    ),
)
