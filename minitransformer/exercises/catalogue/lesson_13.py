"""Lesson 13: one step of Adam, and the Noam curve."""

import math

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.replacement import Replacement
from minitransformer.training import noam
from minitransformer.training.optimizers import adam_update

I, O = 3, 4
BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


def make_adam(rng, given):
    """The first step or a later one, with gradients from 1e-8 to 10 and one that is always 0."""
    t = 1 if rng.random() > 0.6 else int(rng.integers(2, 100))  # 1 for the first of the checker's three problems
    size = 10.0 ** np.linspace(-8, 1, I * O).reshape(I, O)
    size[0, 0] = 0
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


def without_correction(theta, g, m, v, t, lr):
    """The means as they are."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g**2
    return theta - lr * m / (np.sqrt(v) + EPS), m, v


def with_t_counted_from_0(theta, g, m, v, t, lr):
    """As if step 1 were called 0."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g**2
    m_hat, v_hat = m / (1 - BETA1 ** (t + 1)), v / (1 - BETA2 ** (t + 1))
    return theta - lr * m_hat / (np.sqrt(v_hat) + EPS), m, v


def with_eps_in_the_root(theta, g, m, v, t, lr):
    """As in a LayerNorm."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g**2
    m_hat, v_hat = m / (1 - BETA1**t), v / (1 - BETA2**t)
    return theta - lr * m_hat / np.sqrt(v_hat + EPS), m, v


def with_betas_swapped(theta, g, m, v, t, lr):
    """The long memory for m."""
    m = BETA2 * m + (1 - BETA2) * g
    v = BETA1 * v + (1 - BETA1) * g**2
    m_hat, v_hat = m / (1 - BETA2**t), v / (1 - BETA1**t)
    return theta - lr * m_hat / (np.sqrt(v_hat) + EPS), m, v


def without_square(theta, g, m, v, t, lr):
    """A mean of g in the place of one of g²; where it is negative, it has no root."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g
    m_hat, v_hat = m / (1 - BETA1**t), v / (1 - BETA2**t)
    with np.errstate(invalid="ignore"):
        return theta - lr * m_hat / (np.sqrt(v_hat) + EPS), m, v


def keeping_the_corrected(theta, g, m, v, t, lr):
    """The corrected means go on into the next step."""
    m = (BETA1 * m + (1 - BETA1) * g) / (1 - BETA1**t)
    v = (BETA2 * v + (1 - BETA2) * g**2) / (1 - BETA2**t)
    return theta - lr * m / (np.sqrt(v) + EPS), m, v


def uphill(theta, g, m, v, t, lr):
    """The sign."""
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g**2
    m_hat, v_hat = m / (1 - BETA1**t), v / (1 - BETA2**t)
    return theta + lr * m_hat / (np.sqrt(v_hat) + EPS), m, v


def adapt_adam(mine):
    """The learner's adam_step as the library's function, which changes its arrays in place."""

    def update(data, grad, m, v, lr, betas, eps, t, *, scale, team):
        new = mine(data.copy(), grad * scale, m.copy(), v.copy(), t, lr)
        for array, value in zip((data, m, v), new, strict=True):
            array[...] = value

    return update


ADAM = Exercise(
    name="13_adam",
    see="lesson 13, parts 2 and 3",
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
            invariants=(
                Invariant("v is nowhere below 0", lambda outputs, problem: not (outputs[2] < 0).any()),
                Invariant("no weight moves the way that the mean gradient points", goes_downhill),
            ),
            mistakes=(
                Mistake(
                    "the bias correction is missing",
                    "m and v begin as zeros. How much of that zero is still in them after t steps?",
                    without_correction,
                ),
                Mistake(
                    "t is one too large in the bias correction",
                    "t counts from 1. After the first step, which share of m comes from a gradient?",
                    with_t_counted_from_0,
                ),
                Mistake(
                    "eps is inside the root",
                    "How large is √1e-9, compared with a gradient of 1e-6? What did the paper mean to be small?",
                    with_eps_in_the_root,
                ),
                Mistake(
                    "the two betas are swapped",
                    "Which of the two means is to look back over 10 steps, and which over 50?",
                    with_betas_swapped,
                ),
                Mistake(
                    "g is not squared in v",
                    "What has the unit of g after the root is taken? And can a mean of g have a root at all?",
                    without_square,
                ),
                Mistake(
                    "the corrected means are handed on",
                    "The next step will correct what it is given. What if that has been corrected already?",
                    keeping_the_corrected,
                ),
                Mistake("the step goes uphill", "A loss that rises with θ: which way is θ to go?", uphill),
            ),
        ),
    ),
)


