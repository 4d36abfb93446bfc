"""What lesson 01 says, against what it computed."""

import numpy as np

HANDS = {
    "best_h": (
        lambda run: np.sqrt(2 * run.eps * run.size / run.bend),
        {
            "the 2 is lost: the derivative of (h/2) |f''| is |f''|/2": lambda run: np.sqrt(
                run.eps * run.size / run.bend
            ),
            "this is h², and h is its root": lambda run: 2 * run.eps * run.size / run.bend,
            "|f| and |f''| are exchanged": lambda run: np.sqrt(2 * run.eps * run.bend / run.size),
            "this is the rule of thumb √eps; here |f| and |f''| are known": lambda run: np.sqrt(run.eps),
            "this is the error at the bottom; the question was for the h": (
                lambda run: np.sqrt(2 * run.eps * run.size * run.bend)
            ),
        },
    ),
    "slope": (
        lambda run: run.side.imag / 0.1,
        {
            "the imaginary part is h f', still to be divided by h": lambda run: run.side.imag,
            "this subtracts f again, in the real part, where f' is not": lambda run: (run.side.real - run.size) / 0.1,
            "the size of the whole number mixes f with f'": lambda run: abs(run.side) / 0.1,
            "the sign is wrong: Im f(x + ih) is + h f'": lambda run: -run.side.imag / 0.1,
        },
    ),
}


