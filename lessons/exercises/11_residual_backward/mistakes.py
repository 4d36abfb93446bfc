"""The problems that 11_residual_backward is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, sizes
from minitransformer.layers import Residual

SIZES = sizes("B T C F", (2, 3, 4, 5), (3, 4, 5, 2), (1, 1, 3, 1), (1, 1, 1, 1))
P = 0.4  # how often dropout sets a feature to 0


def make_inputs(rng, B, T, C, F):
    """Tokens, a dropout mask with both of its values, and weights of order one."""
    keep = rng.permutation(np.arange(B * T * C) >= round(P * B * T * C)).reshape(B, T, C)
    return {
        "x": rng.standard_normal((B, T, C)),
        "m": keep / (1.0 - P),
        "W1": rng.standard_normal((C, F)),
        "W2": rng.standard_normal((F, C)),
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
    Mistake(
        "the identity path, past the sub-layer, is forgotten",
        "x is used twice in the forward. Which of its two uses is not in your sum?",
        {"return dsum + ": "return "},
    ),
    Mistake(
        "the identity path does not go through the norm",
        "Where does x enter the sum: before the norm, or after it? So is there a way from y to x past the norm?",
        {"return dsum": "return dy"},
    ),
    Mistake(
        "the sub-layer gets the gradient of y, not that of the sum",
        "f is a part of the sum, and the sum goes into the norm. Which gradient has reached the sum?",
        {"m * dsum": "m * dy"},
    ),
    Mistake(
        "no path goes through the norm",
        "The last line of the forward is a LayerNorm. Is what comes out of it the sum itself?",
        {"back_norm(dy)": "dy"},
    ),
    Mistake(
        "the dropout mask is forgotten",
        "Where m is 0, does that feature of the sub-layer's output reach y at all?",
        {"m * dsum": "dsum"},
    ),
    Mistake(
        "the dropout mask comes after the sub-layer on the way back",
        "Forward, m is multiplied on after the sub-layer. Which of the two comes first on the way back?",
        {"back_sublayer(m * dsum)": "m * back_sublayer(dsum)"},
    ),
    Mistake(
        "the dropout mask lies on the identity path, too",
        "What is multiplied by m in the forward: the sub-layer's output, or the sum?",
        {"back_norm(dy)": "m * back_norm(dy)", "back_sublayer(m * dsum)": "back_sublayer(dsum)"},
    ),
    Mistake(
        "this is the backward of pre-norm",
        "In this forward, what goes into the norm: x alone, or the sum?",
        {"dsum = back_norm(dy)": "dn = back_sublayer(m * dy)", "dsum + back_sublayer(m * dsum)": "dy + back_norm(dn)"},
    ),
)

PRE_NORM_MISTAKES = (
    Mistake(
        "the identity path, past norm and sub-layer, is forgotten",
        "y = x + ...: what does the x that stands there get?",
        {"return dy + ": "return "},
    ),
    Mistake(
        "the gradient does not go through the norm",
        "The sub-layer did not read x, but n. How do you get from dn to dx?",
        {"back_norm(dn)": "dn"},
    ),
    Mistake(
        "the identity path goes through the norm",
        "Which x stands in the sum: the one before the norm, or the one after it?",
        {"dy + back_norm(dn)": "back_norm(dy + dn)"},
    ),
    Mistake(
        "norm and sub-layer are gone through in the order of the forward",
        "Which of the two did the forward do last? Which comes first on the way back?",
        {"back_sublayer(m * dy)": "back_norm(dy)", "dy + back_norm(dn)": "dy + back_sublayer(m * dn)"},
    ),
    Mistake(
        "the dropout mask is forgotten",
        "Where m is 0, does that feature of the sub-layer's output reach y at all?",
        {"m * dy": "dy"},
    ),
    Mistake(
        "the dropout mask comes after the sub-layer on the way back",
        "Forward, m is multiplied on after the sub-layer. Which of the two comes first on the way back?",
        {"back_sublayer(m * dy)": "m * back_sublayer(dy)"},
    ),
    Mistake(
        "this is the backward of post-norm",
        "In this forward, what goes into the norm: x alone, or the sum?",
        {"dn = back_sublayer(m * dy)": "dsum = back_norm(dy)", "dy + back_norm(dn)": "dsum + back_sublayer(m * dsum)"},
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

        m = self.dropout.backward(np.ones_like(dy), cache.dropout)
        pieces = (m, back_sublayer, lambda dy: self.norm.backward(dy, cache.norm))
        dx = np.asarray(mine(dy, pieces), dtype=dy.dtype)
        if not contexts:  # a wrong answer that leaves the sub-layer out
            back_sublayer(np.zeros_like(dy))
        dcontext = [sum(parts) for parts in zip(*contexts, strict=True)]  # such as the memory's gradient
        return (dx, *dcontext) if dcontext else dx

    return backward


EXERCISE = Exercise(
    name="11_residual_backward",
    see='lesson 11, "The norm that moved"',
    hints=(
        "How often is x used in each of the two forwards? Draw an arrow for each use, as far as y.",
        "Two paths lead from x to y, so dx is a sum of two. In which of the two models does the one past the sub-layer "
        "go through the norm? And on which path does the mask lie?",
        "all of them (B, T, C).  Post: dy → dsum by the norm; dx = dsum + (m ∘ dsum → sub-layer).  "
        "Pre: dx = dy + (m ∘ dy → dn by the sub-layer → norm)",
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
    replaces={"post_norm_backward": Replacement(Residual.backward, adapt_post_norm, owner=Residual)},
)
