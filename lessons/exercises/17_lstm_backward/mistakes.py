"""The problems, the hints and the known mistakes of 17_lstm_backward."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, sizes

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
    Mistake(
        "the cell hears its own step only, nothing from the step after it",
        "Two paths lead out of a cell: into what its step says, and where else?",
        {"dcell = dcell + dsaid * read": "dcell = dsaid * read"},
    ),
    Mistake(
        "the cell hears the step after it only, nothing from what its own step says",
        "y is read · tanh(cell). If the loss asks for another y, does the cell not hear of it?",
        {"        dcell = dcell + dsaid * read * (1 - squashed**2)\n": ""},
    ),
    Mistake(
        "what a step said reaches the loss through y only, not through the gates of the next step",
        "The next step multiplies what this one said by W_y. How does the gradient come back from there?",
        {"        dsaid = dsums @ W_y.T\n": "        dsaid = 0 * dsaid\n"},
    ),
    Mistake(
        "the tanh between the cell and y has no derivative",
        "Raise a cell that is already at 5. Does tanh(cell) grow as fast as the cell?",
        {"dsaid * read * (1 - squashed**2)": "dsaid * read"},
    ),
    Mistake(
        "the derivative of that tanh is taken of tanh(cell), which has been through tanh already",
        "tanh' is 1 − tanh². Which number do you square: the cell, its tanh, or the tanh of its tanh?",
        {"(1 - squashed**2)": "(1 - np.tanh(squashed) ** 2)"},
    ),
    Mistake(
        "the gates go through the sigmoid a second time",
        "The cache holds the gates after their sigmoid. In gate · (1 − gate), what must `gate` be?",
        {
            "* read * (1 - read)": "* sigmoid(read) * (1 - sigmoid(read))",
            "* write * (1 - write)": "* sigmoid(write) * (1 - sigmoid(write))",
            "* forget * (1 - forget)": "* sigmoid(forget) * (1 - sigmoid(forget))",
        },
    ),
    Mistake(
        "the sigmoids of the gates have no derivative",
        "dx multiplies the sums by W_x, and the sums stand before the sigmoid. Has your gradient come back to them, or "
        "only to the gates?",
        {" * read * (1 - read)": "", " * write * (1 - write)": "", " * forget * (1 - forget)": ""},
    ),
    Mistake(
        "what is new has the derivative of a sigmoid",
        "Three of the four blocks go through a sigmoid. Through what does the fourth go?",
        {"(1 - new**2)": "new * (1 - new)"},
    ),
    Mistake(
        "dW_y is made with what step t says, not with what it has heard",
        "Which y is multiplied by W_y in step t: its own, or that of the step before?",
        {"said_before.T": "(read * squashed).T"},
    ),
    Mistake(
        "the forget gate is judged by the new cell, not by the old one",
        "In forget · cell_before + write · new, which number is the factor of forget?",
        {"dcell * cell_before": "dcell * cell"},
    ),
    Mistake(
        "the cell's gradient goes back without the forget gate",
        "If the gate is 0.1, a tenth of the old cell is in the new one. How much of the gradient goes back?",
        {"dcell = dcell * forget": "dcell = dcell"},
    ),
    Mistake(
        "the cell's gradient goes back through the write gate",
        "Which of the two gates stands before the old cell?",
        {"dcell = dcell * forget": "dcell = dcell * write"},
    ),
    Mistake(
        "the write gate and what is new have changed places",
        "In write · new, the factor of write is new. And in your gradient?",
        {"dcell * new * write": "dcell * write * write", "dcell * write * (1 - new": "dcell * new * (1 - new"},
    ),
    Mistake(
        "the gradients of the weights are those of the first step alone",
        "All T steps use the same matrices. What becomes of the gradients of several uses?",
        {"dW_x = dW_x + x": "dW_x = x", "dW_y = dW_y + said": "dW_y = said", "db = db + dsums": "db = dsums"},
    ),
    Mistake(
        "the gradients of the weights are averaged over the steps",
        "If a weight is used T times, do its gradients add up, or is their mean taken?",
        {"return dx, dW_x, dW_y, db": "return dx, dW_x / len(steps), dW_y / len(steps), db / len(steps)"},
    ),
    Mistake(
        "the walk goes from the first step to the last",
        "Step t needs what comes back from step t + 1. With which step can you begin?",
        {"reversed(range(len(steps)))": "range(len(steps))"},
    ),
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
