"""The problems, the hints and the known mistakes of 17_lstm_backward."""

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Task

SIZES = sizes("B T C width", (2, 5, 4, 3), (3, 2, 5, 4), (1, 1, 1, 1), (2, 7, 1, 2))


def make_lstm(rng, given, B, T, C, width):
    """Tokens and weights of order one, so that no gate is quite open or shut."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "W_x": rng.standard_normal((C, 4 * width)) / np.sqrt(C),
        "W_y": rng.standard_normal((width, 4 * width)) / np.sqrt(width),
        "b": rng.standard_normal(4 * width),
    }
    steps = [np.broadcast_to(np.arange(T)[:, None] == T - 1, (B, T, C))]
    blocks = {
        f"in the columns of {name}": np.arange(4 * width) // width == number
        for number, name in enumerate(("read", "write", "forget", "new"))
    }
    places = {"at the last step": {"dx": steps[0]}, "before the last step": {"dx": ~steps[0]}}
    for where, columns in blocks.items():
        shapes = {"dW_x": (C, 4 * width), "dW_y": (width, 4 * width), "db": (4 * width,)}
        places[where] = {name: np.broadcast_to(columns, shape) for name, shape in shapes.items()}
    return backward_problem(given.lstm, inputs, ("x", "W_x", "W_y", "b"), rng, places=places)


MISTAKES = (
    Mistake("cell-hears-own-step-only", {"dcell = dcell + dsaid * read": "dcell = dsaid * read"}),
    Mistake("cell-hears-step-after-only", {"        dcell = dcell + dsaid * read * (1 - squashed**2)\n": ""}),
    Mistake("step-said-reaches-loss", {"        dsaid = dsums @ W_y.T\n": "        dsaid = 0 * dsaid\n"}),
    Mistake("tanh-between-cell-y", {"dsaid * read * (1 - squashed**2)": "dsaid * read"}),
    Mistake("derivative-tanh-taken-tanh-cell", {"(1 - squashed**2)": "(1 - np.tanh(squashed) ** 2)"}),
    Mistake(
        "gates-go-through-sigmoid-second",
        {
            "* read * (1 - read)": "* sigmoid(read) * (1 - sigmoid(read))",
            "* write * (1 - write)": "* sigmoid(write) * (1 - sigmoid(write))",
            "* forget * (1 - forget)": "* sigmoid(forget) * (1 - sigmoid(forget))",
        },
    ),
    Mistake(
        "sigmoids-gates-no-derivative",
        {" * read * (1 - read)": "", " * write * (1 - write)": "", " * forget * (1 - forget)": ""},
    ),
    Mistake("new-derivative-sigmoid", {"(1 - new**2)": "new * (1 - new)"}),
    Mistake("dw-y-made-step-t-says", {"said_before.T": "(read * squashed).T"}),
    Mistake("forget-gate-judged-new-cell", {"dcell * cell_before": "dcell * cell"}),
    Mistake("cells-gradient-goes-back-without", {"dcell = dcell * forget": "dcell = dcell"}),
    Mistake("cells-gradient-goes-back", {"dcell = dcell * forget": "dcell = dcell * write"}),
    Mistake(
        "write-gate-new-changed-places",
        {"dcell * new * write": "dcell * write * write", "dcell * write * (1 - new": "dcell * new * (1 - new"},
    ),
    Mistake(
        "gradients-weights-those-first-step",
        {"dW_x = dW_x + x": "dW_x = x", "dW_y = dW_y + said": "dW_y = said", "db = db + dsums": "db = dsums"},
    ),
    Mistake(
        "gradients-weights-averaged-over-steps",
        {"return dx, dW_x, dW_y, db": "return dx, dW_x / len(steps), dW_y / len(steps), db / len(steps)"},
    ),
    Mistake("walk-goes-first-step-last", {"reversed(range(len(steps)))": "range(len(steps))"}),
)

EXERCISE = Exercise(
    name="17_lstm_backward",
    hints=(
        "Step t computes four blocks, a cell and what it says. Write down for each of these six: who uses it?",
        "The cell is used by what its own step says and by the next cell. What a step says is used by the loss and by "
        "the four blocks of the next step. Each pair of paths adds. What do the last steps get from a next one?",
        "dcell (B, width) = what came back + dy-like · gate · slope;  each block (B, width) = (dcell or dy-like) · its "
        "factor · its own slope;  dx (B, C) = (B, 4 width) (4 width, C);  dW_x (C, 4 width) and dW_y (width, 4 width) "
        "= sums over the steps",
    ),
    tasks=(
        Task(
            function="lstm_backward",
            forward="lstm",
            outputs=(
                Output("dx", "BTC"),
                Output("dW_x", ("C", "4 width")),
                Output("dW_y", ("width", "4 width")),
                Output("db", ("4 width",)),
            ),
            make=make_lstm,
            sizes=SIZES,
            linear=True,
            mistakes=MISTAKES,
        ),
    ),
)
