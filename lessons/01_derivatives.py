# %% [markdown]
# # Lesson 01: How do I know that a derivative is right?
#
# * Question: how far can a number found by trying be trusted, as a witness against a formula found by thinking?
# * You derive: the best step of a one-sided and a two-sided difference; the complex step; the test for whole arrays
# * Reading: 20 min, going deeper 0 min
# * Run: 3 s (fast: 3 s)
# * Needs: none
# * Difficulty: 2 of 5
# * Paper: none; this is the ground that the other lessons stand on

# %%
from lab import BLUE, GREEN, GREY, ORANGE, PINK, SKY, begin, error, plt

import numpy as np

from minitransformer import gradcheck as library

lesson = begin("01_derivatives")

# %% [markdown]
# From the next lesson on you derive gradients by hand, some of them long. Each can be wrong in a way that shows
# nowhere: the code runs, the loss falls, the model is only a little worse than it should be. So before the first
# derivation we build the judge. It takes a function's forward, tries it at points nearby, and says what the derivative
# is. It must be so good that a disagreement is always *your* mistake, never the judge's.
#
# ## Predict
#
# The plainest judge is the difference quotient (f(x + h) − f(x)) / h with a small h. Write down:
# 1. In float64 there are about 16 digits. How many digits of f'(x) can you get at best, with the best h?
# 2. Which h is that? Is 1e-15 better than 1e-8?
# 3. Someone adds 1,000,000 to f. The derivative stays what it was. What happens to your digits?
#
# (1 and 2 are answered under "The picture", 3 under "The surprise".)

# %% [markdown]
# ## Small numbers
#
# f(x) = x³ at x = 2. We know f'(x) = 3x² = 12. Take the large step h = 0.1, so that you can do it by hand.
#
#     one-sided     (2.1³ − 2³) / 0.1       = (9.261 − 8) / 0.1     = 12.61      off by 0.61
#     two-sided     (2.1³ − 1.9³) / 0.2     = (9.261 − 6.859) / 0.2 = 12.01      off by 0.01
#
# Now a step that leaves the real line: x + ih, with i² = −1. Multiply out, as for any sum of two terms:
#
#     (2 + 0.1i)³ = 2³ + 3·2²·(0.1i) + 3·2·(0.1i)² + (0.1i)³
#                 = 8  + 1.2i        − 0.06        − 0.001i     = 7.94 + 1.199i
#
# The imaginary part, divided by h, is 11.99: as near as the two-sided difference, from one evaluation. Look at what
# was *not* done: nothing was subtracted from anything of its own size. That will be the point of this lesson.

# %%
x, h = 2.0, 0.1
one, two = ((x + h) ** 3 - x**3) / h, ((x + h) ** 3 - (x - h) ** 3) / (2 * h)
z = (x + 1j * h) ** 3
print(f"one-sided {one:.2f}   two-sided {two:.2f}   complex step {z.imag / h:.2f}   exact {3 * x**2:.2f}")
lesson.quote("= 12.61      off by 0.61", one, one - 12)
lesson.quote("= 12.01      off by 0.01", two, two - 12)
lesson.quote("= 7.94 + 1.199i", z.real, z.imag)
lesson.quote("divided by h, is 11.99", z.imag / h)

# %% [markdown]
# ## The derivation
#
# ### Part 1: what is left out (truncation)
#
# Taylor's series of a smooth f around x, with all derivatives taken at x:
#
#     f(x + h) = f + h f' + (h²/2) f'' + (h³/6) f''' + ...
#     f(x − h) = f − h f' + (h²/2) f'' − (h³/6) f''' + ...
#
# Solve the first line for f': subtract f, divide by h. Then subtract the second line from the first and divide by 2h:
# the even terms are the same in both and go.
#
#     one-sided    (f(x + h) − f(x)) / h         = f' + (h/2) f''   + ...       error of order h
#     two-sided    (f(x + h) − f(x − h)) / 2h    = f' + (h²/6) f''' + ...       error of order h²
#
# For x³ at 2: f'' = 12 and f''' = 6, so the errors begin with 0.05·12 = 0.6 and (0.01/6)·6 = 0.01, as above.
# So far: the smaller h, the better.

