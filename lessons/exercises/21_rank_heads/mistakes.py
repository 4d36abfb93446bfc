"""The problems, the hints and the known mistakes of 21_rank_heads."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
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
    Mistake(
        "the sign is reversed",
        "Without a useful head, is the loss larger or smaller? And the cost of a useful head?",
        {"np.array([": "-np.array(["},
    ),
    Mistake(
        "the loss of the head alone is measured, not the loss without it",
        "Which heads speak when you measure: all but this one, or this one only?",
        {"losses(z.sum(axis=0) - head, targets)": "losses(head, targets)"},
    ),
    Mistake(
        "the loss without the head is not compared with the whole",
        "What does the loss rise by? A loss of 2 may be a rise or a fall.",
        {".mean() - whole for": ".mean() for"},
    ),
    Mistake(
        "the losses of the tokens are added, not averaged",
        "Would the cost of a head be larger on a longer text?",
        {
            "whole = losses(z.sum(axis=0), targets).mean()": "whole = losses(z.sum(axis=0), targets).sum()",
            "losses(z.sum(axis=0) - head, targets).mean()": "losses(z.sum(axis=0) - head, targets).sum()",
        },
    ),
    Mistake(
        "the absolute value hides which heads do harm",
        "A head may make the loss larger than it would be without it. What is its cost?",
        {"np.array([": "np.abs(["},
    ),
    Mistake(
        "the size of what a head says is measured, not what it does",
        "A head may speak loudly of what does not matter. Where does your cost ask for the loss?",
        {"losses(z.sum(axis=0) - head, targets).mean() - whole": "np.abs(head).mean()"},
    ),
    Mistake(
        "the head is replaced by the mean of all heads",
        "If the head says nothing, what do the logits lack, and what do they get?",
        {"losses(z.sum(axis=0) - head, targets)": "losses(z.sum(axis=0) - head + z.mean(axis=0), targets)"},
    ),
)
RANKING_MISTAKES = (
    Mistake(
        "the least needed head stands first",
        "In which order does argsort return numbers? Which head should come first?",
        {"-cost": "cost"},
    ),
    Mistake(
        "the absolute value is ranked, so the most harmful head stands first",
        "Would you keep a head without which the loss falls?",
        {"-cost": "-np.abs(cost)"},
    ),
    Mistake(
        "it returns the rank of each head, not the heads in order",
        "Is entry 0 the number of the first head, or the place of head 0?",
        {"np.argsort(-cost)": "np.argsort(np.argsort(-cost))"},
    ),
    Mistake(
        "the heads are counted from 1",
        "Which numbers do arrays give to their entries?",
        {"np.argsort(-cost)": "np.argsort(-cost) + 1"},
    ),
)
SLOPE_MISTAKES = (
    Mistake(
        "the absolute value is taken after the mean, where tokens cancel",
        "One token pulls a scale up, another pulls it down. What is left of the two in your mean?",
        {"np.abs(each).mean(axis=1)": "np.abs(each.mean(axis=1))"},
    ),
    Mistake(
        "there is no absolute value",
        "A slope of −2 and one of 2: which head has more to do with the loss?",
        {"np.abs(each).mean(axis=1)": "each.mean(axis=1)"},
    ),
    Mistake(
        "the right token is not subtracted",
        "dz is p less something. Less what?",
        {"    p[np.arange(len(p)), targets] -= 1\n": ""},
    ),
    Mistake(
        "only the logit of the right token counts",
        "A head also raises logits of wrong tokens. Does the loss notice?",
        {"each = (z * p).sum(axis=-1)": "each = (z * p)[:, np.arange(len(p)), targets]"},
    ),
    Mistake(
        "the head's own probabilities are used, not those of the model",
        "The loss is computed from the sum over all heads. At which logits is its derivative taken?",
        {
            "everything = z.sum(axis=0)": "everything = z",
            "p[np.arange(len(p)), targets]": "p[:, np.arange(p.shape[1]), targets]",
        },
    ),
    Mistake(
        "the absolute value is taken of each logit, before they are added",
        "The slope along one scale is one number for each token. What must be added before its size is taken?",
        {"each = (z * p).sum(axis=-1)": "each = np.abs(z * p).sum(axis=-1)"},
    ),
    Mistake(
        "it adds over the tokens, where it should average",
        "Should a longer text have steeper slopes?",
        {"np.abs(each).mean(axis=1)": "np.abs(each).sum(axis=1)"},
    ),
    Mistake(
        "this is the size of dz alone, and the head's own logits are left out",
        "If the scale grows, which logits move, and by how much?",
        {"each = (z * p).sum(axis=-1)": "each = (np.ones_like(z) * np.abs(p)).sum(axis=-1)"},
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
