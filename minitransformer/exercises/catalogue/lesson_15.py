"""Lesson 15: three functions with a bug each."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Mistake, Output, Problem, Task, backward_problem
from minitransformer.functional import cross_entropy
from minitransformer.vocabulary import BOS, EOS, PAD

B, T, C = 2, 3, 5
V = 9  # tokens; letters begin behind EOS


def make_layer_norm(rng, given):
    """A trained LayerNorm: gamma is far from 1."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "gamma": rng.uniform(0.3, 2.0, C) * rng.choice([-1.0, 1.0], C),
        "beta": rng.standard_normal(C),
    }
    return backward_problem(given.layer_norm, inputs, ("x", "gamma", "beta"), rng)


def with_gamma_behind_the_means(dy, cache):
    """As it was handed out."""
    x_hat, sigma, gamma = cache
    dx = gamma * (dy - dy.mean(axis=-1, keepdims=True) - x_hat * (dy * x_hat).mean(axis=-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def without_gamma(dy, cache):
    """It is out of the way."""
    x_hat, sigma, gamma = cache
    dx = (dy - dy.mean(axis=-1, keepdims=True) - x_hat * (dy * x_hat).mean(axis=-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def with_gamma_in_one_mean(dy, cache):
    """The path through the mean is mended, the other is not."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    through_spread = gamma * x_hat * (dy * x_hat).mean(axis=-1, keepdims=True)
    dx = (g - g.mean(axis=-1, keepdims=True) - through_spread) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def with_gamma_twice(dy, cache):
    """In front of the means, and still behind them."""
    x_hat, sigma, gamma = cache
    g = dy * gamma
    dx = gamma * (g - g.mean(axis=-1, keepdims=True) - x_hat * (g * x_hat).mean(axis=-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def make_answers(rng, given):
    """A model that knows an answer for each row by heart, and talks nonsense if it is led astray."""
    lengths = rng.permutation([1, 2, 4, int(rng.integers(5, 8))])  # of letters; EOS comes behind them
    rows, width = len(lengths), lengths.max() + 1
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
    places = {"behind a row's EOS": padding, "at a row's EOS": {"ids": answers == EOS}}
    return Problem((model, rows, int(width) + 4), (answers,), places=places)


def stopping_at_the_first_end(model, B, max_len):
    """As it was handed out."""
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len and not done.any():
        token = model(ids)[:, -1].argmax(axis=-1)
        token[done] = PAD
        done |= token == EOS
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]


def never_stopping(model, B, max_len):
    """The condition is gone."""
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len:
        token = model(ids)[:, -1].argmax(axis=-1)
        token[done] = PAD
        done |= token == EOS
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]


def speaking_on(model, B, max_len):
    """The padding is gone."""
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len and not done.all():
        token = model(ids)[:, -1].argmax(axis=-1)
        done |= token == EOS
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]


def padding_over_the_end(model, B, max_len):
    """The two lines in the other order."""
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len and not done.all():
        token = model(ids)[:, -1].argmax(axis=-1)
        done |= token == EOS
        token[done] = PAD
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]


def make_loss(rng, given):
    """Four sequences of different lengths, the longest of which has one token of padding, too."""
    lengths = rng.permutation([1, 2, 4, 6])
    real = np.arange(7) < lengths[:, None]
    targets = np.where(real, rng.integers(EOS, V, real.shape), PAD)
    logits = 2 * rng.standard_normal((*real.shape, V))
    ratios = {"the share of real tokens": real.mean(), "the number of real tokens": real.sum(), "tokens": real.size}
    return Problem((logits, targets), (cross_entropy(logits, targets, 0.0, PAD)[0],), ratios=ratios)


def losses_of(logits, targets):
    """The part of the handed-out function that is right -> (B, T)."""
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]


def over_all_tokens(logits, targets):
    """As it was handed out."""
    return (losses_of(logits, targets) * (targets != PAD)).mean()


def without_mask(logits, targets):
    """The plain mean."""
    return losses_of(logits, targets).mean()


def over_the_sequences(logits, targets):
    """The mean of the sequences' means."""
    real = targets != PAD
    return ((losses_of(logits, targets) * real).sum(axis=1) / real.sum(axis=1)).mean()


def as_a_sum(logits, targets):
    """No mean at all."""
    return (losses_of(logits, targets) * (targets != PAD)).sum()


LAYER_NORM = Task(
    function="layer_norm_backward",
    forward="layer_norm",
    outputs=(Output("dx", "BTC"), Output("dgamma", "C"), Output("dbeta", "C")),
    make=make_layer_norm,
    linear=True,
    mistakes=(
        Mistake(
            "the bug is still in: γ comes in behind the means",
            "On the way back from y = γ x̂ + β, what comes first? Is the mean of a product the product with a mean?",
            with_gamma_behind_the_means,
        ),
        Mistake(
            "γ has been removed from dx",
            "dy belongs to y. What belongs to x̂, if y = γ x̂ + β? Does γ play no part in it?",
            without_gamma,
        ),
        Mistake(
            "only the path through the mean is mended",
            "Two means are taken on the way back. Do both of them get the gradient of x̂?",
            with_gamma_in_one_mean,
        ),
        Mistake(
            "γ comes in twice",
            "In front of the means, and behind them once more: how often does y have it?",
            with_gamma_twice,
        ),
    ),
)

GREEDY = Task(
    function="greedy",
    outputs=(Output("ids", "BT"),),
    make=make_answers,
    mistakes=(
        Mistake(
            "the bug is still in: all rows stop with the first that ends",
            "The shortest answer is there. Who is still speaking then?",
            stopping_at_the_first_end,
        ),
        Mistake(
            "it runs on to max_len when all have ended",
            "Every row has said EOS. What is there left to ask the model for?",
            never_stopping,
        ),
        Mistake(
            "rows speak on behind their EOS",
            "The others are not ready yet. What is to stand in a row that is?",
            speaking_on,
        ),
        Mistake(
            "EOS is overwritten with padding",
            "Who is done in the moment in which EOS is said? And which row is to be padded from there on?",
            padding_over_the_end,
        ),
    ),
)

LOSS = Task(
    function="masked_loss",
    outputs=(Output("loss", ""),),
    make=make_loss,
    mistakes=(
        Mistake(
            "the bug is still in: padding is counted in the mean",
            "The padding's losses are 0 now. By how many tokens is the sum divided?",
            over_all_tokens,
        ),
        Mistake(
            "padding has a loss",
            "Is the model to learn to say padding? Who will ever ask it for that?",
            without_mask,
        ),
        Mistake(
            "each sequence counts the same, however long it is",
            "A sequence of one token and one of six: is a token of the first worth six of the other?",
            over_the_sequences,
        ),
        Mistake(
            "it is a sum, not a mean",
            "A batch twice as large: is it to have twice the loss of a token?",
            as_a_sum,
        ),
    ),
)

BUGS = Exercise(
    name="15_find_the_bug",
    see="lesson 15, parts 4 and 6",
    hints=(
        "What did the user do when it went well, and what when it did not? What is different, and which line sees it?",
        "In a new LayerNorm γ is 1, and a factor of 1 may stand anywhere. In a batch of one row, any and all are the "
        "same. In a batch without padding, so are all tokens and the real tokens.",
        "g (B, T, C) = what belongs to x̂, and then no γ any more;  go on while there is a row of the (B,) that is not "
        "done;  loss = a sum over (B, T), divided by a count over (B, T)",
    ),
    tasks=(LAYER_NORM, GREEDY, LOSS),
)

EXERCISES = (BUGS,)
