"""The problems, the hints and the known mistakes of 15_find_the_bug."""

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.functional import cross_entropy
from minitransformer.vocabulary import BOS, EOS, PAD

NORM_SIZES = sizes("B T C", (2, 3, 5), (4, 2, 3), (1, 1, 1))
ANSWER_SIZES = sizes("B V", (4, 9), (5, 7), (1, 4))
LOSS_SIZES = sizes("B T V", (4, 7, 9), (3, 5, 6), (1, 1, 4))


def make_layer_norm(rng, given, B, T, C):
    """A trained LayerNorm: gamma is far from 1."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "gamma": rng.uniform(0.3, 2.0, C) * rng.choice([-1.0, 1.0], C),
        "beta": rng.standard_normal(C),
    }
    return backward_problem(given.layer_norm, inputs, ("x", "gamma", "beta"), rng)


def make_answers(rng, given, B, V):
    """A model that knows the answer of each row by heart, and writes nonsense after any other beginning."""
    lengths = rng.permutation([int(rng.integers(5, 8)), 1, 4, 2, 0][:B])  # of letters; EOS comes after them
    rows, width = B, lengths.max() + 1
    place = np.arange(width)
    answers = np.where(place < lengths[:, None], rng.integers(EOS + 1, V, (rows, width)), PAD)
    answers[np.arange(rows), lengths] = EOS

    def model(ids):
        """Ids (B, T) -> logits (B, T, V), the first of which follow BOS."""
        logits = np.zeros((*ids.shape, V))
        known = np.concatenate([np.full((rows, 1), BOS), answers], axis=1)
        for b in range(rows):
            for t in range(ids.shape[1]):
                knows = t < width and answers[b, t] != PAD and np.array_equal(ids[b, : t + 1], known[b, : t + 1])
                logits[b, t, answers[b, t] if knows else EOS + 1 + (b + t) % (V - EOS - 1)] = 5.0
        return logits

    padding = {"ids": answers == PAD}
    places = {"after a row's EOS": padding, "at a row's EOS": {"ids": answers == EOS}}
    return Problem((model, rows, int(width) + 4), (answers,), places=places)


def make_loss(rng, given, B, T, V):
    """Sequences of different lengths. If T > 1, even the longest has one token of padding."""
    lengths = rng.permutation(np.linspace(1, max(T - 1, 1), B).round())
    real = np.arange(T) < lengths[:, None]
    targets = np.where(real, rng.integers(EOS, V, real.shape), PAD)
    logits = 2 * rng.standard_normal((*real.shape, V))
    ratios = {"the share of real tokens": real.mean(), "the number of real tokens": real.sum(), "tokens": real.size}
    return Problem((logits, targets), (cross_entropy(logits, targets, 0.0, PAD)[0],), ratios=ratios)


LAYER_NORM = Task(
    function="layer_norm_backward",
    forward="layer_norm",
    outputs=(Output("dx", "BTC"), Output("dgamma", "C"), Output("dbeta", "C")),
    make=make_layer_norm,
    sizes=NORM_SIZES,
    linear=True,
    mistakes=(
        Mistake("gamma-outside-sums", {"dx_hat = dy * gamma": "dx_hat = dy", "dx = (": "dx = gamma * ("}),
        Mistake("gamma-forgotten", {"dx_hat = dy * gamma": "dx_hat = dy"}),
        Mistake("only-path-through-mu-mended", {"x_hat * (dx_hat * x_hat)": "gamma * x_hat * (dy * x_hat)"}),
        Mistake("gamma-applied-twice", {"dx = (": "dx = gamma * ("}),
    ),
)

GREEDY = Task(
    function="greedy",
    outputs=(Output("ids", "BT", "int"),),
    make=make_answers,
    sizes=ANSWER_SIZES,
    mistakes=(
        Mistake("stops-with-first-row", {"done.all()": "done.any()"}),
        Mistake("goes-max-len-even-all-rows", {" and not done.all()": ""}),
        Mistake("goes-on-after-eos", {"        token[done] = PAD\n": ""}),
        Mistake(
            "eos-overwritten-padding",
            {"token[done] = PAD\n        done |= token == EOS": "done |= token == EOS\n        token[done] = PAD"},
        ),
    ),
)

LOSS = Task(
    function="masked_loss",
    outputs=(Output("loss", ""),),
    make=make_loss,
    sizes=LOSS_SIZES,
    mistakes=(
        Mistake("bug-still-padding-counted-mean", {".sum() / real.sum()": ".mean()"}),
        Mistake("padding-counted", {"(losses * real).sum() / real.sum()": "losses.mean()"}),
        Mistake(
            "each-sequence-counts-same-however",
            {"(losses * real).sum() / real.sum()": "((losses * real).sum(axis=1) / real.sum(axis=1)).mean()"},
        ),
        Mistake("sum-not-mean", {" / real.sum()": ""}),
    ),
)

EXERCISE = Exercise(
    name="15_find_the_bug",
    hints=(
        "When did it go well for the user, and when did it not? What is different, and which line notices the "
        "difference?",
        "In a new LayerNorm γ is 1, so a factor γ may be anywhere. In a batch of one row, `any` and `all` are the "
        "same. In a batch without padding, all tokens are real tokens.",
        "dx̂ (B, T, C) = the gradient of x̂, and no γ after that;  go on while some row of (B,) is not done;  loss "
        "= a sum over (B, T), divided by a count over (B, T)",
    ),
    tasks=(LAYER_NORM, GREEDY, LOSS),
)
