"""The problems, the hints and the known mistakes of 02_linear_backward."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, flat, sizes
from minitransformer.functional import linear_backward

SIZES = sizes("B T C F", (2, 3, 4, 5), (4, 2, 5, 3), (1, 1, 1, 1))
SQUARE = sizes("B T C", (2, 3, 4), (4, 2, 3), (1, 1, 1))  # the shapes cannot help here


def make_linear(rng, given, B, T, C, F):
    """A layer with a matrix that is not square."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "W": rng.standard_normal((C, F)),
        "b": rng.standard_normal(F),
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
    hints=(
        "y_ni = Σ_c x_nc W_ci + b_i for token n. How many entries of y does one entry of x touch? One of W? One of b?",
        "Every token of every sequence uses W and b, so each token adds its share to dW and db.",
        "N = B T tokens as rows:  dx (N, C) = (N, F) (F, C);  dW (C, F) = (C, N) (N, F);  db (F,) = a sum of N rows",
    ),
    tasks=(
        Task(
            function="linear_backward",
            forward="linear",
            outputs=(Output("dx", "BTC"), Output("dW", "CF"), Output("db", "F")),
            make=make_linear,
            sizes=SIZES,
            linear=True,
            mistakes=(
                Mistake(
                    "db is a mean over the tokens",
                    "Raise b a little. How many tokens move? Does each of them move less because there are others?",
                    {"dy_rows.sum": "dy_rows.mean"},
                ),
                Mistake(
                    "db comes from the last token alone",
                    "Does your loop assign (=) where it should add (+=)? What do all the other tokens say about b?",
                    {"dy_rows.sum(axis=0)": "dy_rows[-1]"},
                ),
                Mistake(
                    "db is summed over the sequences, but not over their tokens",
                    "It would broadcast against b without any error. Which axes does y have that b lacks?",
                    {"dy_rows.sum": "dy.sum"},
                ),
                Mistake(
                    "there is a dW for each sequence",
                    "All sequences share one W. What happens to the gradients of several uses?",
                    {"rows.T @ dy_rows": "x.swapaxes(-1, -2) @ dy"},
                ),
                Mistake(
                    "W is reshaped where it should be transposed",
                    "The shape fits. But where is the entry of row 0 and column 1 now, and where should it be?",
                    {"W.T": "W.reshape(W.shape[::-1])"},
                ),
                Mistake(
                    "x is reshaped where it should be transposed",
                    "First make one row for each token. Does a reshape to (C, N) put the features of one token "
                    "into one column?",
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
                    "W is not transposed in dx",
                    "Feature c of x reaches output i through W_ci. Which index of W must the sum in dx run over: "
                    "the first or the second?",
                    {"return dx": "return dy @ cache[1]"},
                ),
                Mistake(
                    "dW is transposed",
                    "W_ci leads from feature c of x to output i. Which of the two should number the rows of dW?",
                    {"return dx, dW": "return dx, dW.T"},
                ),
                Mistake(
                    "dW is a mean over the tokens",
                    "If the loss takes a mean, dy contains it already. How many tokens use W?",
                    {"return dx, dW": "return dx, dW / dy[..., 0].size"},
                ),
            ),
        ),
    ),
    replaces={"linear_backward": Replacement(linear_backward, adapt_linear)},
)
