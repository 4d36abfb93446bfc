"""Lesson 03: the backward passes of softmax, and of cross-entropy with label smoothing and padding."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem
from minitransformer.exercises.replacement import Replacement
from minitransformer.functional import cross_entropy_backward, softmax_backward

N, V = 6, 5
PAD = 0


def each_row_sums_to_zero(outputs, problem):
    """Whether the gradient of each row's logits sums to 0."""
    return np.abs(outputs[0].sum(axis=-1)).max() < 1e-9


def make_softmax(rng, given):
    """Logits of order one."""
    return backward_problem(given.softmax, {"z": rng.standard_normal((N, V))}, ("z",), rng)


def with_the_softmax_elementwise(dp, p):
    """The derivative of the sigmoid."""
    return dp * p * (1 - p)


def without_the_mean(dp, p):
    """The first of the two terms."""
    return p * dp


def with_a_plain_mean(dp, p):
    """The mean of dp with equal weights."""
    return p * (dp - dp.mean(axis=-1, keepdims=True))


def with_the_mean_of_the_products(dp, p):
    """The sum of p dp, divided by V."""
    return p * (dp - (p * dp).mean(axis=-1, keepdims=True))


def with_the_sum_over_the_rows(dp, p):
    """The sum along the wrong axis."""
    return p * (dp - (p * dp).sum(axis=0, keepdims=True))


def without_the_factor_p(dp, p):
    """What stands in the bracket."""
    return dp - (p * dp).sum(axis=-1, keepdims=True)


def adapt_softmax(mine):
    """The learner's softmax_backward(dp, p), of rows, as the library calls its own."""

    def backward(dp, p):
        S = p.shape[-1]
        return np.asarray(mine(dp.reshape(-1, S), p.reshape(-1, S)), dp.dtype).reshape(p.shape)

    return backward


SOFTMAX = Exercise(
    name="03_softmax_backward",
    see="lesson 03, part 2",
    hints=(
        "Raise one logit of a row. Which entries of p grow, which shrink, and can any of them stay as it is?",
        "p_i depends on z_j in two ways: by its own exponential, if i = j, and by the sum that all entries share.",
        "dz = p ∘ (dp − one number for each row), where that number (N, 1) is a weighted mean of the row of dp",
    ),
    tasks=(
        Task(
            function="softmax_backward",
            forward="softmax",
            outputs=(Output("dz", "NV"),),
            make=make_softmax,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dz sums to 0: adding one number to all logits of a row changes no probability",
                    each_row_sums_to_zero,
                ),
            ),
            mistakes=(
                Mistake(
                    "the softmax is taken entry by entry, as if it were a sigmoid",
                    "Raise one logit: do the other probabilities of its row stay as they are?",
                    with_the_softmax_elementwise,
                ),
                Mistake(
                    "the sum that all entries of a row share is taken for a constant",
                    "z_j stands in the denominator too. What comes back through there?",
                    without_the_mean,
                ),
                Mistake(
                    "all entries of dp have the same weight in the mean",
                    "Which weights sum to 1 in each row, and should a token of probability 0 have a say?",
                    with_a_plain_mean,
                ),
                Mistake(
                    "the products p dp are averaged, and not summed",
                    "The weights p sum to 1 already. What does another division by V do?",
                    with_the_mean_of_the_products,
                ),
                Mistake(
                    "the sum runs over the rows",
                    "Along which axis do the probabilities sum to 1?",
                    with_the_sum_over_the_rows,
                ),
                Mistake(
                    "the factor p in front is missing",
                    "How much can the probability of a token move by its own logit, if it is nearly 0?",
                    without_the_factor_p,
                ),
            ),
        ),
    ),
    replaces={"softmax_backward": Replacement(softmax_backward, adapt_softmax)},
)


def make_cross_entropy(rng, given):
    """Two rows of padding, and an id that comes twice."""
    once, twice, another = rng.permutation(np.arange(1, V))[:3]
    targets = rng.permutation(np.array([once, twice, twice, another, PAD, PAD]))
    inputs = {"z": rng.standard_normal((N, V)), "targets": targets, "eps": rng.uniform(0.2, 0.4), "pad": PAD}
    M = np.count_nonzero(targets != PAD)
    is_padding = np.broadcast_to((targets == PAD)[:, None], (N, V))
    is_target = np.eye(V, dtype=bool)[targets]
    places = {
        "at the right tokens": {"dz": is_target & ~is_padding},
        "in the rows of padding": {"dz": is_padding},
        "in the rows that count": {"dz": ~is_padding},
    }
    ratios = {"M, the number of rows that count": M, "M/N": M / N}
    return backward_problem(given.cross_entropy, inputs, ("z",), rng, ratios=ratios, places=places)


