"""The problems that 10_layer_norm_backward is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, orthogonal, sizes
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
    return backward_problem(given.layer_norm, inputs, names, rng, ratios={"(B T)": B * T})


LAYER_NORM_MISTAKES = (
    Mistake(
        "the path through the mean is missing",
        "Raise one feature a little: does only its own centred value move, or do the others move, too?",
        {" - through_mean": ""},
    ),
    Mistake(
        "the path through the spread is missing",
        "σ depends on every feature of the token. What does each x̂_i do when σ grows?",
        {" - through_spread": ""},
    ),
    Mistake(
        "mean and spread are taken for constants",
        "A token [1, 0, 0, 0] whose 1 becomes 2 comes out the same. What must cancel the direct path?",
        {" - through_mean - through_spread": ""},
    ),
    Mistake(
        "γ is multiplied in after the means, not before them",
        "Which comes first on the way back from y: γ, or the means? Is a mean of products the product with a mean?",
        {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("},
    ),
    Mistake(
        "γ is forgotten in dx",
        "dy is the gradient of y. What is the gradient of x̂, if y = γ x̂ + β?",
        {"dx_hat = dy * gamma": "dx_hat = dy"},
    ),
    Mistake(
        "the path through the spread divides by C − 1",
        "By what does the given forward divide the sum of the squares?",
        {"(dx_hat * x_hat).mean": "x_hat.shape[-1] / (x_hat.shape[-1] - 1) * (dx_hat * x_hat).mean"},
    ),
    Mistake(
        "dx is divided by σ²",
        "Multiply a token by 10, and x̂ stays: how many powers of 10 smaller must dx become? How many powers of σ?",
        {"/ sigma": "/ sigma**2"},
    ),
    Mistake(
        "dgamma has γ in it",
        "y = γ x̂ + β. If γ moves by a little, by how much does y? Is γ itself in that?",
        {"(dy * x_hat)": "(dy * gamma * x_hat)"},
    ),
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
    see='lesson 10, "Three paths"',
    hints=(
        "By which ways does one feature x_j get into x̂_i? In which line of the forward does each of them begin?",
        "There are three: directly, through the mean, and through σ. Each of the last two puts one number per token "
        "into dx, the same for all of its features up to a factor. What must dx be orthogonal to?",
        "dx̂ = dy ∘ γ;  dx (C) = (dx̂ − a mean − x̂ ∘ another mean) / σ, both means of shape (B, T, 1);  dgamma and dbeta "
        "(C) = sums of (B, T, C) over B and T",
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
                    "each row of dx sums to 0: the same number added to all features of a token changes nothing",
                    lambda outputs, problem: orthogonal(outputs[0], np.ones_like(outputs[0])),
                ),
                Invariant(
                    "each row of dx is orthogonal to x̂, except for eps: a token stretched about its mean comes out the "
                    "same",
                    lambda outputs, problem: orthogonal(outputs[0], problem.args[1][0]),
                ),
            ),
            mistakes=LAYER_NORM_MISTAKES,
        ),
    ),
    replaces={"layer_norm_backward": Replacement(layer_norm_backward, adapt_layer_norm)},
)