def make_noam(rng, given):
    """Steps before, at and after the end of the warm-up."""
    w, d_model, factor = int(rng.integers(6, 60)), int(rng.integers(10, 600)), float(rng.uniform(1.5, 4))
    s = np.array([1, w // 2, w - 1, w, w + 1, 3 * w, 20 * w])
    expected = np.array([noam(step, d_model, w, factor) for step in s.tolist()])
    ratios = {"factor": factor, "d_model": d_model, "sqrt(d_model)": math.sqrt(d_model), "w": w, "sqrt(w)": w**0.5}
    places = {"during the warm-up": {"lr": s < w}, "from step w on": {"lr": s >= w}}
    return Problem((s, d_model, w, factor), (expected,), ratios=ratios, places=places)


def with_the_larger(s, d_model, w=4000, factor=1.0):
    """The other branch, everywhere."""
    return factor * d_model**-0.5 * np.maximum(s**-0.5, s * w**-1.5)


def from_step_0(s, d_model, w=4000, factor=1.0):
    """As in code that calls the first step 0."""
    s = s + 1
    return factor * d_model**-0.5 * np.minimum(s**-0.5, s * w**-1.5)


def with_a_rise_to_1(s, d_model, w=4000, factor=1.0):
    """The share of the warm-up that is over."""
    return factor * d_model**-0.5 * np.minimum(s**-0.5, s / w)


def with_the_root_of_the_width(s, d_model, w=4000, factor=1.0):
    """The exponent's sign."""
    return factor * d_model**0.5 * np.minimum(s**-0.5, s * w**-1.5)


def without_factor(s, d_model, w=4000, factor=1.0):
    """The paper's formula, whatever the factor."""
    return d_model**-0.5 * np.minimum(s**-0.5, s * w**-1.5)


def staying_at_the_peak(s, d_model, w=4000, factor=1.0):
    """A rise, and then nothing."""
    return factor * d_model**-0.5 * np.minimum(w**-0.5, s * w**-1.5)


def adapt_noam(mine):
    """The learner's noam as the library calls its own, for one step."""

    def rate(step, d_model, warmup=4000, factor=1.0):
        return float(np.reshape(mine(np.array([step]), d_model, warmup, factor), -1)[0])

    return rate


NOAM = Exercise(
    name="13_noam",
    see="lesson 13, part 4",
    replaces={"noam": Replacement(noam, adapt_noam)},
    hints=(
        "At which step is the rate to be largest? What are the two branches there?",
        "The straight line goes through 0 and meets the root at s = w: that tells its slope. Before w the line is "
        "the lower one of the two. In front stand two numbers that know nothing of s.",
        "(S,) = number · number · the lower one of (S,) and (S,): a power of s, and s times a power of w",
    ),
    tasks=(
        Task(
            function="noam",
            outputs=(Output("lr", "S"),),
            make=make_noam,
            mistakes=(
                Mistake(
                    "the larger branch is taken, not the smaller",
                    "What is s^−0.5 at the first step, and is the warm-up not there to avoid just that?",
                    with_the_larger,
                ),
                Mistake(
                    "steps are counted from 0",
                    "The s that comes in counts from 1 already. Where is the peak with what you do to it?",
                    from_step_0,
                ),
                Mistake(
                    "the warm-up rises to 1, and does not meet the root at w",
                    "What are your two branches at s = w? Are they the same number there?",
                    with_a_rise_to_1,
                ),
                Mistake(
                    "d_model has the wrong exponent",
                    "In a wider model more changes pull together. Is its rate to be larger, or smaller?",
                    with_the_root_of_the_width,
                ),
                Mistake("the factor is missing", 'Somebody trains "with lr = 2". Where is the 2?', without_factor),
                Mistake(
                    "the rate stays at the peak",
                    "Which of the two branches holds after w steps, and does it know s?",
                    staying_at_the_peak,
                ),
            ),
        ),
    ),
)

EXERCISES = (ADAM, NOAM)
