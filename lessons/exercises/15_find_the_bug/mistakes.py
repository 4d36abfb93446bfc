"""The problems that 15_find_the_bug is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import backward_problem, sizes
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
    """A model that knows an answer for each row by heart, and talks nonsense if it is led astray."""
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
    """Sequences of different lengths, the longest of which has one token of padding, too, if it has two."""
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
        Mistake(
            "the bug is still there: γ comes in after the means",
            "On the way back from y = γ x̂ + β, what comes first? Is the mean of a product the product with a mean?",
            {"g = dy * gamma": "g = dy", "dx = (": "dx = gamma * ("},
        ),
        Mistake(
            "γ has been removed from dx",
            "dy belongs to y. What belongs to x̂, if y = γ x̂ + β? Does γ play no part in it?",
            {"g = dy * gamma": "g = dy"},
        ),
        Mistake(
            "only the path through the mean is mended",
            "Two means are taken on the way back. Do both of them get the gradient of x̂?",
            {"x_hat * (g * x_hat)": "gamma * x_hat * (dy * x_hat)"},
        ),
        Mistake(
            "γ comes in twice",
            "Once before the means, and once more after them: how often does y have it?",
            {"dx = (": "dx = gamma * ("},
        ),
    ),
)

GREEDY = Task(
    function="greedy",
    outputs=(Output("ids", "BT", "int"),),
    make=make_answers,
    sizes=ANSWER_SIZES,
    mistakes=(
        Mistake(
            "the bug is still there: all rows stop with the first that ends",
            "The shortest answer is there. Who is still speaking then?",
            {"done.all()": "done.any()"},
        ),
        Mistake(
            "it runs on to max_len when all have ended",
            "Every row has said EOS. What is there left to ask the model for?",
            {" and not done.all()": ""},
        ),
        Mistake(
            "rows go on after their EOS",
            "The others are not ready yet. What is to stand in a row that is?",
            {"        token[done] = PAD\n": ""},
        ),
        Mistake(
            "EOS is overwritten with padding",
            "Who is done in the moment in which EOS is said? And which row is to be padded from there on?",
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
        Mistake(
            "the bug is still there: padding is counted in the mean",
            "The padding's losses are 0 now. By how many tokens is the sum divided?",
            {".sum() / real.sum()": ".mean()"},
        ),
        Mistake(
            "padding has a loss",
            "Is the model to learn to say padding? Who will ever ask it for that?",
            {"(losses * real).sum() / real.sum()": "losses.mean()"},
        ),
        Mistake(
            "each sequence counts the same, however long it is",
            "A sequence of one token and one of six: is a token of the first worth six of the other?",
            {"(losses * real).sum() / real.sum()": "((losses * real).sum(axis=1) / real.sum(axis=1)).mean()"},
        ),
        Mistake(
            "it is a sum, not a mean",
            "A batch twice as large: is it to have twice the loss of a token?",
            {" / real.sum()": ""},
        ),
    ),
)

EXERCISE = Exercise(
    name="15_find_the_bug",
    see="lesson 15, tools 4 and 6",
    hints=(
        "What did the user do when it went well, and what when it did not? What is different, and which line sees it?",
        "In a new LayerNorm γ is 1, and a factor of 1 may stand anywhere. In a batch of one row, any and all are the "
        "same. In a batch without padding, so are all tokens and the real tokens.",
        "g (B, T, C) = what belongs to x̂, and then no γ any more;  go on while there is a row of the (B,) that is not "
        "done;  loss = a sum over (B, T), divided by a count over (B, T)",
    ),
    tasks=(LAYER_NORM, GREEDY, LOSS),
)