# %% [markdown]
# ### Part 2: what is rounded off
#
# A computer keeps f only to about eps·|f|, where eps is the distance from 1 to the next number: 2.2e-16 in float64,
# 1.2e-7 in float32. Each value is wrong by up to about half of that, a difference of two by up to about eps·|f|, and
# then we divide by a small number. (x + h is rounded, too; that adds an error of the same kind.)
#
#     one-sided    E(h) ≈ (h/2)|f''|   + eps |f| / h
#     two-sided    E(h) ≈ (h²/6)|f'''| + eps |f| / 2h
#
# Truncation falls as h shrinks, rounding grows: over h, on logarithmic axes, the error is a V. Its bottom is where
# dE/dh = 0:
#
#     one-sided    |f''|/2 − eps|f|/h² = 0         h* = √(2 eps |f|/|f''|)          E* = 2 eps |f| / h*
#     two-sided    h|f'''|/3 − eps|f|/2h² = 0      h* = ∛(3 eps |f|/(2|f'''|))      E* = (3/4) eps |f| / h*
#
# (E*: one-sided, both terms are equal at the bottom. Two-sided, h*³ |f'''|/3 = eps|f|/2 says that truncation is half
# of rounding.) If f and its derivatives are of order one, only eps matters:
#
#     one-sided    h* ~ √eps, E* ~ √eps:                      1.5e-8 in float64,    3.5e-4 in float32
#     two-sided    h* ~ ∛eps = 6.1e-6, E* ~ eps^(2/3):        3.7e-11 in float64,   2.4e-5 in float32
#
# One-sided differences keep half of the digits, two-sided ones two thirds. No choice of h brings back the rest.

# %%
eps, eps32 = np.finfo(np.float64).eps, float(np.finfo(np.float32).eps)
lesson.quote("2.2e-16 in float64, 1.2e-7 in float32", eps, 64, eps32, 32)
lesson.quote("1.5e-8 in float64, 3.5e-4 in float32", eps**0.5, 64, eps32**0.5, 32)
lesson.quote("h* ~ ∛eps = 6.1e-6", eps ** (1 / 3))
lesson.quote("3.7e-11 in float64, 2.4e-5 in float32", eps ** (2 / 3), 64, eps32 ** (2 / 3), 32)

# %% [markdown]
# ### Part 3: the complex step
#
# The loss came from subtracting two nearly equal numbers. Put ih in the place of h, with i² = −1, i³ = −i:
#
#     f(x + ih) = f + ih f' − (h²/2) f'' − i(h³/6) f''' + ...
#
# f, f', f'', ... are real. So the imaginary part holds the odd terms only:
#
#     Im f(x + ih) / h = f' − (h²/6) f''' + ...
#
# The truncation is as small as that of the two-sided difference, but nothing was subtracted: f itself sits in the real
# part, and h f' in the imaginary part, a float of its own with an exponent of its own. So h may be as small as we like.
# At h = 1e-30 the truncation is of order 1e-60, which is 0 beside 1e-16. One call, no choice of h, full precision.
#
# Why does the arithmetic itself not spoil it? Watch one product, (a + ib)(c + id) with b and d of order h:
#
#     real part          ac − bd        bd is of order 1e-60: gone, and rightly so
#     imaginary part     ad + bc        b is h a', d is h c':  h (a c' + a' c)
#
# That is the product rule. Every complex operation carries out the rule of differentiation that belongs to it.
#
# The condition: f must be analytic, that is, it must have such a series in complex x. Sums, products, divisions, exp,
# log, sqrt, sin, tanh all do. What does not: |x| as complex numbers have it (√(re² + im²): the result is real, and the
# derivative is lost), the conjugate (it turns the sign of the imaginary part), and what is built on them.

