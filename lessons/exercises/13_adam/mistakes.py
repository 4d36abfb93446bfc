"""The problems that 13_adam is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import sizes
from minitransformer.training.optimizers import adam_update

SIZES = sizes("I O t", (3, 4, 1), (2, 5, 37), (4, 3, 2), (1, 1, 5))
BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


def make_adam(rng, given, I, O, t):
    """The first step or a later one, with gradients from 1e-8 to 10 and one that is always 0, if there are several."""
    size = 10.0 ** np.linspace(-8, 1, I * O).reshape(I, O)
    size[0, 0] = 0 if I * O > 1 else 1
    theta, g, m = rng.standard_normal((I, O)), size * rng.standard_normal((I, O)), np.zeros((I, O))
    v = np.zeros((I, O))
    if t > 1:
        m, v = size * rng.standard_normal((I, O)) / 2, size**2 * rng.uniform(0.5, 2, (I, O))
    lr = float(rng.uniform(0.02, 0.2))
    expected = theta.copy(), m.copy(), v.copy()
    adam_update(expected[0], g, *expected[1:], lr, (BETA1, BETA2), EPS, t)
    unused = {"where the gradient has always been 0": dict.fromkeys(("theta", "m", "v"), size == 0)}
    ratios = {"(1 - beta1)": 1 - BETA1, "(1 - beta2)": 1 - BETA2, "beta1": BETA1, "beta2": BETA2}
    return Problem((theta, g, m, v, t, lr), expected, ratios=ratios, places=unused)


def goes_downhill(outputs, problem):
    """Whether no weight moves the way that the mean gradient points."""
    theta, m = problem.args[0], problem.expected[1]
    return outputs[0].shape != theta.shape or not ((outputs[0] - theta) * m > 0).any()


def adapt_adam(mine):
    """The learner's adam_step as the library's function, which changes its arrays in place."""

    def update(data, grad, m, v, lr, betas, eps, t, *, scale, team):
        new = mine(data.copy(), grad * scale, m.copy(), v.copy(), t, lr)
        for array, value in zip((data, m, v), new, strict=True):
            array[...] = value

    return update


EXERCISE = Exercise(
    name="13_adam",
    see='lesson 13, "Divide by its own size"',
    replaces={"adam_step": Replacement(adam_update, adapt_adam)},
    hints=(
        "Let the gradient be 4 at the first step. What are m and v then, and of which numbers are they to be the mean?",
        "The weights of the gradients in m do not add up to 1: what m began with has the rest, βᵗ. v has the same "
        "trouble with its own β. The means that are handed on are left as they are.",
        "All (I, O): new m from m and g; new v from v and g²; m̂ and v̂ = these, each over a number that grows from "
        "1 − β to 1; θ minus lr times m̂ over (a root, and outside of it ε)",
    ),
    tasks=(
        Task(
            function="adam_step",
            outputs=(Output("theta", "IO"), Output("m", "IO"), Output("v", "IO")),
            make=make_adam,
            sizes=SIZES,
            invariants=(
                Invariant("v is nowhere below 0", lambda outputs, problem: not (outputs[2] < 0).any()),
                Invariant("no weight moves the way that the mean gradient points", goes_downhill),
            ),
            mistakes=(
                Mistake(
                    "the bias correction is missing",
                    "m and v begin as zeros. How much of that zero is still in them after t steps?",
                    {" / (1 - BETA1**t)": "", " / (1 - BETA2**t)": ""},
                ),
                Mistake(
                    "t is one too large in the bias correction",
                    "t counts from 1. After the first step, which share of m comes from a gradient?",
                    {"BETA1**t": "BETA1 ** (t + 1)", "BETA2**t": "BETA2 ** (t + 1)"},
                ),
                Mistake(
                    "eps is inside the root",
                    "How large is √1e-9, compared with a gradient of 1e-6? What did the paper mean to be small?",
                    {"np.sqrt(v_hat) + EPS": "np.sqrt(v_hat + EPS)"},
                ),
                Mistake(
                    "the two betas are swapped",
                    "Which of the two means should look back over 10 steps, and which over 50?",
                    {"    m = BETA1": "    BETA1, BETA2 = 0.98, 0.9\n    m = BETA1"},
                ),
                Mistake(
                    "g is not squared in v",
                    "What has the unit of g after the root is taken? And can a mean of g have a root at all?",
                    {"g**2": "g"},
                ),
                Mistake(
                    "v is one number for all weights",
                    "A weight with small gradients is to get large steps. Does it have a v of its own?",
                    {"g**2": "(g**2).mean()"},
                ),
                Mistake(
                    "the corrected means are handed on",
                    "The next step will correct what it is given. What if that has been corrected already?",
                    {"    return": "    m, v = m_hat, v_hat\n    return"},
                ),
                Mistake(
                    "the step goes uphill",
                    "A loss that rises with θ: which way is θ to go?",
                    {"theta - lr": "theta + lr"},
                ),
            ),
        ),
    ),
)
