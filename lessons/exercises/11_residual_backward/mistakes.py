"""The problems, the hints and the known mistakes of 11_residual_backward."""

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
from minitransformer.layers import Residual

SIZES = sizes("B T C F", (2, 3, 4, 5), (3, 4, 5, 2), (1, 1, 3, 1), (1, 1, 1, 1))
P = 0.4  # how often dropout sets a feature to 0


def make_inputs(rng, B, T, C, F):
    """Tokens, a dropout mask with both of its values, and weights of order one."""
    keep = rng.permutation(np.arange(B * T * C) >= round(P * B * T * C)).reshape(B, T, C)
    return {
        "x": rng.standard_normal((B, T, C)),
        "mask": keep / (1.0 - P),
        "W_1": rng.standard_normal((C, F)),
        "W_2": rng.standard_normal((F, C)),
        "gamma": rng.standard_normal(C),
        "beta": rng.standard_normal(C),
    }


def make_post_norm(rng, given, **shape):
    """The backward of post_norm."""
    return backward_problem(given.post_norm, make_inputs(rng, **shape), ("x",), rng)


def make_pre_norm(rng, given, **shape):
    """The backward of pre_norm."""
    return backward_problem(given.pre_norm, make_inputs(rng, **shape), ("x",), rng)


POST_NORM_MISTAKES = (
    Mistake("identity-path-around-sub-layer", {"return dsum + ": "return "}),
    Mistake("identity-path-around-norm", {"return dsum": "return dy"}),
    Mistake("norm-of-sum-skipped", {"mask * dsum": "mask * dy"}),
    Mistake("no-path-goes-through-norm", {"back_norm(dy)": "dy"}),
    Mistake("dropout-mask-forgotten", {"mask * dsum": "dsum"}),
    Mistake("dropout-mask-comes-after-sub", {"back_sublayer(mask * dsum)": "mask * back_sublayer(dsum)"}),
    Mistake(
        "dropout-mask-applied-identity-path",
        {"back_norm(dy)": "mask * back_norm(dy)", "back_sublayer(mask * dsum)": "back_sublayer(dsum)"},
    ),
    Mistake(
        "backward-of-pre-norm",
        {
            "dsum = back_norm(dy)": "dnormed = back_sublayer(mask * dy)",
            "dsum + back_sublayer(mask * dsum)": "dy + back_norm(dnormed)",
        },
    ),
)

PRE_NORM_MISTAKES = (
    Mistake("identity-path-around-norm-sub", {"return dy + ": "return "}),
    Mistake("gradient-does-not-go", {"back_norm(dnormed)": "dnormed"}),
    Mistake("identity-path-goes-through-norm", {"dy + back_norm(dnormed)": "back_norm(dy + dnormed)"}),
    Mistake(
        "norm-sub-layer-come-order",
        {"back_sublayer(mask * dy)": "back_norm(dy)", "dy + back_norm(dnormed)": "dy + back_sublayer(mask * dnormed)"},
    ),
    Mistake("dropout-mask-forgotten", {"mask * dy": "dy"}),
    Mistake("dropout-mask-comes-after-sub", {"back_sublayer(mask * dy)": "mask * back_sublayer(dy)"}),
    Mistake(
        "backward-post-norm",
        {
            "dnormed = back_sublayer(mask * dy)": "dsum = back_norm(dy)",
            "dy + back_norm(dnormed)": "dsum + back_sublayer(mask * dsum)",
        },
    ),
)


def adapt_post_norm(mine):
    """A Residual.backward that joins the layer's own pieces with the learner's function, where it is post-norm."""
    before = Residual.backward

    def backward(self, dy, cache):
        if self.placement != "post":
            return before(self, dy, cache)
        contexts = []

        def back_sublayer(df):
            dx, dcontext = self._sublayer_backward(df, cache.sublayer)
            contexts.append(dcontext)
            return dx

        mask = self.dropout.backward(np.ones_like(dy), cache.dropout)
        pieces = (mask, back_sublayer, lambda dy: self.norm.backward(dy, cache.norm))
        dx = np.asarray(mine(dy, pieces), dtype=dy.dtype)
        if not contexts:  # a wrong answer that leaves the sub-layer out
            back_sublayer(np.zeros_like(dy))
        dcontext = [sum(parts) for parts in zip(*contexts, strict=True)]  # such as the memory's gradient
        return (dx, *dcontext) if dcontext else dx

    return backward


EXERCISE = Exercise(
    name="11_residual_backward",
    hints=(
        "How often does each of the two forwards use x? Draw an arrow for each use, up to y.",
        "Two paths lead from x to y, so dx is a sum of two terms. In which of the two models does the path around "
        "the sub-layer go through the norm? And on which path is the mask?",
        "All arrays are (B, T, C).  post-norm: dy → dsum by the norm; dx = dsum + (mask ∘ dsum → sub-layer).  "
        "pre-norm: dx = dy + (mask ∘ dy → dnormed by the sub-layer → norm)",
    ),
    tasks=(
        Task(
            function="post_norm_backward",
            forward="post_norm",
            outputs=(Output("dx", "BTC"),),
            make=make_post_norm,
            sizes=SIZES,
            linear=True,
            mistakes=POST_NORM_MISTAKES,
        ),
        Task(
            function="pre_norm_backward",
            forward="pre_norm",
            outputs=(Output("dx", "BTC"),),
            make=make_pre_norm,
            sizes=SIZES,
            linear=True,
            mistakes=PRE_NORM_MISTAKES,
        ),
    ),
    replaces={"post_norm_backward": Replacement(Residual.backward, adapt_post_norm)},
)
