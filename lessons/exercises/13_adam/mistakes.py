"""The problems, the hints and the known mistakes of 13_adam."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import sizes
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
                Mistake(
                    "the correction for the beginning at 0 is missing",
                    "m1 and m2 begin at 0. How much of this 0 is still in them after the first step?",
                    {" / (1 - BETA1**step)": "", " / (1 - BETA2**step)": ""},
                ),
                Mistake(
                    "step is one too large in the correction",
                    "step counts from 1. After the first step, which share of m1 comes from a gradient?",
                    {"BETA1**step": "BETA1 ** (step + 1)", "BETA2**step": "BETA2 ** (step + 1)"},
                ),
                Mistake(
                    "eps is inside the root",
                    "How large is √1e-9, compared with a gradient of 1e-6? Should eps matter there?",
                    {"np.sqrt(m2_hat) + EPS": "np.sqrt(m2_hat + EPS)"},
                ),
                Mistake(
                    "the two betas are swapped",
                    "Which of the two means should look back over 10 steps, and which over 50?",
                    {"    m1 = BETA1": "    BETA1, BETA2 = 0.98, 0.9\n    m1 = BETA1"},
                ),
                Mistake(
                    "g is not squared in m2",
                    "The root of m2 must have the size of g. Does it? And what if m2 is negative?",
                    {"g**2": "g"},
                ),
                Mistake(
                    "the factor 1 − β₁ is missing in m1",
                    "If g is 1 in every step, its mean should become 1. What does your m1 become?",
                    {"(1 - BETA1) * g": "g"},
                ),
                Mistake(
                    "the factor 1 − β₂ is missing in m2",
                    "If g is 1 in every step, the mean of g² should become 1. What does your m2 become?",
                    {"(1 - BETA2) * g**2": "g**2"},
                ),
                Mistake(
                    "m2 is one number for all weights",
                    "A weight with small gradients should take steps as long as the others. Does it have an m2 of "
                    "its own?",
                    {"g**2": "(g**2).mean()"},
                ),
                Mistake(
                    "the corrected means are returned",
                    "The next step corrects the means that it gets. What if they are corrected already?",
                    {"    return": "    m1, m2 = m1_hat, m2_hat\n    return"},
                ),
                Mistake(
                    "the corrected m1 is returned",
                    "The next step corrects m1 again. What if it is corrected already? And which one did you use for "
                    "θ?",
                    {"+ EPS), m1, m2": "+ EPS), m1_hat, m2"},
                ),
                Mistake(
                    "the corrected m2 is returned",
                    "The next step corrects m2 again. What if it is corrected already? And which one did you use for "
                    "θ?",
                    {"+ EPS), m1, m2": "+ EPS), m1, m2_hat"},
                ),
                Mistake(
                    "there is weight decay, of lr times 0.01, as in AdamW",
                    "Suppose that the gradient of a weight is 0, and has always been. Should the weight move?",
                    {"return theta -": "return theta * (1 - lr * 0.01) -"},
                ),
                Mistake(
                    "weight decay of 0.01 is added to the gradient",
                    "Both means are of g alone. Suppose that g is 0, and has always been: what should m1 and m2 be?",
                    {"    m1 = BETA1": "    g = g + 0.01 * theta\n    m1 = BETA1"},
                ),
                Mistake(
                    "the step goes uphill",
                    "If the loss rises with θ, in which direction should θ go?",
                    {"theta - lr": "theta + lr"},
                ),
            ),
        ),
    ),
)
