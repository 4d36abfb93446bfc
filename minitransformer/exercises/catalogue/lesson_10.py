"""Lesson 10: the backward passes of LayerNorm and RMSNorm."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem
from minitransformer.exercises.replacement import Replacement
from minitransformer.functional import layer_norm_backward

B, T, C = 2, 3, 5


def make_layer_norm(rng, given):
    """Tokens with a mean, γ and β of order one, and all of them different."""
    inputs = {
        "x": rng.standard_normal((B, T, C)) + 0.5,
        "gamma": rng.standard_normal(C),
        "beta": rng.standard_normal(C),
    }
    names = ("x", "gamma", "beta")
    return backward_problem(given.layer_norm, inputs, names, rng, ratios={"(B T)": B * T})


def make_rms_norm(rng, given):
    """The same without β."""
    inputs = {"x": rng.standard_normal((B, T, C)) + 0.5, "gamma": rng.standard_normal(C)}
    return backward_problem(given.rms_norm, inputs, ("x", "gamma"), rng, ratios={"(B T)": B * T})


def mean(a):
    """Over the features."""
    return a.mean(axis=-1, keepdims=True)


def over_tokens(a):
    """The sum over all tokens."""
    return a.sum(axis=(0, 1))


def orthogonal(a, b):
    """Whether all rows of two arrays are, but for a hundredth."""
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return bool((np.abs((a * b).sum(axis=-1)) <= 0.01 * lengths).all())


def without_the_mean_path(dy, cache):
    """As if the mean were a constant."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    return (g - x_hat * mean(g * x_hat)) / sigma, over_tokens(dy * x_hat), over_tokens(dy)


def without_the_spread_path(dy, cache):
    """As if σ were a constant."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    return (g - mean(g)) / sigma, over_tokens(dy * x_hat), over_tokens(dy)


def with_the_direct_path_only(dy, cache):
    """As if both were."""
    x_hat, sigma, gamma = cache
    return dy * gamma / sigma, over_tokens(dy * x_hat), over_tokens(dy)


def with_gamma_outside(dy, cache):
    """γ behind the means, where it belongs in front."""
    x_hat, sigma, gamma = cache
    dx = gamma * (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma
    return dx, over_tokens(dy * x_hat), over_tokens(dy)


def without_gamma(dy, cache):
    """As if y were x̂ + β."""
    x_hat, sigma, _ = cache
    return (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma, over_tokens(dy * x_hat), over_tokens(dy)


def with_one_feature_less(dy, cache):
    """The variance as statistics has it."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    through_spread = x_hat * (g * x_hat).sum(axis=-1, keepdims=True) / (x_hat.shape[-1] - 1)
    return (g - mean(g) - through_spread) / sigma, over_tokens(dy * x_hat), over_tokens(dy)


def by_the_variance(dy, cache):
    """σ² where σ should be."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    return (g - mean(g) - x_hat * mean(g * x_hat)) / sigma**2, over_tokens(dy * x_hat), over_tokens(dy)


def with_dgamma_from_g(dy, cache):
    """γ in its own gradient."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    return (g - mean(g) - x_hat * mean(g * x_hat)) / sigma, over_tokens(g * x_hat), over_tokens(dy)


def rms_without_the_spread_path(dy, cache):
    """As if ρ were a constant."""
    x_hat, rho, gamma = cache
    return dy * gamma / rho, over_tokens(dy * x_hat)


def rms_as_layer_norm(dy, cache):
    """With a mean that the forward does not take."""
    x_hat, rho, gamma = cache
    g = dy * gamma
    return (g - mean(g) - x_hat * mean(g * x_hat)) / rho, over_tokens(dy * x_hat)


def rms_with_gamma_outside(dy, cache):
    """γ behind the mean."""
    x_hat, rho, gamma = cache
    return gamma * (dy - x_hat * mean(dy * x_hat)) / rho, over_tokens(dy * x_hat)


def rms_with_a_sum(dy, cache):
    """As if ρ² were the sum of the squares."""
    x_hat, rho, gamma = cache
    g = dy * gamma
    return (g - x_hat * (g * x_hat).sum(axis=-1, keepdims=True)) / rho, over_tokens(dy * x_hat)


def rms_divided_on_one_path(dy, cache):
    """1/ρ on the direct path alone."""
    x_hat, rho, gamma = cache
    g = dy * gamma
    return g / rho - x_hat * mean(g * x_hat), over_tokens(dy * x_hat)


def rms_with_dgamma_from_x(dy, cache):
    """The token as it came in."""
    x_hat, rho, gamma = cache
    g = dy * gamma
    return (g - x_hat * mean(g * x_hat)) / rho, over_tokens(dy * x_hat * rho)


