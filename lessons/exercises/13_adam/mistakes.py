"""The problems, the hints and the known mistakes of 13_adam."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.training.optimizers import adam_update

# the first step comes third: in it, a corrected mean and a mean without its factor 1 - beta are the same
SIZES = sizes("C F step", (3, 4, 2), (2, 5, 37), (4, 3, 1), (1, 1, 5))
BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


def make_adam(rng, given, C, F, step):
    """The first step or a later one. Gradients are from 1e-8 to 10. If there are several, one has always been 0."""
    size = 10.0 ** np.linspace(-8, 1, C * F).reshape(C, F)
    size[0, 0] = 0 if C * F > 1 else 1
    theta, g, m1 = rng.standard_normal((C, F)), size * rng.standard_normal((C, F)), np.zeros((C, F))
    m2 = np.zeros((C, F))
    if step > 1:
        m1, m2 = size * rng.standard_normal((C, F)) / 2, size**2 * rng.uniform(0.5, 2, (C, F))
    lr = float(rng.uniform(0.02, 0.2))
    expected = theta.copy(), m1.copy(), m2.copy()
    adam_update(expected[0], g, *expected[1:], lr, (BETA1, BETA2), EPS, step)
    unused = {"where the gradient has always been 0": dict.fromkeys(("theta", "m1", "m2"), size == 0)}
    ratios = {"1 - beta1^step": 1 - BETA1**step, "1 - beta2^step": 1 - BETA2**step}
    ratios |= {"1 - beta1": 1 - BETA1, "1 - beta2": 1 - BETA2, "beta1": BETA1, "beta2": BETA2}
    return Problem((theta, g, m1, m2, step, lr), expected, ratios=ratios, places=unused)


def goes_downhill(outputs, problem):
    """Whether no weight moves in the direction of the mean gradient."""
    theta, m1 = problem.args[0], problem.expected[1]
    return outputs[0].shape != theta.shape or not ((outputs[0] - theta) * m1 > 0).any()


def stays_without_gradient(outputs, problem):
    """Whether a weight stays where it is if its gradient has always been 0. Weight decay would move it."""
    theta, g, m1 = problem.args[:3]
    never = (g == 0) & (m1 == 0)
    return outputs[0].shape != theta.shape or np.array_equal(outputs[0][never], theta[never])


def adapt_adam(mine):
    """The learner's adam_step as the library's function, which changes its arrays in place."""

    def update(data, grad, m1, m2, lr, betas, eps, step, *, scale, team):
        new = mine(data.copy(), grad * scale, m1.copy(), m2.copy(), step, lr)
        for array, value in zip((data, m1, m2), new, strict=True):
            array[...] = value

    return update


EXERCISE = Exercise(
    name="13_adam",
    replaces={"adam_step": Replacement(adam_update, adapt_adam)},
    hints=(
        "Let the gradient be 4 in the first step. What are m1 and m2 then? And which numbers should they be the "
        "mean of?",
        "The weights of the gradients in m1 do not add up to 1. The rest, β₁^step, is the weight of the 0 at the "
        "beginning. It is the same with m2 and β₂. The means that you return are not corrected.",
        "All arrays are (C, F): new m1 from m1 and g;  new m2 from m2 and g²;  m̂₁ and m̂₂ = each mean, divided by "
        "a number that grows from 1 − β to 1;  θ − lr · m̂₁ / (a root + ε)",
    ),
    tasks=(
        Task(
            function="adam_step",
            outputs=(Output("theta", "CF"), Output("m1", "CF"), Output("m2", "CF")),
            make=make_adam,
            sizes=SIZES,
            invariants=(
                Invariant("m2 is nowhere below 0", lambda outputs, problem: not (outputs[2] < 0).any()),
                Invariant(
                    "a weight whose gradient has always been 0 stays where it is (weight decay would move it)",
                    stays_without_gradient,
                ),
                Invariant("no weight moves in the direction of m1, which is uphill", goes_downhill),
            ),
            mistakes=(
                Mistake("correction-beginning-0-missing", {" / (1 - BETA1**step)": "", " / (1 - BETA2**step)": ""}),
                Mistake(
                    "step-one-too-large-correction",
                    {"BETA1**step": "BETA1 ** (step + 1)", "BETA2**step": "BETA2 ** (step + 1)"},
                ),
                Mistake("eps-inside-root", {"np.sqrt(m2_hat) + EPS": "np.sqrt(m2_hat + EPS)"}),
                Mistake("two-betas-swapped", {"    m1 = BETA1": "    BETA1, BETA2 = 0.98, 0.9\n    m1 = BETA1"}),
                Mistake("g-not-squared-m2", {"g**2": "g"}),
                Mistake("factor-1-minus-beta1-missing", {"(1 - BETA1) * g": "g"}),
                Mistake("factor-1-minus-beta2-missing", {"(1 - BETA2) * g**2": "g**2"}),
                Mistake("m2-one-number-all-weights", {"g**2": "(g**2).mean()"}),
                Mistake("corrected-means-returned", {"    return": "    m1, m2 = m1_hat, m2_hat\n    return"}),
                Mistake("corrected-m1-returned", {"+ EPS), m1, m2": "+ EPS), m1_hat, m2"}),
                Mistake("corrected-m2-returned", {"+ EPS), m1, m2": "+ EPS), m1, m2_hat"}),
                Mistake("weight-decay-lr-times-0", {"return theta -": "return theta * (1 - lr * 0.01) -"}),
                Mistake("weight-decay-0-01-added", {"    m1 = BETA1": "    g = g + 0.01 * theta\n    m1 = BETA1"}),
                Mistake("step-goes-uphill", {"theta - lr": "theta + lr"}),
            ),
        ),
    ),
)
