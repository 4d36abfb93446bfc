"""The problems that 02_linear_backward is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, flat, sizes
from minitransformer.functional import linear_backward

SIZES = sizes("B T I O", (2, 3, 4, 5), (4, 2, 5, 3), (1, 1, 1, 1))
SQUARE = sizes("B T C", (2, 3, 4), (4, 2, 3), (1, 1, 1))  # where the shapes cannot help


def make_linear(rng, given, B, T, I, O):
    """A layer with a matrix that is not square."""
    inputs = {
        "x": rng.standard_normal((B, T, I)),
        "W": rng.standard_normal((I, O)),
        "b": rng.standard_normal(O),
    }
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.linear, inputs, ("x", "W", "b"), rng, ratios=ratios)


def make_mix(rng, given, B, T, C):
    """A square matrix without any symmetry."""
    inputs = {"x": rng.standard_normal((B, T, C)), "W": rng.standard_normal((C, C))}
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.mix, inputs, ("x", "W"), rng, ratios=ratios)


def adapt_linear(mine):
    """The learner's linear_backward(dy, (x, W)) as the library calls its own."""

    def backward(dy, cache, out=None):
        dx, dW, db = mine(flat(dy), (flat(cache.x), cache.W))
        dW = np.array(dW, dy.dtype, order="C")  # a copy, as the parameter will keep it
        if out is not None:
            out[...] = dW
            dW = out
        return np.asarray(dx, dy.dtype).reshape(cache.x.shape), dW, np.asarray(db, dy.dtype)

    return backward


EXERCISE = Exercise(
    name="02_linear_backward",
    see='lesson 02, "Follow each number to the loss"',
    hints=(
        "yₙₒ = Σᵢ xₙᵢ Wᵢₒ + bₒ for token n. In how many of the y does one entry of x occur? One of W? One of b?",
        "W and b are used by every token of every sequence: each token adds its share to dW and db.",
        "N = B T rows of tokens:  dx (N, I) = (N, O) (O, I);  dW (I, O) = (I, N) (N, O);  db (O,) = a sum of N rows",
    ),
    tasks=(
        Task(
            function="linear_backward",
            forward="linear",
            outputs=(Output("dx", "BTI"), Output("dW", "IO"), Output("db", "O")),
            make=make_linear,
            sizes=SIZES,
            linear=True,
            mistakes=(
                Mistake(
                    "db is a mean over the tokens",
                    "Raise b by a little: how many tokens move, and does each of them move by less for it?",
                    {"dy_rows.sum": "dy_rows.mean"},
                ),
                Mistake(
                    "db comes from the last token alone",
                    "Is there a loop with = where += is meant? What do all the other tokens say about b?",
                    {"dy_rows.sum(axis=0)": "dy_rows[-1]"},
                ),
                Mistake(
                    "db is summed over the sequences, not over their tokens",
                    "It would broadcast against b without a word. Which axes of y does b not have?",
                    {"dy_rows.sum": "dy.sum"},
                ),
                Mistake(
                    "there is a dW for each sequence",
                    "There is one W. What becomes of the gradients of those who share it?",
                    {"rows.T @ dy_rows": "x.swapaxes(-1, -2) @ dy"},
                ),
                Mistake(
                    "W is reshaped where it should be turned",
                    "The shape fits; where is the entry of row 0 and column 1 now, and where should it be?",
                    {"W.T": "W.reshape(W.shape[::-1])"},
                ),
                Mistake(
                    "x is reshaped where it should be turned",
                    "Make the rows tokens first. Does a reshape to (I, N) put the features of one token in a column?",
                    {"rows.T": "x.reshape(x.shape[-1], -1)"},
                ),
            ),
        ),
        Task(
            function="mix_backward",
            forward="mix",
            outputs=(Output("dx", "BTC"), Output("dW", "CC")),
            make=make_mix,
            sizes=SQUARE,
            linear=True,
            mistakes=(
                Mistake(
                    "dx goes back through W as it is",
                    "Forward, the sum runs over the rows of W. Feature i reaches the loss through which entries of W?",
                    {"return dx": "return dy @ cache[1]"},
                ),
                Mistake(
                    "dW is transposed",
                    "Wᵢₒ leads from feature i of x to feature o of y: which of the two should number the rows of dW?",
                    {"return dx, dW": "return dx, dW.T"},
                ),
                Mistake(
                    "dW is a mean over the tokens",
                    "If the loss wants a mean, it has taken it already. How many tokens use W?",
                    {"return dx, dW": "return dx, dW / dy[..., 0].size"},
                ),
            ),
        ),
    ),
    replaces={"linear_backward": Replacement(linear_backward, adapt_linear)},
)
