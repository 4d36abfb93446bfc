"""What lesson 15 says, against what it computed."""

from support.chart import wrong_gradients
from support.patients import PATIENTS

import numpy as np

from minitransformer.example import load_example

WOUNDED = "encoder.layers.0.feed_forward.sublayer.expand.W"
HANDS = {  # name: (what is right, {known mistake: what it gives})
    "expected": (
        lambda run: np.log(run.V) + 0.5,
        {
            "right only if all logits were 0: exp makes more of the large ones than of the small": lambda run: np.log(
                run.V
            ),
            "σ² without the half: the mean of exp(z) is exp(σ²/2)": lambda run: np.log(run.V) + 1,
            "the sign: exp(σ²/2) is above 1, so it makes the sum larger": lambda run: np.log(run.V) - 0.5,
            "the logits of V tokens are summed after exp: V times the mean": lambda run: 0.5,
            "this is the sum; the loss is its logarithm": lambda run: run.V * np.exp(0.5),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    the_example(lesson, run)
    the_tools(lesson, run)
    the_gradient_check(lesson, run)
    the_patients(lesson, run)
    if not lesson.fast:
        after_training(lesson, run)
    the_claims(lesson, run)


def the_example(lesson, run):
    lesson.example("output.L", run.L)
    lesson.example("dE", run.gradients["source_embedding.tokens.E"])
    lesson.example("decoder.norm3.dgamma", run.gradients["decoder.layers.0.feed_forward.norm.gamma"])
    lesson.quote('running example has 33 arrays, and the loss 0.1108 for "stop"', len(run.gradients), run.L)


def the_tools(lesson, run):
    rng = np.random.default_rng(9)
    lesson.quote("each of the V = 29 tokens would cost ln 29 = 3.367 nats", run.V, run.V, np.log(run.V))
    lesson.check("the line of the first loss", abs(HANDS["expected"][0](run) - np.log(29) - 0.5), 0)
    lesson.quote("near ln 29 + 1/2 = 3.867", run.V, 1, 2, np.log(run.V) + 0.5)
    grid, sigma = np.linspace(-20, 20, 4001), 1.3
    density = np.exp(-(grid**2) / (2 * sigma**2)) / np.sqrt(2 * np.pi * sigma**2)
    mean = (np.exp(grid) * density).sum() * (grid[1] - grid[0])
    lesson.check("mean of exp(z) / exp(σ²/2) − 1", abs(mean / np.exp(sigma**2 / 2) - 1), 1e-12)
    lesson.quote("Averaged over 12 seeds, the first loss is 3.85", 12, run.untied, within=0.001)
    lesson.quote("With the shared matrix it is 3.99", run.tied, within=0.001)

    losses = [theta[0] ** 2 + 10 * theta[1] ** 2 for theta in run.half_right]
    lesson.quote("first step takes the loss from 1.10 to 0.95", *losses[:2])
    lesson.quote("the loss gets stuck at 0.1", losses[-1])
    lesson.check("with all of the gradient the loss goes to", (run.right[-1] ** 2 * [1, 10]).sum(), 1e-6)

    a, b = 3, 4
    wanted, stammered, swapped = (np.array(ids) for ids in ([a, b, b, a], [a, b, b, b], [a, a, b, b]))
    lesson.quote("Half the sum of the two differences is 1/4", 4 * run.histogram_distance(stammered, wanted), 4)
    lesson.quote("aabb instead of abba has distance 0", run.histogram_distance(swapped, wanted))
    above = []
    for _ in range(500):
        wanted = rng.integers(3, 8, 20)
        written = np.where(rng.random(20) < rng.random(), rng.integers(3, 8, 20), wanted)  # few or many places wrong
        above.append(run.histogram_distance(written, wanted) - (written != wanted).mean())
    lesson.check("histogram distance above the share of wrong places", max(above), 1e-12)

    model, order = load_example().model, rng.permutation(4)
    source = run.ids_of("stop", "toot")
    differences = model.encode(source[:, order])[0] - model.encode(source)[0][:, order]
    lesson.check("with positions the encoder is not equivariant, by", np.abs(differences).max(), at_least=0.1)


def the_gradient_check(lesson, run):
    example = load_example("toot")
    healthy_backward, wounded = example.model.backward, dict(example.model.named_parameters())[WOUNDED]

    def backward(dlogits, cache):
        healthy_backward(dlogits, cache)
        wounded.grad *= 1.001

    example.model.backward = backward
    errors = run.gradient_errors(example)
    lesson.check("a gradient 0.1 % too large is reported as 0.001, except for", abs(errors.pop(WOUNDED) - 1e-3), 1e-6)
    lesson.check("and all others as right", max(errors.values()), 1e-10)
    for word, least, most in (("toot", 0.1, 10), ("pop", 0.1, 10), ("stop", 0, 1e-10), ("top", 0, 1e-10)):
        lesson.check(f"patient 4, {word}: at least", run.by_word[word], at_least=least)
        lesson.check(f"patient 4, {word}: at most", run.by_word[word], most)
    lesson.quote("the gradient check reports an error of 233 %", 100 * max(run.errors[2].values()))


def the_patients(lesson, run):
    found = run.found
    wrong = {patient: wrong_gradients(run.errors[patient]) for patient in np.flatnonzero(found[:, 3])}
    assert all(sum(count for _, count in places.values()) == 33 for places in wrong.values()), "each tensor has a place"
    published = sum("ublish" in patient.lesson or "public" in patient.lesson for patient in PATIENTS)
    lesson.check("patients from published code, other than 6", abs(published - 6), 0)
    for title, column, count in (("first loss", 0, 2), ("leak", 2, 3), ("gradient", 3, 4), ("permute", 4, 1)):
        lesson.check(f"patients found by {title}, other than {count}", abs(found[1:, column].sum() - count), 0)
    of_patient_2 = sum(value > 1e-9 for value in run.errors[2].values())
    lesson.quote("31 of 33 gradients may be nonsense", of_patient_2, len(run.errors[2]))
    lesson.quote("one with 31 of 33 gradients wrong", of_patient_2, len(run.errors[2]))
    assert set(wrong) == {2, 4, 7, 9}, "In four patients"
    assert [place for place, (count, _) in wrong[4].items() if count] == ["E"]
    assert wrong[7]["decoder\ncross"] == (2, 6), "two of six"
    assert wrong[7]["decoder\nnorm 1"] == (0, 2), "and so is the norm before them"
    assert not any(count for place, (count, _) in wrong[9].items() if "encoder" in place), "The encoder is spared"


def after_training(lesson, run):
    table, found, solves = np.array(run.table), run.found, run.solves
    lesson.check("healthy: loss on one batch", table[0, 1], 0.02)
    lesson.check("healthy: histogram", table[0, 5], 0.015)
    lesson.check("healthy: exact match", table[0, 6], at_least=0.95)
    lesson.check("patients that solve the task, other than 4", abs(solves[1:].sum() - 4), 0)
    lesson.check("patients that fail on one batch, other than 1", abs(found[1:, 1].sum() - 1), 0)
    lesson.check("patients in which nothing is found, other than 1", abs((~found[1:].any(axis=1)).sum() - 1), 0)
    eager = table[:, 0].argmin()
    lesson.check("lowest first loss: its loss on one batch, above the lowest", table[eager, 1] - table[:, 1].min(), 0)
    lesson.check("lowest first loss: its exact match", table[eager, 6], 0.01)
    lesson.check("no causal mask: its exact match", table[6, 6], 0.5)


def the_claims(lesson, run):
    lesson.claim(
        "a model that overfits one batch has a right backward pass",
        "wrong",
        f"with {sum(value > 1e-9 for value in run.errors[2].values())} of {len(run.errors[2])} gradients wrong, the "
        f"loss on one batch still falls to {run.table[2][1]:.3f}",
        said="checklists and recipes for training",
    )
    if not lesson.fast:
        lesson.claim(
            "a model that solves the task is right",
            "wrong",
            f"{run.solves[1:].sum()} of 10 models with a planted bug copy at least 90 % of unseen words",
            said="the README files of many implementations",
        )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("(ln 10 = 2.303 if", 10, np.log(10))