def with_one_hot_targets(dloss, cache):
    """As without smoothing."""
    p, targets, _, pad = cache
    counts = targets != pad
    return dloss * (p - np.eye(p.shape[1])[targets]) * (counts / counts.sum())[:, None]


def with_the_padding_counted(dloss, cache):
    """All rows alike."""
    p, targets, eps, _ = cache
    q = (1 - eps) * np.eye(p.shape[1])[targets] + eps / p.shape[1]
    return dloss * (p - q) / len(p)


def with_the_division_by_all_rows(dloss, cache):
    """N in the place of M."""
    p, targets, eps, pad = cache
    q = (1 - eps) * np.eye(p.shape[1])[targets] + eps / p.shape[1]
    return dloss * (p - q) * (targets != pad)[:, None] / len(p)


def without_dloss(dloss, cache):
    """As if the loss were the end of the chain."""
    p, targets, eps, pad = cache
    q = (1 - eps) * np.eye(p.shape[1])[targets] + eps / p.shape[1]
    counts = targets != pad
    return (p - q) * (counts / counts.sum())[:, None]


def with_the_smoothing_over_the_others(dloss, cache):
    """Another definition than the forward's."""
    p, targets, eps, pad = cache
    V = p.shape[1]
    q = np.full(p.shape, eps / (V - 1))
    q[np.arange(len(p)), targets] = 1 - eps
    counts = targets != pad
    return dloss * (p - q) * (counts / counts.sum())[:, None]


def without_the_right_tokens_share(dloss, cache):
    """An assignment over eps/V, where += was meant."""
    p, targets, eps, pad = cache
    q = np.full(p.shape, eps / p.shape[1])
    q[np.arange(len(p)), targets] = 1 - eps
    counts = targets != pad
    return dloss * (p - q) * (counts / counts.sum())[:, None]


def padding_gets_nothing(outputs, problem):
    """Whether dz is 0 in the rows of padding."""
    return not outputs[0][problem.inputs["targets"] == PAD].any()


def adapt_cross_entropy(mine):
    """The learner's cross_entropy_backward(dloss, (p, targets, eps, pad)) as the library calls its own."""

    def backward(dloss, cache):
        p, targets, share, smoothing, shape, _ = cache
        is_padding = share == 0
        if is_padding.all():
            return np.zeros(shape, p.dtype)  # a mean over nothing: no exercise asks for it
        pad = int(targets[is_padding][0]) if is_padding.any() else -1
        return np.asarray(mine(dloss, (p, targets, smoothing, pad)), p.dtype).reshape(shape)

    return backward


CROSS_ENTROPY = Exercise(
    name="03_cross_entropy_backward",
    see="lesson 03, parts 3 to 5",
    hints=(
        "Write the loss of one row as −Σ_v q_v ln p_v. Which q does the forward have, and does it sum to 1?",
        "Three things multiply what each row gets: dloss, whether the row counts, and the mean. Are all of them there?",
        "dz (N, V) = a number ∘ a number for each row (N, 1) ∘ (p − q), with q (N, V), whose rows sum to 1",
    ),
    tasks=(
        Task(
            function="cross_entropy_backward",
            forward="cross_entropy",
            outputs=(Output("dz", "NV"),),
            make=make_cross_entropy,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dz sums to 0: adding one number to all logits of a row changes no loss",
                    each_row_sums_to_zero,
                ),
                Invariant("rows of padding get no gradient", padding_gets_nothing),
            ),
            mistakes=(
                Mistake(
                    "the targets are one-hot, as without label smoothing",
                    "eps is in the cache. Which probability does the smoothed loss want for a wrong token?",
                    with_one_hot_targets,
                ),
                Mistake(
                    "padding is counted",
                    "What does the forward do with the losses of padding, and over how many rows is its mean?",
                    with_the_padding_counted,
                ),
                Mistake(
                    "the mean is taken over all rows",
                    "Padding gets no gradient, and that is right. By how many rows did the forward divide?",
                    with_the_division_by_all_rows,
                ),
                Mistake(
                    "dloss is missing",
                    "The loss may be multiplied by something later. Where does that come in?",
                    without_dloss,
                ),
                Mistake(
                    "the smoothing is spread over the other V - 1 tokens",
                    "There are several definitions. Over which tokens does `log_p.mean` in this forward run?",
                    with_the_smoothing_over_the_others,
                ),
                Mistake(
                    "the right token lost its own share of the smoothing",
                    "Does each row of your q sum to 1? eps is spread over all V tokens.",
                    without_the_right_tokens_share,
                ),
            ),
        ),
    ),
    replaces={"cross_entropy_backward": Replacement(cross_entropy_backward, adapt_cross_entropy)},
)

EXERCISES = (SOFTMAX, CROSS_ENTROPY)
