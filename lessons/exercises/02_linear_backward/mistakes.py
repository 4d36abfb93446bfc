"""The problems, the hints and the known mistakes of 02_linear_backward."""

import numpy as np
from exercise_problems import backward_problem, flat, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
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
                Mistake("db-mean-over-tokens", {"dy_rows.sum": "dy_rows.mean"}),
                Mistake("db-comes-last-token-alone", {"dy_rows.sum(axis=0)": "dy_rows[-1]"}),
                Mistake("db-summed-over-sequences", {"dy_rows.sum": "dy.sum"}),
                Mistake("dw-each-sequence", {"rows.T @ dy_rows": "x.swapaxes(-1, -2) @ dy"}),
                Mistake("weight-reshaped", {"W.T": "W.reshape(W.shape[::-1])"}),
                Mistake("input-reshaped", {"rows.T": "x.reshape(x.shape[-1], -1)"}),
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
                Mistake("w-not-transposed-dx", {"return dx": "return dy @ cache[1]"}),
                Mistake("dw-transposed", {"return dx, dW": "return dx, dW.T"}),
                Mistake("dw-mean-over-tokens", {"return dx, dW": "return dx, dW / dy[..., 0].size"}),
            ),
        ),
    ),
    replaces={"linear_backward": Replacement(linear_backward, adapt_linear)},
)