# %% [markdown]
# ## From scratch
#
# Three judges of a scalar f at an array x, entry by entry, and a fourth that we derive under "All entries at once".
# Later lessons write `complex_step` out again, in the same few lines.


# %%
def one_sided(f, x, h):
    """(f(x + h) - f(x)) / h for each entry of x."""
    grad = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        grad[i] = (f(x + step) - f(x)) / h
    return grad


def two_sided(f, x, h):
    """(f(x + h) - f(x - h)) / 2h for each entry of x."""
    grad = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        grad[i] = (f(x + step) - f(x - step)) / (2 * h)
    return grad


def complex_step(f, x):
    """The gradient of the scalar f at the array x, exact to rounding; f must take complex numbers."""
    grad = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        grad[i] = f(z).imag / 1e-30
    return grad


def directional(f, x, v):
    """Sum over all entries of gradient times v, from one call of f."""
    return f(x + 1e-30j * v).imag / 1e-30


# %% [markdown]
# ### Whole arrays
#
# A layer turns an array x into an array y, and its backward turns dy into dx. (`dy` is short for ∂L/∂y, `dx` for ∂L/∂x,
# with L the loss.) Which scalar shall the judge differentiate? Draw a random array dy of y's shape, once, and take
#
#     L(x) = Σᵢ dyᵢ yᵢ(x)            i runs over all entries of y
#
# Then ∂L/∂yᵢ = dyᵢ, so dy is indeed the gradient that arrives from above, and by the chain rule
#
#     dxⱼ = ∂L/∂xⱼ = Σᵢ dyᵢ ∂yᵢ/∂xⱼ.
#
# This is just what backward(dy) has to return. dy must be random. With dy = 1 everywhere, L is the plain sum of y, and
# some layers have outputs whose sum is always the same: then L is constant, the judge says 0, and any backward that
# returns 0 passes.
#
# Example: subtract the mean, yᵢ = xᵢ − m with m = (1/n) Σⱼ xⱼ, for n entries. Its Jacobian is ∂yᵢ/∂xⱼ = 1[i = j] − 1/n
# (1[i = j] is 1 if i = j, and else 0; under a sum over i it picks the term i = j), so
#
#     dxⱼ = Σᵢ dyᵢ (1[i = j] − 1/n) = dyⱼ − (1/n) Σᵢ dyᵢ.
#
# The sum of y is 0, always. With dy = 1 the right dx is 1 − 1 = 0, and twice that is 0 as well.


# %%
def centre(x):
    return x - x.sum() / x.size


def centre_backward(dy):
    return dy - dy.sum() / dy.size


def doubled_backward(dy):  # a wrong one
    return 2 * centre_backward(dy)


rng = np.random.default_rng(0)
x, dy, ones = rng.standard_normal(7), rng.standard_normal(7), np.ones(7)
judged = complex_step(lambda x: (dy * centre(x)).sum(), x)
judged_blind = complex_step(lambda x: (ones * centre(x)).sum(), x)
print("dx by backward ", centre_backward(dy).round(4))
print("dx by the judge", judged.round(4))

# %% [markdown]
# ### All entries at once
#
# With n entries, complex_step calls f n times. One call is enough for a verdict on all of them. Move x along a random
# direction v and differentiate in h; by the chain rule
#
#     d/dh L(x + hv) = Σⱼ (∂L/∂xⱼ) vⱼ = Σⱼ dxⱼ vⱼ.
#
# If dx is wrong by e (an array), the two sides differ by Σⱼ eⱼ vⱼ, which for a random v is 0 with probability 0. So one
# forward pass tests every gradient of a model of any size. What it does not tell is *where* the mistake is.
#
# ### How to compare two numbers
#
# Two common measures, for your value a and the judge's b:
#
#     |a − b| / max|b|         relative to the largest entry of the true array (used in these lessons)
#     |a − b| / (|a| + |b|)    entry by entry; never more than 1
#
# The second has a telling habit. If you are off by a constant factor, a = k b with k > 0, then
#
#     |kb − b| / (|kb| + |b|) = |k − 1| / (k + 1):        k = 2 gives 1/3,  k = 1/2 gives 1/3,  k = 3 gives 1/2
#
# whatever b is. With k = −1 it is 2/2 = 1, and so it is if a = 0. So 0.3333 in every entry means: a factor 2 is missing
# or is too many. A number that is the same everywhere is a mistake in a constant. If it varies, a term is wrong.


