"""The problems, the hints and the known mistakes of 25_all_reduce."""

import itertools

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.functional import linear_backward

SIZES = sizes("machines C F", (4, 3, 5), (3, 5, 2), (2, 2, 3), (1, 1, 1))


def make_shares(rng, given, machines, C, F):
    """A linear layer on a batch whose tokens are divided unevenly. In the second problem, one machine has none."""
    tokens = [int(n) for n in rng.permutation(machines + 4)[:machines] + 1]
    if machines == 3:
        tokens[1] = 0
    x, dy = rng.standard_normal((sum(tokens), C)), rng.standard_normal((sum(tokens), F))
    W, ends = np.zeros((C, F)), np.cumsum([0, *tokens])

    def gradient(rows):
        """Of the mean over these rows of x W ∘ dy."""
        return linear_backward(dy[rows] / max(len(dy[rows]), 1), (x[rows], W))[1]

    gradients = [gradient(slice(*pair)) for pair in itertools.pairwise(ends)]
    expected = np.stack([gradient(slice(None))] * machines)
    return Problem((gradients, tokens), (expected,), ratios={"tokens": float(sum(tokens)), "machines": machines})


def all_have_the_same(outputs, problem):
    """Whether all machines end with the same gradient."""
    return bool(np.abs(outputs[0] - outputs[0][:1]).max() < 1e-12)


MISTAKES = (
    Mistake("gradients-averaged-sum-divided-number", {"g * n / whole": "g / len(tokens)"}),
    Mistake("gradients-added-they", {"g * n / whole": "g"}),
    Mistake("each-gradient-multiplied-tokens", {"g * n / whole": "g * n"}),
    Mistake("sum-over-all-tokens-divided", {"g * n / whole": "g * n / len(tokens)"}),
    Mistake("divided-twice-tokens-number-machines", {"g * n / whole": "g * n / whole / len(tokens)"}),
    Mistake("gradients-divided-all-tokens", {"g * n / whole": "g / whole"}),
    Mistake("nothing-exchanged-each-machine-keeps", {"return all_reduce(shares)": "return shares"}),
    Mistake("first-machine-only", {"return all_reduce(shares)": "return [all_reduce(shares)[0], *shares[1:]]"}),
    Mistake(
        "machines-own-share-missing-gets",
        {"return all_reduce(shares)": "return [whole - own for whole, own in zip(all_reduce(shares), shares)]"},
    ),
)

EXERCISE = Exercise(
    name="25_all_reduce",
    hints=(
        "Two machines have 1 and 3 tokens, and each token has a gradient of its own. Write the mean of the four, and "
        "then the two means.",
        "A mean times the number of its terms is a sum again, and sums may be added. How many tokens there are in all, "
        "no machine knows by itself.",
        "share of a machine = own tokens / all tokens, one number;  all-reduce of share · (C, F) gives (C, F) on every "
        "machine",
    ),
    tasks=(
        Task(
            function="share_gradient",
            outputs=(Output("g", ("machines", "C", "F"), sequence=True),),
            make=make_shares,
            sizes=SIZES,
            invariants=(Invariant("all machines end with the same gradient", all_have_the_same),),
            mistakes=MISTAKES,
        ),
    ),
)
