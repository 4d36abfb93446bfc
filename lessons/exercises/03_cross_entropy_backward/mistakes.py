"""The problems, the hints and the known mistakes of 03_cross_entropy_backward."""

import numpy as np
from exercise_problems import backward_problem, each_row_sums_to_zero, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.functional import cross_entropy_backward

SIZES = sizes("N V", (6, 5), (5, 7), (7, 3), (1, 1))


def make_cross_entropy(rng, given, N, V):
    """If N allows it, two rows of padding, whose id is not 0. The id 0 is a token, and one token occurs twice."""
    pad = int(rng.integers(1, max(V, 2)))
    others = np.setdiff1d(np.arange(1, V), pad)
    tokens = [0, *rng.permutation(others)[: V - 3]]
    rows = N - 2 if N > 2 else N
    targets = rng.permutation([*np.resize(tokens, rows), *[pad] * (N - rows)])
    inputs = {"z": rng.standard_normal((N, V)), "targets": targets, "eps": rng.uniform(0.2, 0.4), "pad": pad}
    counted = np.count_nonzero(targets != pad)
    is_padding = np.broadcast_to((targets == pad)[:, None], (N, V))
    is_target = np.eye(V, dtype=bool)[targets]
    places = {
        "at the right tokens": {"dz": is_target & ~is_padding},
        "in the rows of padding": {"dz": is_padding},
        "in the rows that count": {"dz": ~is_padding},
    }
    ratios = {"the number of rows that count": counted, "the share of rows that count": counted / N}
    return backward_problem(given.cross_entropy, inputs, ("z",), rng, ratios=ratios, places=places)


def padding_gets_nothing(outputs, problem):
    """Whether dz is 0 in the rows of padding."""
    return not outputs[0][problem.inputs["targets"] == problem.inputs["pad"]].any()


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


EXERCISE = Exercise(
    name="03_cross_entropy_backward",
    hints=(
        "Write the loss of one row as −Σ_i p*_i ln p_i. Which p* is in the forward, and does it sum to 1?",
        "Three things multiply the gradient of each row: dloss, whether the row counts, and the mean. Do you have "
        "all three?",
        "dz (N, V) = a number · a number for each row (N, 1) ∘ (p − p*), where the rows of p* (N, V) sum to 1",
    ),
    tasks=(
        Task(
            function="cross_entropy_backward",
            forward="cross_entropy",
            outputs=(Output("dz", "NV"),),
            make=make_cross_entropy,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dz sums to 0: adding one number to all logits of a row does not change the loss",
                    each_row_sums_to_zero,
                ),
                Invariant("rows of padding get no gradient", padding_gets_nothing),
            ),
            mistakes=(
                Mistake("targets-one-hot-without-label", {"eps / V": "0.0", "+= 1 - eps": "= 1"}),
                Mistake("padding-counted", {"targets != pad": "np.ones(N)"}),
                Mistake("pad-id-fixed", {"targets != pad": "targets != 0"}),
                Mistake(
                    "column-padding-token-set-0",
                    {
                        "    return": "    wanted[:, pad] = p[:, pad]\n    return",
                        "dloss * share[:, None]": "dloss / counts.sum()",
                    },
                ),
                Mistake("mean-taken-over-all-rows", {"counts.sum()": "N"}),
                Mistake("dloss-missing", {"dloss * share": "share"}),
                Mistake("smoothing-spread-over-other-v", {"eps / V": "eps / (V - 1)", "+=": "="}),
                Mistake("right-token-lost-own-share", {"+=": "="}),
            ),
        ),
    ),
    replaces={"cross_entropy_backward": Replacement(cross_entropy_backward, adapt_cross_entropy)},
)