# %%
def relative_difference(a, b):
    return np.abs(a - b) / (np.abs(a) + np.abs(b))


print("a factor 2 too many:", relative_difference(doubled_backward(dy), judged).round(4))
print("a wrong sign:       ", relative_difference(-centre_backward(dy), judged).round(4))
print("1/n forgotten:      ", relative_difference(dy - dy.sum(), judged).round(4))

# %% [markdown]
# ## Checked
#
# First the judges themselves, on a function whose derivative is known: f(x) = eˣ sin x, f'(x) = eˣ (sin x + cos x).
# Then the judgements: a right backward passes, a wrong one is caught, and dy = 1 is blind to it.


# %%
def f(x):
    return np.exp(x) * np.sin(x)


def df(x):
    return np.exp(x) * (np.sin(x) + np.cos(x))


x6 = rng.uniform(0.5, 1.5, (2, 3))


def total(x):
    return f(x).sum()


v = rng.standard_normal(x6.shape)
lesson.check("one-sided, h = 1e-8", error(one_sided(total, x6, 1e-8), df(x6)), 2e-7)
lesson.check("two-sided, h = 6e-6", error(two_sided(total, x6, 6e-6), df(x6)), 2e-9)
lesson.check("complex step", error(complex_step(total, x6), df(x6)), 2e-15)
lesson.check("complex step = the library's", error(complex_step(total, x6), library.complex_step(total, x6)), 1e-15)
lesson.check("directional = sum of gradient times v", error(directional(total, x6, v), (df(x6) * v).sum()), 1e-13)
by_library = library.complex_step_directional(total, x6, v)
lesson.check("directional = the library's", error(directional(total, x6, v), by_library), 1e-15)
lesson.check("backward of centre", error(centre_backward(dy), judged), 1e-14)
lesson.check("a doubled backward is caught: error", error(doubled_backward(dy), judged), at_least=0.9)
thirds = relative_difference(doubled_backward(dy), judged)
lesson.check("a doubled backward: relative difference is 1/3 in each entry", error(thirds, np.full(7, 1 / 3)), 1e-13)
lesson.check("with dy = 1 the judge sees nothing", np.abs(judged_blind).max(), 1e-15)
lesson.check("with dy = 1 the doubled one passes", np.abs(doubled_backward(ones) - judged_blind).max(), 1e-15)
report = library.check_gradients(
    lambda x: (centre(x), None), lambda dy, _: centre_backward(dy), {"x": x}, name="centre"
)
lesson.check("centre in the library's own gradient check", report.worst.error, 1e-14)

# %% [markdown]
# Now what breaks the complex step. Each function below is harmless on real numbers; the derivative at x = −0.7 by the
# complex step is right for the last three only. The remedies: write x·x in place of |x|² or x·conj(x); ask `.real`
# where you compare; transpose with `.T`, never with `.conj().T` (which is what the sign ' means in MATLAB); never store
# into a real array, which drops the imaginary part.
#
# A comparison looks at a complex number, and NumPy orders complex numbers by their real parts first. As the imaginary
# part is 1e-30, max(0, x) goes the same way as for real x. Only where the real parts are equal, at the kink x = 0
# itself, does the imaginary part decide. ReLU's kink is a story of its own, in lesson 02.

