"""The problems, the hints and the known mistakes of 21_rank_heads."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.functional import cross_entropy


def make_heads(rng, H, N, V):
    """Heads that help, that help with every second token, and one that does harm; no token is padding, id 0."""
    z, targets = 0.5 * rng.standard_normal((H, N, V)), rng.integers(1, V, N)
    helps = np.where(np.arange(N) % 2, 1.5, -1.5) * np.ones((H, 1))
    helps[0], helps[-1] = 2.0, -1.5
    z[:, np.arange(N), targets] += rng.permuted(helps, axis=0) if H < 3 else helps[rng.permutation(H)]
    return z, targets


def loss_of(z, targets):
    """The library's mean loss."""
    return float(cross_entropy(z, targets)[0])


def make_costs(rng, given, H, N, V):
    """The library's loss without each head."""
    z, targets = make_heads(rng, H, N, V)
    without = [loss_of(np.delete(z, i, axis=0).sum(axis=0), targets) for i in range(H)]
    expected = np.array(without) - loss_of(z.sum(axis=0), targets)
    return Problem((z, targets), (expected,), ratios={"N": float(N)})


def make_ranking(rng, given, H):
    """Costs of both signs. The most harmful head has the largest absolute value."""
    cost = rng.uniform(0.2, 3, H)
    cost[: H // 3] *= -1
    cost[0] = -4
    cost = rng.permutation(cost)
    order = sorted(range(H), key=lambda i: cost[i], reverse=True)
    if H > 5 and all(order[order[i]] == i for i in range(H)):  # then the ranks are the order
        return make_ranking(rng, given, H)
    return Problem((cost,), (np.array(order),))


def make_slopes(rng, given, H, N, V):
    """Slopes by the complex step, token by token."""
    z, targets = make_heads(rng, H, N, V)
    expected = np.zeros(H)
    for i in range(H):
        moved = z.astype(complex)
        moved[i] *= 1 + 1e-30j
        everything = moved.sum(axis=0)
        logs = np.log(np.exp(everything).sum(axis=-1)) - everything[np.arange(N), targets]
        expected[i] = np.abs(logs.imag / 1e-30).mean()
    return Problem((z, targets), (expected,), ratios={"N": float(N)})


def names_each_head_once(outputs, problem):
    """Whether each head stands in the ranking once."""
    return sorted(outputs[0].tolist()) == list(range(len(problem.args[0])))


def is_positive(outputs, problem):
    """Whether no mean of absolute values is negative."""
    return bool((outputs[0] >= 0).all())


COST_MISTAKES = (
    Mistake("sign-reversed", {"np.array([": "-np.array(["}),
    Mistake("loss-head-alone-measured", {"losses(z.sum(axis=0) - head, targets)": "losses(head, targets)"}),
    Mistake("loss-without-head-not-compared", {".mean() - whole for": ".mean() for"}),
    Mistake(
        "losses-tokens-added-not-averaged",
        {
            "whole = losses(z.sum(axis=0), targets).mean()": "whole = losses(z.sum(axis=0), targets).sum()",
            "losses(z.sum(axis=0) - head, targets).mean()": "losses(z.sum(axis=0) - head, targets).sum()",
        },
    ),
    Mistake("absolute-value-hides-heads-do", {"np.array([": "np.abs(["}),
    Mistake("size-head-says-measured", {"losses(z.sum(axis=0) - head, targets).mean() - whole": "np.abs(head).mean()"}),
    Mistake(
        "head-replaced-mean-all-heads",
        {"losses(z.sum(axis=0) - head, targets)": "losses(z.sum(axis=0) - head + z.mean(axis=0), targets)"},
    ),
)
RANKING_MISTAKES = (
    Mistake("least-needed-head-stands-first", {"-cost": "cost"}),
    Mistake("absolute-value-ranked-most-harmful", {"-cost": "-np.abs(cost)"}),
    Mistake("returns-rank-each-head", {"np.argsort(-cost)": "np.argsort(np.argsort(-cost))"}),
    Mistake("heads-counted-1", {"np.argsort(-cost)": "np.argsort(-cost) + 1"}),
)
SLOPE_MISTAKES = (
    Mistake("absolute-value-taken-after-mean", {"np.abs(each).mean(axis=1)": "np.abs(each.mean(axis=1))"}),
    Mistake("no-absolute-value", {"np.abs(each).mean(axis=1)": "each.mean(axis=1)"}),
    Mistake("right-token-not-subtracted", {"    p[np.arange(len(p)), targets] -= 1\n": ""}),
    Mistake(
        "only-logit-right-token-counts",
        {"each = (z * p).sum(axis=-1)": "each = (z * p)[:, np.arange(len(p)), targets]"},
    ),
    Mistake(
        "heads-own-probabilities-used",
        {
            "everything = z.sum(axis=0)": "everything = z",
            "p[np.arange(len(p)), targets]": "p[:, np.arange(p.shape[1]), targets]",
        },
    ),
    Mistake("absolute-value-taken-each-logit", {"each = (z * p).sum(axis=-1)": "each = np.abs(z * p).sum(axis=-1)"}),
    Mistake("adds-over-tokens-where-should", {"np.abs(each).mean(axis=1)": "np.abs(each).sum(axis=1)"}),
    Mistake(
        "size-dz-alone-heads-own", {"each = (z * p).sum(axis=-1)": "each = (np.ones_like(z) * np.abs(p)).sum(axis=-1)"}
    ),
)

EXERCISE = Exercise(
    name="21_rank_heads",
    hints=(
        "If a head is useful, is the loss without it larger or smaller? And what is the cost of a head that does harm?",
        "Without a head, the logits are the sum over the others. For the slope, a scale moves each logit by what the "
        "head says there. In which order must you add, take the absolute value, and average?",
        "cost (H,) = mean of losses (N,) without the head, less that with all;  slope of token n: sum over V of (p "
        "less the one-hot target) (N, V) times z of the head (N, V), then |...|, then the mean over N",
    ),
    tasks=(
        Task(
            function="costs",
            outputs=(Output("cost", "H"),),
            make=make_costs,
            sizes=sizes("H N V", (4, 5, 3), (2, 7, 6), (1, 1, 2)),
            mistakes=COST_MISTAKES,
        ),
        Task(
            function="ranking",
            outputs=(Output("order", "H", "int", sequence=True),),
            make=make_ranking,
            sizes=sizes("H", (7,), (5,), (1,)),
            invariants=(Invariant("each head stands in it once", names_each_head_once),),
            mistakes=RANKING_MISTAKES,
        ),
        Task(
            function="slopes",
            outputs=(Output("slope", "H"),),
            make=make_slopes,
            sizes=sizes("H N V", (4, 5, 3), (2, 7, 6), (1, 1, 2)),
            invariants=(Invariant("no slope is negative", is_positive),),
            mistakes=SLOPE_MISTAKES,
        ),
    ),
)
