"""What lesson 24 says, against what it computed."""

from types import SimpleNamespace

import numpy as np

from experiments.measuring.hessian import LossOfWeights, largest_eigenpairs

H = 1e-30


def product(run, u):
    """J u of the running example."""
    return run.gradient(run.theta + 1j * H * u, run.model, run.batch)[1].imag / H


HANDS = {
    "Ju": (
        lambda run: product(run, run.u),
        {
            "all of it is 0, or nearly: it is not divided by h, or the step is real, and θ + h u is rounded to θ": (
                lambda run: 0 * run.u
            ),
            "this is the real part, g, divided by h": lambda run: run.g / H,
            "this is g, the real part": lambda run: run.g,
            "the step goes along g, and not along u": lambda run: product(run, run.g),
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    lesson.example("output.L", np.array(run.L))
    lesson.example("dE", run.g[:42].reshape(7, 6))
    quote_one_step(lesson, run)
    quote_valley(lesson, run)
    quote_eigenvalues(lesson, run)
    quote_runs(lesson, run)
    quote_deeper(lesson, run)
    quote_answers(lesson, run)
    claim(lesson, run)


def loss_after(run, lr):
    """The loss of the running example after one step of plain descent."""
    return float(run.gradient(run.theta - lr * run.g, run.model, run.batch)[0])


def quote_one_step(lesson, run):
    """Lina's two steps, and the parabola."""
    small, large = loss_after(run, 0.003), loss_after(run, 0.03)
    lesson.quote("with a loss of 0.111, and all 826 gradients", run.L, len(run.g))
    lesson.quote("with lr = 0.003, and the loss falls to 0.073", 0.003, small)
    lesson.quote("With lr = 0.03 the loss is 1.82, sixteen times", 0.03, large)
    lesson.check("sixteen times what it was", abs(large / run.L - 16), 0.5)
    lesson.quote("to within a factor of two: it is 0.0060", 2 / run.sharpness)
    lesson.quote("So Lina's limit is 2/332.37 = 0.0060", 2, run.sharpness, 2 / run.sharpness)
    lesson.check("her 0.03 was five times too far", abs(0.03 * run.sharpness / 2 - 5), 0.05)
    lesson.check("her 0.003 was almost 1/λ", abs(0.003 * run.sharpness - 1), 0.01)
    lesson.quote("g·(J g)/(g·g), is 305", run.curvature)
    along = abs(run.g @ run.top) / np.linalg.norm(run.g)
    lesson.check("g points nearly along the sharpest direction: the cosine", along, at_least=0.95)
    back = next(lr for lr in np.linspace(0.008, 0.014, 121) if loss_after(run, lr) > run.L)
    lesson.quote("where it was at lr = 0.0065, and in truth it is at 0.0112", 2 / run.curvature, back)
    grid = np.linspace(0.005, 0.007, 41)
    best = grid[np.argmin([loss_after(run, lr) for lr in grid])]
    lesson.check("the best step is at 2/λ", abs(best * run.sharpness / 2 - 1), 0.03)
    lr, square = 1e-6, run.g @ run.g
    rest = (loss_after(run, lr) - run.L + lr * square) / lr**2
    lesson.check("the parabola is right to second order", abs(rest / (square * run.curvature / 2) - 1), 2e-3)


def quote_valley(lesson, run):
    """The quadratic."""
    lesson.quote("It takes 49 steps", run.away)
    lesson.quote("after ten of them you are only 2.6 away", 1.1**10)
    steep, flat = (abs(1 - 1.5 * share) ** 10 for share in (1, 0.1))
    lesson.quote("ten steps in each, with lr = 1.5/λ", 1.5)
    lesson.quote("wall, and 0.001 of its way is left", steep)
    lesson.quote("a tenth as steep, 0.20 is left", flat)
    lesson.check("with a rate of 10/λ, it arrives in one step", abs(1 - 10 * 0.1), 1e-15)
    lesson.check("with 2.1/λ the left one climbs out", abs(1 - 2.1), at_least=1)
    table = {0.5: 0.5, 1: 0, 1.5: -0.5, 2: -1, 2.1: -1.1}
    lesson.check("the factors", max(abs(1 - each - factor) for each, factor in table.items()), 1e-15)
    lesson.check("just below the limit it arrives", abs((1 - 1.999) ** 40_000), 1e-15)


def quote_eigenvalues(lesson, run):
    """The whole matrix."""
    values, base = run.eigenvalues, 63_082_496
    lesson.quote("J has 826² = 682,276 entries here", run.J.shape[0], run.J.size)
    lesson.quote("it would have 4.0e15, or 32 million gigabytes", base**2, base**2 * 8 / 1e15)
    lesson.check("J is symmetric, all of it", np.abs(run.J - run.J.T).max(), 1e-12)
    lesson.quote("Three products give 332.24, and twelve give 332.3692", run.found[2], run.found[11])
    lesson.quote("The next eigenvalues are 105, 48 and 37, and the smallest is −8.56", *values[-2:-5:-1], values[0])
    lesson.quote("And 205 of the 826 are 0", (np.abs(values) < 1e-9).sum(), len(values), 0)
    found = run.error(run.J @ run.top, run.sharpness * run.top)
    lesson.check("power iteration's direction is an eigenvector", found, 1e-5)


def quote_runs(lesson, run):
    """Two runs at the edge of stability."""
    slow, quick = run.slow, run.quick
    first = slow.sharp[0]
    lesson.quote("Transformer of 5,808 weights", len(run.beginning))
    lesson.quote("At the start the sharpness is 7.9, and rates up to 0.25 are stable", first, 2 / first)
    lesson.check("0.04 is a sixth of the limit", abs(0.04 * first / 2 - 1 / 6), 0.02)
    for each in (slow, quick):
        reached = int((each.sharp >= 2 / each.lr).argmax())
        lesson.check(f"lr = {each.lr}: the sharpness reaches 2/lr", each.sharp.max() * each.lr / 2, at_least=1)
        early = np.diff(each.losses[: reached * run.EVERY])
        lesson.check("... and until then the loss falls in every step", early.max(), 0.0)
    for each, at in ((slow, -1), (quick, -1), (quick, run.AT[0] // run.EVERY)):
        lesson.check("a sharpness, against power iteration's", abs(by_power(run, each, at) / each.sharp[at] - 1), 0.005)
    lesson.quote("50 with lr = 0.04 and 25 with lr = 0.08", 2 / 0.04, 0.04, 2 / 0.08, 0.08)
    if not lesson.fast:
        lesson.quote("They overshoot it, to more than 70 and 45", 70, 45)
        lesson.check("the slow run overshoots", slow.sharp.max(), at_least=70)
        lesson.check("the quick run overshoots", quick.sharp.max(), at_least=45)
    third = [each.sharp[-run.STEPS // 80 :] for each in (slow, quick)]
    lesson.quote("the sharpness stays between 49 and 51, and between 23 and 25",
                 *(end for each in third for end in (each.min(), each.max())), within=0.04, full_only=True)  # fmt: skip
    if not lesson.fast:
        theta = slow.visited[400 // run.EVERY]
        other = theta - slow.lr * run.gradient(theta, **run.setup)[1]
        walls = sharpness_at(run, theta), sharpness_at(run, other)
        lesson.quote("it is 55 at one wall and 46 at the other", max(walls), min(walls), within=0.1)
    rises = [int((np.diff(each.losses) > 0).sum()) for each in (slow, quick)]
    lesson.quote("it rises in 83 steps of the slow run and in 115 of the other", *rises, within=0.4, full_only=True)
    lesson.quote("down to 0.72 and 0.64", slow.losses[-1], quick.losses[-1], within=0.06, full_only=True)


def by_power(run, each, at):
    """The sharpness at the same place as `each.sharp[at]`, by a hundred steps of power iteration."""
    theta = each.visited[at]
    halfway = theta - each.lr * run.gradient(theta, **run.setup)[1] / 2
    u = np.random.default_rng(2).standard_normal(len(theta))
    return run.power(lambda u: run.times_J(u, halfway, **run.setup), u, 100)[0][-1]


def sharpness_at(run, theta):
    """The sharpness at θ itself."""
    return largest_eigenpairs(lambda u: run.times_J(u, theta, **run.setup), len(theta), tolerance=1e-3).values[0]


def quote_deeper(lesson, run):
    """What stands in Going deeper."""
    if not lesson.fast:
        halved, doubled = run.halved.sharp, run.doubled.sharp
        passed = run.EVERY * int((halved >= 50).argmax())
        lesson.quote("passes its new limit of 50 some 150 steps later", 50, passed, within=0.4)
        lesson.check("and overshoots it", halved.max(), at_least=55)
        lesson.quote("thrown from 51 to 25 within 25 steps", doubled[0], doubled[1],
                     run.EVERY, within=0.2)  # fmt: skip
        late = run.late_halved.sharp
        lesson.quote("the sharpness only gets from 25 to 31 in the next 200", late[0], late[-1],
                     run.EVERY * (len(late) - 1), within=0.1)  # fmt: skip
    path = {lr: (steps**2).sum(axis=1) for lr, steps in run.valley.items()}
    lesson.quote("From (4, 0.3), where λ is 16.09, descent with lr = 0.1 (limit 20) ends at λ = 16.03", 4, 0.3,
                 path[0.1][0], 0.1, 20, path[0.1][-1])  # fmt: skip
    lesson.quote("With lr = 0.15 (limit 13.3) it jumps, and ends at 9.76", 0.15, 2 / 0.15, path[0.15][-1])
    lesson.quote("(1, 1) is the flattest minimum, with λ = 2", 1, 1, 2)
    lesson.check("(4, ¼) is eight times as sharp", abs((16 + 1 / 16) / 2 - 8), 0.05)
    ghosts = run.with_two[-4:]
    lesson.quote("the four largest are 332.3692 four times", ghosts[0])
    lesson.check("ghosts: all four are the same", ghosts.max() - ghosts.min(), 1e-6)
    lesson.quote("2 (1 + β₁)/λ: 3.8/λ with β₁ = 0.9", 2, 1, 2 * 1.9, 0.9)
    lesson.quote("1 − β₁ = 0.1 before g", 1, 1 - 0.9)
    lesson.quote("with ten times the rate, at 38/λ", 2 * 1.9 / 0.1)
    lesson.quote("report that it stays at 38/lr", 2 * 1.9 / 0.1)


def quote_answers(lesson, run):
    """What the questions and the exercise say."""
    lesson.quote("The loss falls to 0.015, and the sharpness from 332 to 31", run.known, run.eigenvalues[-1],
                 run.known_sharpness, within=0.05)  # fmt: skip
    lesson.quote("does it rise to 2/0.003 = 667", 2, 0.003, 2 / 0.003)
    shifted = np.linalg.eigvalsh(run.J + 50 * np.eye(len(run.J)))
    lesson.check("question 2: a shift adds 50 to each eigenvalue", abs(shifted[-1] - run.eigenvalues[-1] - 50), 1e-9)
    own = LossOfWeights(run.model, SimpleNamespace(inputs=run.batch[:2], targets=run.batch[2]))
    tenfold = largest_eigenpairs(lambda u: 10 * own.hessian_product(run.theta, u), len(run.theta)).values[0]
    lesson.check("question 1: ten times the loss, ten times λ", abs(tenfold / run.sharpness - 10), 1e-8)


def claim(lesson, run):
    """Verdicts on popular texts."""
    slow, quick = run.slow, run.quick
    if lesson.fast:
        return
    lesson.claim(
        "measure the curvature, and choose a learning rate below 2/λ to fit it",
        "the wrong way round",
        f"at the start λ is {slow.sharp[0]:.1f}; in training with 0.04 and 0.08 it ends at {run.late[0.04]:.1f} and "
        f"{run.late[0.08]:.1f}, where 2/lr is 50 and 25",
        said="textbooks on optimization",
    )
    lesson.claim(
        "if the loss rises in some steps, the learning rate is too large",
        "wrong",
        f"with 0.08 it rose in {(np.diff(quick.losses) > 0).sum()} of {len(quick.losses) - 1} steps, and ended lower "
        f"({quick.losses[-1]:.2f}) than with 0.04 ({slow.losses[-1]:.2f})",
        said="tutorials on training",
    )
    off = run.error(run.sharpness, run.eigenvalues[-1])
    lesson.claim(
        "second derivatives are out of reach, because the Hessian has as many entries as the parameters squared",
        "half right",
        f"nobody writes it down, but its product with a vector costs one backward pass, and {len(run.found)} of them "
        f"found the largest of {len(run.eigenvalues)} eigenvalues to {off:.0e}",
        said="introductions to optimizers",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    lesson.quote("With 0.55 the factor is −1.2", 0.55, 1 - 4 * 0.55)

    def left(gain, late):
        missing = [1.0, 1.0]
        for _ in range(4000):
            missing.append(missing[-1] - 4 * gain * missing[-1 - late])
            if abs(missing[-1]) > 100:
                break
        return abs(missing[-1])

    for limit, late in ((0.5, 0), (0.25, 1)):
        lesson.check(f"gain just below {limit}: it gets there", left(0.99 * limit, late), 1e-3)
        lesson.check(f"gain just above {limit}: it does not", left(1.01 * limit, late), at_least=100)