# %%
table = {  # name: (function, its true derivative at x)
    "np.abs(x)": (np.abs, -1.0),
    "(x * np.conj(x)).sum()": (lambda x: (x * np.conj(x)).sum(), -1.4),
    "np.conj(x)": (np.conj, 1.0),
    "np.linalg.norm(x)": (np.linalg.norm, -1.0),
    "np.sqrt(x * x)": (lambda x: np.sqrt(x * x), -1.0),
    "np.maximum(x, 0)": (lambda x: np.maximum(x, 0), 0.0),
    "np.where(x.real < 0, -x, x)": (lambda x: np.where(x.real < 0, -x, x), -1.0),
}
point = np.array([-0.7 + 1e-30j])
steps = {name: float(np.sum(g(point)).imag / 1e-30) for name, (g, _) in table.items()}
for name, (_, true) in table.items():
    verdict = "" if abs(steps[name] - true) < 1e-12 else "   WRONG"
    print(f"  {name:<28} complex step {steps[name]:5.2f}   true {true:5.2f}{verdict}")
wrong = [name for name, (_, true) in table.items() if abs(steps[name] - true) > 1e-12]
lesson.check("functions in the table that mislead the complex step", len(wrong), at_least=4)
lesson.check("and the last three are right", max(abs(steps[name] - table[name][1]) for name in [*table][4:]), 1e-15)

# %% [markdown]
# ## The picture
#
# The worst relative error over 200 points x between 0.5 and 1.5, for each method and each h.

# %%
points = rng.uniform(0.5, 1.5, 200)


def worst(kind, h, dtype, constant=0.0):
    """The worst relative error over the points of f + constant's derivative, all computed in dtype."""
    x, h, c = points.astype(dtype), dtype(h), dtype(constant)
    if kind == "one-sided":
        d = ((f(x + h) + c) - (f(x) + c)) / h
    elif kind == "two-sided":
        d = ((f(x + h) + c) - (f(x - h) + c)) / (2 * h)
    else:
        d = (f(x + h * np.complex64(1j)) + c).imag / h
    exact = df(x.astype(np.float64))
    return np.abs(d / exact - 1).max()


hs = 10.0 ** -np.arange(0, 20.1, 0.25)
lines = [("one-sided", np.float32), ("two-sided", np.float32), ("one-sided", np.float64), ("two-sided", np.float64)]
lines += [("complex step", np.float32), ("complex step", np.float64)]
errors = {line: np.array([worst(line[0], h, line[1]) for h in hs]) for line in lines}
best = {line: (hs[np.argmin(e)], e.min()) for line, e in errors.items()}
for (kind, dtype), (h, e) in best.items():
    print(f"  {kind:<13} {dtype.__name__}   best error {e:.1e} at h = {h:.1e}")

# %%
figure, axis = plt.subplots(figsize=(6.8, 4.2))
for line, color in zip(lines, (SKY, PINK, BLUE, ORANGE, GREY, GREEN), strict=True):
    style = "--" if line[1] is np.float32 else "-"
    axis.loglog(hs, errors[line], style, color=color, linewidth=1.4, label=f"{line[0]}, {line[1].__name__}")
for line, power, share in zip(lines[:4], (1 / 2, 1 / 3) * 2, (1 / 2, 2 / 3) * 2, strict=True):
    e = np.finfo(line[1]).eps
    axis.plot(float(e) ** power, float(e) ** share, "k*", markersize=9, label="derived best step" if e < 1e-9 else None)