def verify(lesson, run):
    """Compare the prose with the lesson's variables."""
    check_elsewhere(lesson)
    z, p, place, dz, loss = run.z, run.p, run.place, run.dz, run.loss
    f64, f32 = np.float64, np.float32
    one_sided, two_sided, complex_step = run.one_sided, run.two_sided, run.complex_step
    lesson.example("output.L", loss(z))
    lesson.example("output.dz", run.true)
    lesson.example("output.p", np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True))

    u = np.zeros(z.shape)
    u[place] = 1
    here, above, below, side = (loss(z + h * u) for h in (0.0, 0.1, -0.1, 0.1j))
    lesson.quote(
        "«o» has the logit 5.559, but the wrong letter «p» has 4.705, and «o» gets only 70 %",
        *z[1, 3:5],
        100 * p[place],
    )
    lesson.quote("and one says −0.0605, the other −0.1211", dz[place], run.second[place])
    lesson.quote("L(z_o) = 0.110752", here)
    lesson.quote("(0.104907 − 0.110752) / 0.1 = −0.0585", above, here, 0.1, one_sided(loss, z, 0.1, u))
    lesson.quote("(0.104907 − 0.117019) / 0.2 = −0.0606", above, below, 0.2, two_sided(loss, z, 0.1, u))
    lesson.quote("−(1 − p_o)/5 = −0.0605", 1, 5, -(1 - p[place]) / 5)
    second_derivative = p[place] * (1 - p[place]) / 5
    third_derivative = second_derivative * (1 - 2 * p[place])
    lesson.quote("p_o (1 − p_o)/5 = 0.0422", 1, 5, second_derivative)
    lesson.quote("0.05 · 0.0422 = 0.0021, as we saw", 0.05, second_derivative, one_sided(loss, z, 0.1, u) - dz[place])
    eps, eps32 = float(np.finfo(f64).eps), float(np.finfo(f32).eps)
    lesson.quote("2.2e-16 in float64 and 1.2e-7 in float32", eps, 64, eps32, 32)
    lesson.quote("are both about √eps = 1.5e-8, and half of the digits", eps**0.5)
    lesson.quote("at h = ∛eps = 6.1e-6 its error is about ∛eps² = 3.7e-11", eps ** (1 / 3), eps ** (2 / 3))
    lesson.quote("and h = 0.1 the left side is 0.110541 − 0.006051i", 0.1, side.real, -side.imag)
    lesson.quote("Here this is −0.006051/0.1 = −0.0605", side.imag, 0.1, side.imag / 0.1)
    lesson.quote("the fifth row costs −ln 0.01 = 4.6 and each of the others 0.1", 0.01, -np.log(0.01), -np.log(0.9))
    lesson.quote("The mean, 0.72, looks fine", (4 * 0.9 + 0.01) / 5)

    curves = run.curves
    best = {(judge, dtype): curve.min() for (judge, dtype), curve in curves.items()}
    lesson.quote(
        "the one-sided difference is right to 8 digits, the two-sided one to 11, and the complex step to all 16",
        *(-np.log10(best[judge, f64]) for judge in run.JUDGES),
        within=0.1,
    )
    lesson.check("one-sided, best error in float64", best[one_sided, f64], 5e-8)
    lesson.check("two-sided, best error in float64", best[two_sided, f64], 5e-11)
    lesson.check("complex step, worst error for h below 1e-8", curves[complex_step, f64][33:].max(), 3e-15)
    at_1e_15 = {judge: curves[judge, f64][60] for judge in (one_sided, two_sided)}
    lesson.quote("At h = 1e-15 both differences are wrong in their first digit", 1e-15)
    # by 20 % or 75 %: how the logits are rounded depends on the processor's matrix product
    lesson.check("h = 1e-15: both differences are useless", min(at_1e_15.values()), at_least=0.05)
    lesson.check("h = 1e-15: but not without any relation", max(at_1e_15.values()), 1.0)
    lesson.check("float32: the best difference has five digits", best[two_sided, f32], 1e-4)
    lesson.check("float32: and not six", best[two_sided, f32], at_least=3e-6)
    lesson.quote("Twelve digits agree: −1.969017336827", run.judged)
    lesson.check("42 entries are wrong", np.count_nonzero(np.concatenate(run.wrong) != run.g), at_least=42)
    lesson.quote("42 of the 826 entries are wrong, and the backward pass gives −1.698", 42, run.g.size, run.mistaken)
    lesson.quote("the gradients of all 826 parameters of the model", run.g.size)

    a = run.example["decoder.ffn.a"][1, 0]
    lesson.quote("in row p→o is a = −0.052, where the slope is 0", a, 0)
    lesson.quote(
        "ends at 0.048, beyond the corner, and finds the slope 0.048/0.2 = 0.24", a + 0.1, a + 0.1, 0.2, (a + 0.1) / 0.2
    )
    million = run.million
    lesson.quote("It falls from 11 digits to 6", 11, -np.log10(million[two_sided]), within=0.1)
    lesson.check("complex step with 1,000,000 added", million[complex_step], 3e-15)
    lesson.check("two-sided with 1,000,000 added, best error", million[two_sided], at_least=1e-7)

    h = np.cbrt(3 * eps * here / (2 * abs(third_derivative)))
    derived = 0.75 * eps * here / h / abs(dz[place])
    lesson.quote("(1 − 2 p_o)/5 = −0.0167", 1, 2, 5, third_derivative)
    lesson.quote("This gives h = 1.3e-5 and an error of 2.3e-11 relative to dz_o", h, derived)
    lesson.check("two-sided: at most twice the derived error", best[two_sided, f64] / derived, 2.0)
    lesson.check("two-sided: at least half of it", best[two_sided, f64] / derived, at_least=0.5)
    slopes, TABLE = run.slopes, run.TABLE
    off = [abs(slopes[name] - TABLE[name][1]) for name in TABLE]
    lesson.check("the first four of the table mislead the complex step", min(off[:4]), at_least=0.9)
    lesson.check("the last three do not", max(off[4:]), 1e-15)
    lesson.quote("h = eps^(1/5) = 7e-4, and the error is eps^(4/5) = 3e-13", 1, 5, eps**0.2, 4, 5, eps**0.8)
    lesson.check("exercise 1: best error of the four-point difference", run.best_of_four, 1e-12)
    lesson.claim(
        "the smaller the step h, the better the numerical derivative",
        "wrong",
        f"two-sided in float64 it is best near h = {run.STEPS[curves[two_sided, f64].argmin()]:.0e} (error "
        f"{best[two_sided, f64]:.0e}), at h = 1e-15 the error is {at_1e_15[two_sided]:.0%}; the sentence holds for the "
        "complex step only",
        said="calculus courses, and first attempts at a gradient check",
    )
    lesson.claim(
        "to check a gradient in float32, a tolerance of 1e-6 will do",
        "wrong",
        f"the best two-sided difference in float32 is itself wrong by {best[two_sided, f32]:.0e}",
        said="gradient checks in forum posts and repositories",
    )


def check_elsewhere(lesson):
    """The question that asks for the lesson's idea on something else."""
    amount = 1.0
    for _ in range(30):
        amount = amount * (1 + 0.03 + 1e-30j)
    lesson.quote("That gives 70.70, and so", amount.imag / 1e-30)
    lesson.check("the account, against the formula", abs(amount.imag / 1e-30 / (30 * 1.03**29) - 1), 1e-14)
