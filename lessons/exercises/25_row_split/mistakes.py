"""The problems, the hints and the known mistakes of 25_row_split."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
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
    Mistake(
        "every machine adds the bias to its part, so the sum contains it several times",
        "Three machines add b to their parts. How often is b in the sum of the three?",
        {"features @ rows": "features @ rows + b", "total + b": "total"},
    ),
    Mistake(
        "the bias is added on each machine, and once more to the sum",
        "How often is b in y on one machine? And in yours?",
        {"features @ rows": "features @ rows + b"},
    ),
    Mistake(
        "the bias is forgotten",
        "What is y if x is 0?",
        {"total + b": "total"},
    ),
    Mistake(
        "the bias is divided by the number of machines, but added after the sum",
        "Each machine has all of b, and adds it to what is already a whole. Is there anything to divide?",
        {"total + b": "total + b / len(W)"},
    ),
    Mistake(
        "the parts are averaged",
        "y is a sum over all features. Is a sum over some of them already as large as y?",
        {"total + b": "total / len(W) + b"},
    ),
    Mistake(
        "no parts are added up: each machine keeps its own",
        "Which features of x are in the y of the first machine?",
        {"in all_reduce(parts)": "in parts"},
    ),
    Mistake(
        "only the first machine gets the sum",
        "What does the second machine go on with, in the next layer?",
        {"in all_reduce(parts)": "in [all_reduce(parts)[0], *parts[1:]]"},
    ),
    Mistake(
        "the rows of one machine meet the features of another",
        "Row 0 of W belongs to feature 0 of x. Which machine has either of them?",
        {"zip(x, W, strict=True)": "zip(x, W[::-1], strict=True)"},
    ),
)

BACKWARD_MISTAKES = (
    Mistake(
        "dy is added up over the machines",
        "All machines have the same dy, of one loss. If three of them add it up, how many losses are counted?",
        {
            "def row_split_backward(dy, x, W):": "def row_split_backward(dy, x, W):\n    dy = dy * len(W)",
        },
    ),
    Mistake(
        "dy is divided by the number of machines",
        "Raise one entry of y, which all machines share, by a little. By how much does the loss of each of them grow?",
        {
            "def row_split_backward(dy, x, W):": "def row_split_backward(dy, x, W):\n    dy = dy / len(W)",
        },
    ),
    Mistake(
        "dx is added up over the machines",
        "The machines hold different features of x. What would the sum of two of their gradients be the gradient of?",
        {"dx = [dy @ rows.T for rows in W]": "dx = all_reduce([dy @ rows.T for rows in W])"},
    ),
    Mistake(
        "dW is added up over the machines",
        "Do two machines hold the same rows of W? If not, what does a sum of their gradients mean?",
        {"dW = [features.T @ dy for features in x]": "dW = all_reduce([features.T @ dy for features in x])"},
    ),
    Mistake(
        "db is added up over the machines",
        "Each machine has seen all tokens, and holds a copy of one b. How often was b added in the forward pass?",
        {"db = [dy.sum(axis=0) for _ in W]": "db = all_reduce([dy.sum(axis=0) for _ in W])"},
    ),
    Mistake(
        "db is divided by the number of machines",
        "If every machine moves its copy of b by a part of the gradient, how far has b moved?",
        {"dy.sum(axis=0)": "dy.sum(axis=0) / len(W)"},
    ),
    Mistake(
        "db is averaged over the tokens",
        "b is added to each of the N tokens. Is its gradient the sum of what they send back, or their mean?",
        {"dy.sum(axis=0)": "dy.mean(axis=0)"},
    ),
    Mistake(
        "the machines exchange their rows of W in dx",
        "Which rows of W did the features of this machine meet on the way forward?",
        {"for rows in W]": "for rows in W[::-1]]"},
    ),
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