handles, labels = axis.get_legend_handles_labels()
unique = dict(zip(labels, handles, strict=True))
axis.legend(unique.values(), unique.keys(), fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
axis.invert_xaxis()
axis.set(xlabel="step h (smaller to the right)", ylabel="worst relative error of 200 derivatives", ylim=(1e-17, 30))
axis.set_title("Differences lose a third or a half of the digits; the complex step loses none")
lesson.save(figure)

# %% [markdown]
# You should see four V's, with a slope of 1 or 2 on the left where truncation rules and a ragged slope of −1 on the
# right where rounding rules. The stars are the bottoms that we derived from eps alone, √eps and so on, without factors.
# On the far right the error of the differences is 1, that is 100 %: x + h rounds to x, and the quotient is 0. The
# complex step falls with h² as the two-sided difference does, reaches rounding and stays there, however small h is.
# If the dashed lines lie on the solid ones, then something has turned float32 into float64 on the way. If the complex
# step has a right arm, too, then the imaginary part was lost or mixed with the real part inside f.
#
# So the answers to the first two guesses: with the best h a one-sided difference is right to about 2e-8, a two-sided
# one to about 2e-11, the complex step to about 2e-16. At h = 1e-15 the one-sided difference is off by more than 10 %.
# And in float32 the best two-sided difference is good to about 2e-5, no better: which is why gradients are checked in
# float64. (Complex numbers of two float32 would do as well: 1e-7, all the digits that float32 has.)

# %%
f64, f32 = np.float64, np.float32
lesson.quote("a one-sided difference is right to about 2e-8", best["one-sided", f64][1], within=0.5)
lesson.quote("one to about 2e-11", best["two-sided", f64][1], within=0.5)
lesson.quote("the complex step to about 2e-16", best["complex step", f64][1], within=2.0)  # rounding
off = worst("one-sided", 1e-15, f64)
lesson.quote("At h = 1e-15 the one-sided difference is off by more than 10 %", 1e-15, min(10, 100 * off))
lesson.quote("two-sided difference is good to about 2e-5", best["two-sided", f32][1], within=0.5)
lesson.quote("would do as well: 1e-7", best["complex step", f32][1], within=0.5)
flat = max(worst("complex step", h, f64) for h in 10.0 ** -np.arange(8, 301, 4.0))
lesson.check("complex step, worst error for any h from 1e-8 to 1e-300", flat, 2e-15)

# %% [markdown]
# ## The surprise
#
# Add 1,000,000 to f. Nobody's derivative changes. But rounding acts on eps·|f|, and |f| has grown; the derivation says
# that the best error grows as |f|^(1/2) for the one-sided and as |f|^(2/3) for the two-sided difference. Measured: the
# best one-sided error goes from 2e-8 to 1e-5, the best two-sided one from 2e-11 to 7e-8. About three digits gone, by
# adding a constant. The complex step does not notice: the constant goes to the real part, the derivative is in the
# imaginary part. It still has its 2e-16.
#
# This is not a trick with numbers. A loss is a sum over thousands of tokens, and the one entry of the one matrix whose
# gradient you check moves a millionth of it. For differences, all the rest of the loss is such a constant.
# That is why gradient checks of whole networks by differences come with tolerances like 1e-4, and why a wrong term
# that happens to be small goes through.

# %%
million = {kind: min(worst(kind, h, f64, 1e6) for h in hs) for kind in ("one-sided", "two-sided", "complex step")}
print("with 1,000,000 added:", {kind: f"{e:.1e}" for kind, e in million.items()})
lesson.quote("from 2e-8 to 1e-5", best["one-sided", f64][1], million["one-sided"], within=0.5)
lesson.quote("from 2e-11 to 7e-8", best["two-sided", f64][1], million["two-sided"], within=0.5)
lesson.quote("It still has its 2e-16", million["complex step"], within=2.0)  # rounding
lesson.check("complex step with 1,000,000 added", million["complex step"], 2e-15)
lesson.claim(
    "the smaller the step h, the better the numerical derivative",
    "wrong",
    "two-sided in float64 it is best near h = {:.0e} (error {:.0e}), at h = 1e-15 the error is {:.0%}; only for the "
    "complex step it is right".format(*best["two-sided", f64], worst("two-sided", 1e-15, f64)),
)
lesson.claim(
    "to check a gradient in float32, a tolerance of 1e-6 will do",
    "wrong",
    f"the best two-sided difference in float32 is itself wrong by {best['two-sided', f32][1]:.0e}",
)

# %% [markdown]
# ## Exercise
#
# 1. *Four points* (20 minutes, pencil, then keyboard). Show with Taylor's series that
#    `(−f(x + 2h) + 8 f(x + h) − 8 f(x − h) + f(x − 2h)) / 12h` is f' up to an error of order h⁴. Which power of eps
#    are its best h and its best error? You pass if you find an error below 3e-12 near h = eps^(1/5) = 7e-4.
# 2. *Your own layer* (15 minutes). Write a file my.py with a class MyLayer that subtracts the mean over the last axis
#    (derive `minitransformer.core.Layer`; forward(x) returns y and a cache, backward(dy, cache) returns dx), and run
#    `minitransformer gradcheck my.py:MyLayer`. Then put a factor 2 into its backward, and read what it says.
#
# Checked exercises on this lesson: `minitransformer start 01`.


# %%
def four_point_error(h):
    d = (-f(points + 2 * h) + 8 * f(points + h) - 8 * f(points - h) + f(points - 2 * h)) / (12 * h)
    return np.abs(d / df(points) - 1).max()


lesson.quote("near h = eps^(1/5) = 7e-4", 1, 5, eps**0.2)
lesson.check("exercise 1: best error of the four-point difference", min(map(four_point_error, hs)), 3e-12)

# %% [markdown]
# ## Questions
#
# 1. Why has a two-sided difference an error of order h² and not h?
# 2. You find a relative difference |a − b|/(|a| + |b|) of 0.5 in every entry. What are the candidates?
# 3. Why may h be 1e-30 in the complex step, although 1 + 1e-30 is 1 in float64?
# 4. Your directional check passes for one random v. Can a gradient entry still be wrong?
# 5. A function has `if x > 0:` inside. Is the complex step still allowed?
#
# ## In the wild
#
# * CS231n's notes recommend two-sided differences with h = 1e-5 in float64, which the picture confirms, and the
#   relative error |a − b|/max(|a|, |b|). Under that measure a factor 2 is 0.5, not 0.333.
# * PyTorch's `torch.autograd.gradcheck` takes two-sided differences with eps = 1e-6, atol = 1e-5 and rtol = 1e-3, and
#   asks for float64 inputs. A gradient that is wrong by less than a tenth of a per cent passes there.
# * JAX derives by itself, but `jax.test_util.check_grads` still compares with differences: nobody should be his own
#   witness.
# * The complex step is from Lyness and Moler (1967), in the form used here from Squire and Trapp (1998).
# * Automatic differentiation in forward mode carries the pair (value, derivative) through the same rules. Numbers with
#   ε² = 0 in place of i² = −1 are called dual numbers; with h = 1e-30, i behaves like ε to all 16 digits.

# %%
lesson.quote("a factor 2 is 0.5, not 0.333", 2, abs(2 - 1) / max(2, 1), abs(2 - 1) / (2 + 1))
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. f(x + h) and f(x − h) have the same even terms, so they go in the difference; the first term left behind h f' is
#    h³ f'''/6 in each, and dividing by h leaves h².
# 2. |k − 1|/(k + 1) = 1/2 gives k = 3 or k = 1/3: a factor 3. If the axis that you average over has 3 entries, look
#    there first.
# 3. It is never added to 1. The 1 sits in the real part and the 1e-30 in the imaginary part, each a float of its own
#    whose relative precision is 1e-16.
# 4. In exact arithmetic with probability 0: the errors would have to be orthogonal to a random v. In practice the error
#    may be too small to see beside the sum of all the right ones. Take three directions, or go entry by entry.
# 5. Yes, if the comparison looks at the real part and x is not exactly at the border. Each branch is analytic, and a
#    step of 1e-30 in the imaginary direction never changes the branch.
