"""The problems, the hints and the known mistakes of 25_row_split."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.functional import linear, linear_backward

SIZES = sizes("machines N F C", (3, 4, 2, 5), (2, 3, 4, 2), (4, 2, 3, 1), (1, 1, 1, 1))


def make_whole(rng, machines, N, F, C):
    """x (N, all F), W (all F, C) and b (C,) of one machine."""
    return rng.standard_normal((N, machines * F)), rng.standard_normal((machines * F, C)), rng.standard_normal(C)


def cut(x, W, machines):
    """The lists of what each machine has."""
    return np.split(x, machines, axis=1), np.split(W, machines, axis=0)


def make_forward(rng, given, machines, N, F, C):
    """The map on one machine, and its parts."""
    x, W, b = make_whole(rng, machines, N, F, C)
    y, _ = linear(x, W, b)
    return Problem((*cut(x, W, machines), b), (np.stack([y] * machines),), ratios={"machines": machines})


def make_backward(rng, given, machines, N, F, C):
    """The gradients on one machine, and their parts."""
    x, W, b = make_whole(rng, machines, N, F, C)
    dy = rng.standard_normal((N, C))
    dx, dW, db = linear_backward(dy, linear(x, W, b)[1])
    dx, dW = (np.stack(parts) for parts in cut(dx, dW, machines))
    return Problem((dy, *cut(x, W, machines)), (dx, dW, np.stack([db] * machines)), ratios={"machines": machines})


FORWARD_MISTAKES = (
    Mistake("every-machine-adds-bias-part", {"features @ rows": "features @ rows + b", "total + b": "total"}),
    Mistake("bias-added-each-machine-once", {"features @ rows": "features @ rows + b"}),
    Mistake("bias-forgotten", {"total + b": "total"}),
    Mistake("bias-divided-number-machines", {"total + b": "total + b / len(W)"}),
    Mistake("parts-averaged", {"total + b": "total / len(W) + b"}),
    Mistake("no-parts-added-up", {"in all_reduce(parts)": "in parts"}),
    Mistake("first-machine-only", {"in all_reduce(parts)": "in [all_reduce(parts)[0], *parts[1:]]"}),
    Mistake("rows-one-machine-meet-features", {"zip(x, W, strict=True)": "zip(x, W[::-1], strict=True)"}),
)

BACKWARD_MISTAKES = (
    Mistake(
        "dy-added-up-over-machines",
        {
            "def row_split_backward(dy, x, W):": "def row_split_backward(dy, x, W):\n    dy = dy * len(W)",
        },
    ),
    Mistake(
        "dy-divided-number-machines",
        {
            "def row_split_backward(dy, x, W):": "def row_split_backward(dy, x, W):\n    dy = dy / len(W)",
        },
    ),
    Mistake(
        "dx-added-up-over-machines",
        {"dx = [dy @ rows.T for rows in W]": "dx = all_reduce([dy @ rows.T for rows in W])"},
    ),
    Mistake(
        "dw-added-up-over-machines",
        {"dW = [features.T @ dy for features in x]": "dW = all_reduce([features.T @ dy for features in x])"},
    ),
    Mistake(
        "db-added-up-over-machines",
        {"db = [dy.sum(axis=0) for _ in W]": "db = all_reduce([dy.sum(axis=0) for _ in W])"},
    ),
    Mistake("db-divided-number-machines", {"dy.sum(axis=0)": "dy.sum(axis=0) / len(W)"}),
    Mistake("db-averaged-over-tokens", {"dy.sum(axis=0)": "dy.mean(axis=0)"}),
    Mistake("machines-exchange-rows-w-dx", {"for rows in W]": "for rows in W[::-1]]"}),
)

EXERCISE = Exercise(
    name="25_row_split",
    hints=(
        "Two machines have one feature each: y = x_0 W_0 + x_1 W_1 + b. Which term needs which machine?",
        "Forward there is one sum over the machines, and the bias comes after it. The transpose of a sum is a copy: "
        "each part gets all of dy.",
        "part of y (N, C) = (N, F) (F, C);  dx (N, F) = (N, C) (C, F);  dW (F, C) = (F, N) (N, C);  db (C,) = a sum "
        "over the tokens of dy alone",
    ),
    tasks=(
        Task(
            function="row_split",
            outputs=(Output("y", ("machines", "N", "C"), sequence=True),),
            make=make_forward,
            sizes=SIZES,
            mistakes=FORWARD_MISTAKES,
        ),
        Task(
            function="row_split_backward",
            outputs=(
                Output("dx", ("machines", "N", "F"), sequence=True),
                Output("dW", ("machines", "F", "C"), sequence=True),
                Output("db", ("machines", "C"), sequence=True),
            ),
            make=make_backward,
            sizes=SIZES,
            linear=True,
            mistakes=BACKWARD_MISTAKES,
        ),
    ),
)
