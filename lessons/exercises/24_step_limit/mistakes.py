"""The problems, the hints and the known mistakes of 24_step_limit."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task

LIMIT_SIZES = sizes("B C", (7, 4), (3, 2), (1, 3), (4, 1))
DESCENT_SIZES = sizes("B C steps", (2, 4, 3), (3, 3, 5), (1, 1, 1), (2, 2, 0))
VALLEY, SLIGHT, RIDGE = "valley", "slight", "ridge"  # a small negative eigenvalue, and one that is the largest in size


def matrix(values, rng):
    """A symmetric matrix with these eigenvalues, in random directions."""
    axes, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    return (axes * values) @ axes.T


def draw_values(kind, C, rng):
    """Eigenvalues of one kind."""
    values = rng.uniform(0.5, 4.0, C)
    if kind != VALLEY:
        values[0] = -rng.uniform(0.1, 0.4) if kind == SLIGHT else -rng.uniform(5.0, 8.0)
    return values


def make_limit(rng, given, B, C):
    """Valleys and ridges. The limits come from descent itself: the rate at which the sharpest factor becomes -1."""
    kinds = [VALLEY, SLIGHT, RIDGE, VALLEY, VALLEY, SLIGHT, VALLEY][:B]
    values = [draw_values(kind, C, rng) for kind in kinds]
    J = np.array([matrix(each, rng) for each in values])
    limit = np.array([largest_rate(each) for each in values])
    return Problem((J,), (limit,), places={"where an eigenvalue is negative": {"limit": limit == 0}})


def largest_rate(values):
    """The largest rate whose factors 1 - lr λ are all between -1 and 1, by bisection; 0 if there is none."""
    low, high = 0.0, 100.0
    for _ in range(200):
        middle = (low + high) / 2
        inside = bool((np.abs(1 - middle * values) <= 1).all()) and bool((values > 0).all())
        low, high = (middle, high) if inside else (low, middle)
    return low


def make_descent(rng, given, B, C, steps):
    """Rates that overshoot along some directions and not along others; one direction is a ridge."""
    values = rng.uniform(0.3, 2.5, (B, C))
    values[:, -1:] *= -0.3 if C > 1 else 1.0
    lr = float(rng.uniform(0.5, 0.7))
    axes = [np.linalg.qr(rng.standard_normal((C, C)))[0] for _ in range(B)]
    theta = rng.standard_normal((B, C))
    J = np.array([(a * each) @ a.T for a, each in zip(axes, values, strict=True)])
    expected = [a @ ((1 - lr * each) ** steps * (a.T @ t)) for a, each, t in zip(axes, values, theta, strict=True)]
    return Problem((theta, J, lr, steps), (np.array(expected),), ratios={"lr": lr})


LIMIT_MISTAKES = (
    Mistake("1-lambda-where-step-arrives", {"2 / values": "1 / values"}),
    Mistake("negative-eigenvalue-not-noticed", {"np.where(values.min(axis=-1) > 0, limit, 0.0)": "limit"}),
    Mistake(
        "eigenvalue-largest-size-taken-whatever",
        {
            "values.max(axis=-1)": "np.abs(values).max(axis=-1)",
            "np.where(values.min(axis=-1) > 0, limit, 0.0)": "limit",
        },
    ),
    Mistake(
        "ridges-refused-only-they-largest", {"values.min(axis=-1) > 0": "values.max(axis=-1) > -values.min(axis=-1)"}
    ),
    Mistake("mean-eigenvalues-taken", {"values.max(axis=-1)": "values.mean(axis=-1)"}),
    Mistake("sum-eigenvalues-taken", {"values.max(axis=-1)": "values.sum(axis=-1)"}),
    Mistake("smallest-eigenvalue-taken", {"2 / values.max(axis=-1)": "2 / values.min(axis=-1)"}),
    Mistake("diagonal-j-taken-eigenvalues", {"np.linalg.eigvalsh(J)": "np.diagonal(J, axis1=-2, axis2=-1)"}),
    Mistake(
        "one-limit-all-matrices", {"limit = 2 / values.max(axis=-1)": "limit = 2 / values.max() + 0 * values[:, 0]"}
    ),
    Mistake("limit-infinite-where-should-0", {"limit, 0.0": "limit, np.inf"}),
    Mistake("upside-down-lambda-2", {"2 / values.max(axis=-1)": "values.max(axis=-1) / 2"}),
)

DESCENT_MISTAKES = (
    Mistake("step-goes-uphill", {"theta - lr": "theta + lr"}),
    Mistake(
        "gradient-always-beginning",
        {
            "    for _ in range(steps):\n        g = (J @ theta[..., None])[..., 0]\n": (
                "    g = (J @ theta[..., None])[..., 0]\n    for _ in range(steps):\n"
            )
        },
    ),
    Mistake("one-step-too-many", {"range(steps)": "range(steps + 1)"}),
    Mistake("one-step-too-few", {"range(steps)": "range(steps - 1)"}),
    Mistake("only-diagonal-j-acts", {"(J @ theta[..., None])[..., 0]": "np.diagonal(J, axis1=-2, axis2=-1) * theta"}),
    Mistake(
        "steps-infinitely-short-distance-shrinks",
        {
            "        g = (J @ theta[..., None])[..., 0]\n        theta = theta - lr * g\n": (
                "        values, axes = np.linalg.eigh(J)\n"
                "        along = np.exp(-lr * values) * (axes.swapaxes(-1, -2) @ theta[..., None])[..., 0]\n"
                "        theta = (axes @ along[..., None])[..., 0]\n"
            )
        },
    ),
    Mistake("factor-half-loss-gradient-too", {"lr * g": "lr * g / 2"}),
    Mistake("gradient-factor-2", {"lr * g": "lr * 2 * g"}),
)

EXERCISE = Exercise(
    name="24_step_limit",
    hints=(
        "Take J = the number 4 and θ = 1. Where is θ after a step with lr = 0.1, 0.25, 0.4 and 0.6? And with J = −4?",
        "Every eigenvector has a factor of its own, 1 − lr λ, and all of them must lie between −1 and 1. Which λ "
        "leaves that range first as lr grows? And which are never inside?",
        "limit (B,): a number / one eigenvalue of each (C,), or 0;  g (B, C) = (B, C, C) times (B, C), each matrix its "
        "own;  θ (B, C) − number · g (B, C), again and again",
    ),
    tasks=(
        Task(
            function="step_limit",
            outputs=(Output("limit", "B"),),
            make=make_limit,
            sizes=LIMIT_SIZES,
            mistakes=LIMIT_MISTAKES,
        ),
        Task(
            function="descend",
            outputs=(Output("theta", "BC"),),
            make=make_descent,
            sizes=DESCENT_SIZES,
            mistakes=DESCENT_MISTAKES,
        ),
    ),
)