LAYER_NORM_MISTAKES = (
    Mistake(
        "the path through the mean is missing",
        "Raise one feature a little: does only its own centred value move, or do the others move, too?",
        without_the_mean_path,
    ),
    Mistake(
        "the path through the spread is missing",
        "σ depends on every feature of the token. What does each x̂_i do when σ grows?",
        without_the_spread_path,
    ),
    Mistake(
        "mean and spread are taken for constants",
        "A token [1, 0, 0, 0] whose 1 becomes 2 comes out the same. What must cancel the direct path?",
        with_the_direct_path_only,
    ),
    Mistake(
        "γ is multiplied in behind the means, not in front",
        "Which comes first on the way back from y: γ, or the means? Is a mean of products the product with a mean?",
        with_gamma_outside,
    ),
    Mistake(
        "γ is forgotten in dx",
        "dy is the gradient of y. What is the gradient of x̂, if y = γ x̂ + β?",
        without_gamma,
    ),
    Mistake(
        "the path through the spread divides by C − 1",
        "By what does the given forward divide the sum of the squares?",
        with_one_feature_less,
    ),
    Mistake(
        "dx is divided by σ²",
        "Multiply a token by 10, and x̂ stays: how many powers of 10 smaller must dx become? How many powers of σ?",
        by_the_variance,
    ),
    Mistake(
        "dgamma has γ in it",
        "y = γ x̂ + β. If γ moves by a little, by how much does y? Is γ itself in that?",
        with_dgamma_from_g,
    ),
)

RMS_NORM_MISTAKES = (
    Mistake(
        "the path through ρ is missing",
        "ρ depends on every feature of the token. What does each x̂_i do when ρ grows?",
        rms_without_the_spread_path,
    ),
    Mistake(
        "a mean is subtracted, as in LayerNorm",
        "Look at the forward again: is there a mean of x in it that the gradient could go through?",
        rms_as_layer_norm,
    ),
    Mistake(
        "γ is multiplied in behind the mean, not in front",
        "Which comes first on the way back from y: γ, or the mean? Is a mean of products the product with a mean?",
        rms_with_gamma_outside,
    ),
    Mistake(
        "the path through ρ has a sum where a mean should be",
        "ρ² is a mean of squares. If one of C squares grows by 1, by how much does ρ²?",
        rms_with_a_sum,
    ),
    Mistake(
        "only the direct path is divided by ρ",
        "x̂ = x/ρ: how does x̂ change with ρ, how ρ with x, and how many ρ stand below in the product of the two?",
        rms_divided_on_one_path,
    ),
    Mistake(
        "dgamma is made with x",
        "What does γ multiply in the forward: the token as it came in, or what became of it?",
        rms_with_dgamma_from_x,
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


LAYER_NORM = Exercise(
    name="10_layer_norm_backward",
    see="lesson 10, parts 1 to 3",
    hints=(
        "By which ways does one feature x_j get into x̂_i? In which line of the forward does each of them begin?",
        "There are three: directly, through the mean, and through σ. Each of the last two puts one number per token "
        "into dx, the same for all of its features but for a factor. What must dx be orthogonal to?",
        "g = dy ∘ γ;  dx (C) = (g − a mean − x̂ ∘ another mean) / σ, both means of shape (B, T, 1);  dgamma and dbeta "
        "(C) = sums of (B, T, C) over B and T",
    ),
    tasks=(
        Task(
            function="layer_norm_backward",
            forward="layer_norm",
            outputs=(Output("dx", "BTC"), Output("dgamma", "C"), Output("dbeta", "C")),
            make=make_layer_norm,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dx sums to 0: the same number added to all features of a token changes nothing",
                    lambda outputs, problem: orthogonal(outputs[0], np.ones((B, T, C))),
                ),
                Invariant(
                    "each row of dx is orthogonal to x̂, but for eps: a token stretched about its mean comes out the "
                    "same",
                    lambda outputs, problem: orthogonal(outputs[0], problem.args[1][0]),
                ),
            ),
            mistakes=LAYER_NORM_MISTAKES,
        ),
    ),
    replaces={"layer_norm_backward": Replacement(layer_norm_backward, adapt_layer_norm)},
)

RMS_NORM = Exercise(
    name="10_rms_norm_backward",
    see='lesson 10, part 1 and the section "RMSNorm: one path less"',
    hints=(
        "What is in LayerNorm's forward and not in this one? Which of the three paths goes with it?",
        "Two paths are left, the direct one and the one through ρ. The second puts one number per token into dx, the "
        "same for all of its features but for a factor. What must dx be orthogonal to?",
        "g = dy ∘ γ;  dx (C) = (g − x̂ ∘ a mean) / ρ, the mean of shape (B, T, 1);  dgamma (C) = a sum of (B, T, C) "
        "over B and T",
    ),
    tasks=(
        Task(
            function="rms_norm_backward",
            forward="rms_norm",
            outputs=(Output("dx", "BTC"), Output("dgamma", "C")),
            make=make_rms_norm,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dx is orthogonal to x̂, but for eps: a token of another length comes out the same",
                    lambda outputs, problem: orthogonal(outputs[0], problem.args[1][0]),
                ),
            ),
            mistakes=RMS_NORM_MISTAKES,
        ),
    ),
)

EXERCISES = (LAYER_NORM, RMS_NORM)
