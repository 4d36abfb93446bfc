"""The problems, the hints and the known mistakes of 10_layer_norm_backward."""

import numpy as np
from exercise_problems import backward_problem, orthogonal, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.functional import layer_norm_backward

SIZES = sizes("B T C", (2, 3, 5), (4, 2, 3), (1, 1, 1))


def make_layer_norm(rng, given, B, T, C):
    """Tokens with a mean, γ and β of order one, and all of them different."""
    inputs = {
        "x": rng.standard_normal((B, T, C)) + 0.5,
        "gamma": rng.standard_normal(C),
        "beta": rng.standard_normal(C),
    }
    names = ("x", "gamma", "beta")
    return backward_problem(given.layer_norm, inputs, names, rng, ratios={"B T": B * T})


LAYER_NORM_MISTAKES = (
    Mistake("path-mu-missing", {" - mu_path": ""}),
    Mistake("path-sigma-missing", {" - sigma_path": ""}),
    Mistake("norm-constants", {" - mu_path - sigma_path": ""}),
    Mistake("gamma-outside-sums", {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("}),
    Mistake("gamma-forgotten", {"dx_hat = dy * gamma": "dx_hat = dy"}),
    Mistake(
        "path-through-sigma-divides-c",
        {"(dx_hat * x_hat).mean": "x_hat.shape[-1] / (x_hat.shape[-1] - 1) * (dx_hat * x_hat).mean"},
    ),
    Mistake("dx-divided-sigma-squared", {"/ sigma": "/ sigma**2"}),
    Mistake("gamma-in-dgamma", {"(dy * x_hat)": "(dy * gamma * x_hat)"}),
)


def adapt_layer_norm(mine):
    """For the library's cache, which has 1/σ, and for tokens that are not laid out as (B, T, C)."""

    def backward(dy, cache):
        x_hat, rstd, gamma = cache
        features = dy.shape[-1]
        sequences = dy.shape if dy.ndim == 3 else (1, -1, features)
        own = (x_hat.reshape(sequences), (1.0 / rstd).reshape(*sequences[:-1], 1), gamma)
        dx, dgamma, dbeta = (np.asarray(array, dtype=dy.dtype) for array in mine(dy.reshape(sequences), own))
        return dx.reshape(dy.shape), dgamma, dbeta

    return backward


EXERCISE = Exercise(
    name="10_layer_norm_backward",
    hints=(
        "In which ways does one feature x_j reach x̂_i? In which line of the forward does each way start?",
        "There are three paths: directly, through μ, and through σ. Each of the last two adds to dx one number per "
        "token, times 1 or times x̂. What must dx be orthogonal to?",
        "dx̂ = dy ∘ γ;  dx (B, T, C) = (dx̂ − a mean − x̂ ∘ another mean) / σ, both means (B, T, 1);  dgamma and "
        "dbeta (C,) = sums of (B, T, C) over B and T",
    ),
    tasks=(
        Task(
            function="layer_norm_backward",
            forward="layer_norm",
            outputs=(Output("dx", "BTC"), Output("dgamma", "C"), Output("dbeta", "C")),
            make=make_layer_norm,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dx sums to 0: adding one number to all features of a token changes nothing",
                    lambda outputs, problem: orthogonal(outputs[0], np.ones_like(outputs[0])),
                ),
                Invariant(
                    "each row of dx is orthogonal to x̂, except for eps: stretching a token about its mean changes "
                    "nothing",
                    lambda outputs, problem: orthogonal(outputs[0], problem.args[1][0]),
                ),
            ),
            mistakes=LAYER_NORM_MISTAKES,
        ),
    ),
    replaces={"layer_norm_backward": Replacement(layer_norm_backward, adapt_layer_norm)},
)
