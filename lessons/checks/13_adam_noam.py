"""What lesson 13 says, against what it computed."""

import numpy as np

from experiments.measuring.laws import CHINCHILLA, PUBLISHED
from minitransformer.core import Parameter
from minitransformer.inspection import training_flops
from minitransformer.models import named_config
from minitransformer.training import clip_grad_norm
from minitransformer.training import noam as library_noam

HANDS = {  # name: (what is right, {known mistake: what it gives})
    "proper": (
        lambda run: run.three / (1 - 0.9**3),
        {
            "divided by 1 − β₁, which is the sum of the factors after the first step only": lambda run: run.three / 0.1,
            "divided by β₁^step, the factor of the 0: divide by what the gradients have": lambda run: (
                run.three / 0.9**3
            ),
            "divided by the number of steps, but m₁ is a sum whose factors are already below 1": lambda run: (
                run.three / 3
            ),
            "step is one too large": lambda run: run.three / (1 - 0.9**4),
            "step is one too small": lambda run: run.three / (1 - 0.9**2),
            "multiplied by the sum of the factors, not divided by it": lambda run: run.three * (1 - 0.9**3),
            "the plain mean of the three: the last gradient should count most": lambda run: 3.0,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    L, g, start, noam, adam_step = run.L, run.g, run.start, run.noam, run.adam_step
    lesson.example("output.L", np.array(L))
    lesson.example("dE", run.dE)
    size, known = np.abs(g), np.abs(g) > 1e-9
    largest = size.argmax()
    lesson.quote("for all of its 826 parameters", g.size)
    lesson.quote("with the largest gradient, −1.35, has moved by 0.00135", g[largest], 0.001 * size.max())
    lesson.quote("The row of «pad» has no gradient above 0.001 in size", np.abs(run.dE[0]).max())
    lesson.quote(
        "smallest that is not 0, 0.0000115, has moved by 0.00000001, which is 118,000 times less",
        *(0, size[known].min(), 0.001 * size[known].min(), size.max() / size[known].min()),
        within=0.01,
    )
    lesson.quote("so its m₁ is 0.1 · (3 + 0.9 · 4 + 0.81 · 2) = 0.822", 0.1, 3, 0.9, 4, 0.81, 2, run.three)
    lesson.quote("The factors add up to 1 − 0.9³ = 0.271, and 0.822/0.271 = 3.03", 1, 0.9, 1 - 0.9**3, run.three,
                 1 - 0.9**3, run.three / (1 - 0.9**3))  # fmt: skip
    first_steps(lesson, run, largest)
    lesson.quote("have two decimals (median size 0.28)", np.median(np.abs(start)))
    lesson.quote("1/(1 − β₁) = 10 steps (0.9¹⁰ = 0.35)", 1, 1, 1 / (1 - 0.9), 0.9, 0.9**10)
    lesson.quote("= −74.8 lr", -size.sum())
    after = run.after
    lesson.quote("With lr = 0.001 the loss falls from 0.111 to 0.070", 0.001, L, after[0.001])
    lesson.quote("with lr = 0.01 it *rises* to 2.15", 0.01, after[0.01])
    lesson.quote("prediction was −0.64, and", L - 0.01 * size.sum())
    lesson.check(
        "the smallest rate: the loss falls as predicted", abs(1 - (L - after[1e-4]) / (1e-4 * size.sum())), 0.1
    )
    x = np.random.default_rng(0).standard_normal((1000, 512))
    change = np.abs(x).sum(axis=1).mean()
    lesson.quote("0.8 C lr: a normal |x_c| has the mean 0.8", change / 512, change / 512)
    lesson.quote("0.8 is √(2/π)", change / 512, 2)
    lesson.check("the mean of a normal |x_c| is √(2/π)", abs(change / 512 / np.sqrt(2 / np.pi) - 1), 2e-3)
    worst_case(lesson, x)
    lesson.quote(
        "6.99e-4 for the base model (C = 512), 4.94e-4 for the big one (C = 1024). Step 1 has only 1.75e-7",
        *(noam(4000, 512), 512, noam(4000, 1024), 1024, 1, noam(1, 512)),
    )
    lesson.quote(
        "a first step of 6.99e-4 would change y by 0.29, and one of 1.75e-7 changes it by 0.00007",
        *(noam(4000, 512), change * noam(4000, 512), noam(1, 512), change * noam(1, 512)),
    )
    lesson.quote('"lr = 2" means twice this curve, with a peak of 1.40e-3', 2, noam(4000, 512, factor=2))
    at = (1, 7, 3999, 4000, 4001, 10**6)
    both = [[f(step, 512, 4000, 2.0) for step in at] for f in (noam, library_noam)]
    lesson.check("the schedule is the library's", np.abs(np.subtract(*both)).max(), 0)
    try:
        noam(0, 512)
    except ZeroDivisionError:
        pass
    else:
        raise AssertionError("step 0 does not divide by zero")
    key_biases(lesson, run, start)
    deeper(lesson, run)
    claims(lesson, run, adam_step)


def worst_case(lesson, x):
    """One output of a linear layer, in the first step of Adam from all tokens x (N, C)."""
    dy = np.random.default_rng(1).standard_normal(len(x))
    most = np.abs(x).sum(axis=1)
    for N, unrelated in ((1, 1.0), (20, 20**-0.5)):
        change = [
            dy[n] / abs(dy[n]) * x[n] @ np.sign(dy[at : at + N] @ x[at : at + N])
            for at in range(0, len(x), N)
            for n in range(at, at + N)
        ]
        share = np.array(change) / most
        lesson.check(f"{N} tokens: y changes by at most lr Σ_c |x_c|", np.abs(share).max(), 1 + 1e-12)
        if N == 1:
            lesson.check("one token: and by all of it", share.min(), at_least=1 - 1e-12)
        else:
            lesson.check("unrelated tokens: by far less", share.mean(), 1.2 * unrelated)


def first_steps(lesson, run, largest):
    """The small numbers: the first two steps of the parameter with the largest gradient."""
    model, weights, theta, m1, m2, rows = run.model, run.weights, run.start, 0.0, 0.0, []
    for step in (1, 2):
        weights.data[:] = theta
        _, g = run.loss_and_gradient(model, weights)
        new, m1, m2 = run.adam_step(theta, g, m1, m2, step, lr=0.001)
        rows.append([each[largest] for each in (theta, g, m1, m2, new - theta)])
        theta = new
    (at1, g1, m11, m21, moved1), (at2, g2, m12, m22, moved2) = rows
    lesson.quote("largest gradient, −1.35068, which is in the row of E for «o» and has the value 0.27", g1, at1)
    lesson.quote("m₁ = 0.1 · (−1.35068) = −0.13507", 0.1, g1, m11)
    lesson.quote("m₂ = 0.02 · 1.35068² = 0.036487", 0.02, -g1, m21)
    lesson.quote("m̂₁ = −0.13507/0.1 = −1.3507", m11, 0.1, m11 / 0.1)
    lesson.quote("m̂₂ = 0.036487/0.02 = 1.8243", m21, 0.02, m21 / 0.02)
    lesson.quote("θ = 0.27 + 0.001 · 1.3507/√1.8243 = 0.27 + 0.001", at1, 0.001, -g1, m21 / 0.02, at1, moved1)
    lesson.quote("and the gradient is now −0.4847)", g2)
    lesson.quote("m₁ = 0.9 · (−0.13507) + 0.1 · (−0.4847) = −0.1700", 0.9, m11, 0.1, g2, m12)
    lesson.quote("m₂ = 0.98 · 0.036487 + 0.02 · 0.4847² = 0.04046", 0.98, m21, 0.02, -g2, m22)
    lesson.quote("m̂₁ = −0.1700/0.19 = −0.895", m12, 0.19, m12 / 0.19)
    lesson.quote("m̂₂ = 0.04046/0.0396 = 1.022", m22, 1 - 0.98**2, m22 / 0.0396)
    lesson.quote(
        "θ = 0.271 + 0.001 · 0.895/√1.022 = 0.271 + 0.000885", at2, 0.001, -m12 / 0.19, m22 / 0.0396, at2, moved2
    )
    lesson.check("E: each entry moves by lr", np.abs(np.abs(run.moved) - 1).max(), 1e-4)


def key_biases(lesson, run, start):
    """What learns from rounding noise. Its numbers are rounding noise, so the bounds are wide."""
    (key64, _), (key32, query32) = run.noise["float64"], run.noise["float32"]
    moved_key64, moved_query64 = run.moved_by["float64"]
    moved_key32, moved_query32 = run.moved_by["float32"]
    lesson.check("float64: the first gradient of the key biases", key64, 1e-15)
    lesson.quote("the noise is about 5e-9", key32, within=2.0)
    lesson.quote("of the query biases (0.11)", query32)
    lesson.check("float32: millions of times smaller than the query biases'", query32 / key32, at_least=2e6)
    lesson.quote("So the key biases move by about 0.004", moved_key32, within=2.0)
    lesson.quote("the query biases, which move by 0.005", moved_query32, within=0.2)
    lesson.check(
        "float32: how far the key biases move, over the query biases", moved_key32 / moved_query32, at_least=0.25
    )
    lesson.check("float64: the same", moved_key64 / moved_query64, 1e-7)
    model, weights = run.model, run.weights
    names = [name for name, each in model.named_parameters() for _ in range(each.data.size)]
    key = [i for i, name in enumerate(names) if name.endswith((".qkv.b", ".kv.b"))]
    key = np.array(key)[[*range(6, 12), *range(24, 30), *range(36, 42)]]
    weights.data[:] = start
    weights.data[key] += 5.0
    loss, gradient = run.loss_and_gradient(model, weights)
    lesson.check("5 added to all key biases: the loss changes by", abs(loss - run.L), 1e-13)
    off = np.abs(run.g) < 1e-9
    lesson.quote("and 18 to the biases of the keys", off[key].sum())
    rest = np.setdiff1d(np.flatnonzero(off), key)
    lesson.quote("Of our 31 zero gradients, 13 belong to a hidden feature", off.sum(), len(rest))
    lesson.check("a hidden feature has C + 1 + C of them", abs(len(rest) - (6 + 1 + 6)), 0)
    lesson.check("they belong to the feed-forward network", all("feed_forward" in names[i] for i in rest), at_least=1)
    lesson.check("and are 0 without noise", np.abs(run.g[rest]).max(), 0)
    lesson.check("no gradient of a key bias is more than noise", np.abs(gradient[key]).max(), 1e-15)


def deeper(lesson, run):
    """What stands in Going deeper."""
    longest = run.longest
    lesson.quote(
        "at most 1.70 with the paper's β₁ and β₂, and 7.27 with PyTorch's β₂ = 0.999", *longest.values(), 0.999
    )
    lesson.quote("grows by β₂/β₁ = 1.089 in every step", 0.98 / 0.9)
    flat = run.valleys
    lesson.quote("with 0.019 it still has 0.93 of its way along the flat axis to go", 0.019, flat["SGD"])
    lesson.quote("Adam, too, has 0.97 left", flat["Adam, turned"])
    lesson.check("Adam in the straight valley: distance left", flat["Adam"], 1e-6)

    arrays = [np.array([0.3, 0.4]), np.array([3.0, -4.0, 12.0])]
    parameters = [Parameter(array) for array in arrays]
    for parameter, array in zip(parameters, arrays, strict=True):
        parameter.grad = array
    clip_grad_norm(parameters, 1.0)
    length = np.sqrt(sum((array**2).sum() for array in arrays))
    clipped = max(np.abs(p.grad - array / length).max() for p, array in zip(parameters, arrays, strict=True))
    lesson.check("clipping multiplies all by limit/‖g‖, as in the library", clipped, 1e-6)

    without = run.without
    lesson.quote("The steps are 0.1/√0.02 = 0.71 lr and 0.1/√0.001 = 3.16 lr long", 0.1, 0.02, 0.1 / 0.02**0.5, 0.1,
                 0.001, 0.1 / 0.001**0.5)  # fmt: skip
    lesson.quote("and the losses are 0.076 and 0.172", without[0.98], without[0.999])
    lesson.quote("the corrections are 1: about 0.71 lr", 1, 0.1 / 0.02**0.5)
    lesson.quote("√(0.1/1.9) = 0.23 lr", 0.1, 1.9, (0.1 / 1.9) ** 0.5)
    rate = run.noam(400_000, 512) / run.noam(4000, 512)
    lesson.quote("√100 = 10 times too small", 1 / rate**2, 1 / rate)


def claims(lesson, run, adam_step):
    """What popular texts say."""
    moves = [-adam_step(0.0, size, 0.0, 0.0, 1, lr=0.01)[0] for size in (1e3, 1e-3, 1e-9)]
    lesson.check(
        "gradients of 1000 and 0.001: the first step is lr", max(abs(each / 0.01 - 1) for each in moves[:2]), 3e-6
    )
    lesson.check("a gradient as small as ε: half of it", abs(moves[2] / 0.005 - 1), 1e-14)
    lesson.claim(
        "Adam's first step has the size lr whatever the gradient",
        "right",
        f"gradients of 1000 and 0.001 move a weight by {moves[0]:.5f} and {moves[1]:.5f} at lr = 0.01, one as small as "
        "ε by half of that",
        said="tutorials on Adam",
    )
    lesson.claim(
        "a step of Adam is at most lr long",
        "wrong",
        f"a steadily growing gradient makes steps of {run.longest[0.98]:.2f} lr (the paper's β₂) or "
        f"{run.longest[0.999]:.2f} lr (β₂ = 0.999)",
        said="tutorials; Adam's own paper, section 2.1, for the β of the Transformer",
    )
    lesson.claim(
        '"lr = 2" under the Noam schedule is a learning rate of 2',
        "wrong",
        f"it is a factor; the base model's largest rate is then {run.noam(4000, 512, factor=2):.2e}",
        said="questions about the recipes of well-known code",
    )
    flat = run.valleys
    lesson.claim(
        "Adam cures badly scaled problems",
        "half right",
        f"if the scales are those of single weights ({flat['Adam']:.0e} of the way left); with the axes turned by 45 "
        f"degrees {flat['Adam, turned']:.2f} is left, as with SGD ({flat['SGD']:.2f})",
        said="lecture notes on optimizers",
    )
    (key64, _), (key32, query32) = run.moved_by["float64"], run.moved_by["float32"]
    lesson.claim(
        "a weight without influence on the loss stays where it is",
        "wrong",
        f"in float32 rounding noise of {run.noise['float32'][0]:.0e} moved the key biases {key32 / query32:.1f} times "
        f"as far as the query biases in 100 steps; in float64 they stay (moved by {key64:.0e})",
        said="intuition, and tests that compare trained weights",
    )
    (base, counted), (big, counted_big) = training_cost("base", 100_000, 12), training_cost("big", 300_000, 3.5 * 24)
    lesson.claim(
        "training the Transformer took 3.3e18 (base) and 2.3e19 (big) floating-point operations",
        "half right",
        f"this is time times the capacity of 8 GPUs, {base:.2e} and {big:.2e}; counted are {counted:.1e} and "
        f"{counted_big:.1e}, less by factors of {base / counted:.1f} and {big / counted_big:.1f}",
        said="table 2 of the paper (which says so), and texts that quote it",
    )
    (N, D), (again_N, again_D) = (PUBLISHED[name].optimum(CHINCHILLA) for name in PUBLISHED)
    lesson.claim(
        "a budget is best spent on 20 tokens for each parameter",
        "half right",
        f"the constants that the paper prints say {D / N:.1f} for its own largest budget, those of a fit to the same "
        f"runs by Besiroglu et al. (2024) say {again_D / again_N:.1f}; the ratio depends on the budget, the data and "
        "the fit",
        said="Hoffmann et al. 2022 (by two of three methods), and most texts on scaling since",
    )


def training_cost(name, steps, hours):
    """A model of the paper -> (hours times the rate of 8 GPUs, as in Table 2; what its matrix products need)."""
    tokens = 25_000 * steps  # in sentences of 30
    counted = sum(training_flops(named_config(name, 37_000), tokens, tokens, 30, 30).values())
    return hours * 3600 * 8 * 9.5e12, counted


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    mean = 0.0
    for _ in range(10):
        mean = 0.99 * mean + 0.01 * 20
    lesson.quote("It shows 1.91 degrees", mean)
    lesson.quote("= 0.0956, and divided", 1 - 0.99**10)
    lesson.check("divided by the sum of its factors", abs(mean / (1 - 0.99**10) - 20), 1e-12)
