"""The problem, the hints and the known mistakes of 19_block_backward."""

import dataclasses

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.gradcheck import complex_step

SIZES = sizes("B T C D F H G", (2, 7, 9, 4, 5, 6, 3), (3, 5, 7, 2, 8, 4, 2), (1, 1, 2, 6, 1, 1, 1))


def make_block(rng, given, B, T, C, D, F, H, G):
    """The gradients of x and of `middle`, which the first half makes from x."""
    shapes = {"W_q": (C, H * D), "W_k": (C, G * D), "W_v": (C, G * D), "W_o": (H * D, C)}
    shapes |= {"W_gate": (C, F), "W_value": (C, F), "W_down": (F, C)}
    weights = {name: rng.standard_normal(shape) * shape[0] ** -0.5 for name, shape in shapes.items()}
    weights |= {name: rng.uniform(0.5, 2.0, C) for name in ("gamma_1", "gamma_2")}
    inputs = {"x": rng.standard_normal((B, T, C)), "angles": rng.uniform(0.3, 6.0, (T, D // 2)), "weights": weights}
    problem = backward_problem(given.block, inputs, ("x",), rng)
    middle, _ = given.attention_half(**inputs)
    dy = problem.args[0]
    dmiddle = complex_step(lambda middle: np.sum(dy * given.feed_forward_half(middle, weights)[0]), middle)
    return dataclasses.replace(problem, expected=(*problem.expected, dmiddle))


MISTAKES = (
    Mistake("path-around-feed-forward-forgotten", {"dmiddle = dy + ": "dmiddle = "}),
    Mistake("path-around-attention-forgotten", {"dx = dmiddle + ": "dx = "}),
    Mistake("gate-gets-no-gradient", {'dgate @ weights["W_gate"].T + ': ""}),
    Mistake("only-gate-gets-gradient", {' + dvalue @ weights["W_value"].T': ""}),
    Mistake("silu-slope-without-product-rule", {"silu_slope(gate)": "(1 / (1 + np.exp(-gate)))"}),
    Mistake("value-hears-gate-without-silu", {"dr * silu(gate)": "dr * gate"}),
    Mistake("neither-dk-nor-dv-summed", {".sum(axis=2)": "[:, :, 0]"}),
    Mistake("dk-dv-averaged-over-group", {".sum(axis=2)": ".mean(axis=2)"}),
    Mistake("gradient-not-turned-all", {"turn(dq, -angles), turn(dk, -angles)": "dq, dk"}),
    Mistake(
        "gradient-turned-forward-once-more",
        {"turn(dq, -angles), turn(dk, -angles)": "turn(dq, angles), turn(dk, angles)"},
    ),
    Mistake("values-turned-back", {"side_by_side(dv)": "side_by_side(turn(dv, -angles))"}),
    Mistake(
        "queries-only",
        {
            '    dnormed = dnormed + side_by_side(dk) @ weights["W_k"].T\n': "",
            '    dnormed = dnormed + side_by_side(dv) @ weights["W_v"].T\n': "",
        },
    ),
    Mistake("gradient-values-does-not-come", {'    dnormed = dnormed + side_by_side(dv) @ weights["W_v"].T\n': ""}),
)

EXERCISE = Exercise(
    name="19_block_backward",
    hints=(
        "`middle` goes around the feed-forward network and through it, and so does x with the attention. How many "
        "gradients does the input of each norm get?",
        "The input of the second norm hears from the gate and from the value, the input of the first from queries, "
        "keys and values. Before they get there, queries and keys are turned back, and keys and values of a group are "
        "added up.",
        "dr (B, T, F) = dy times W_down transposed; dgate and dvalue (B, T, F) each contain the other factor; dmiddle "
        "(B, T, C) = dy + what comes through the norm.  dq (B, H, T, D), dk and dv (B, G, T, D) after the sum over the "
        "group; dx = dmiddle + what comes through the norm",
    ),
    tasks=(
        Task(
            function="block_backward",
            forward="block",
            outputs=(Output("dx", "BTC"), Output("dmiddle", "BTC")),
            make=make_block,
            sizes=SIZES,
            linear=True,
            mistakes=MISTAKES,
        ),
    ),
)
