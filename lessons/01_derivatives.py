# %% [markdown]
# # Lesson 01: How do I know that a derivative is right?
#
# [![The loss and its gradient](../plots/01_derivatives_map.png)](../plots/00_reverse_whole.png)
#
# **How can you trust a gradient that you have derived by hand?**
#
# 11 min, with a pencil 35, going deeper 7 · runs in 6 s (fast: 6 s) · needs none · difficulty 2 of 5 · paper: none;
# this lesson makes the tool that all others use
#
# ## A mistake that makes no noise
#
# From the next lesson on you derive every gradient by hand, and you will make mistakes. A wrong gradient is silent: the
# code runs, the loss falls, and the model stays a little worse than it could be.
#
# Let's catch one in the act. Our model from lesson 00 reads "stop" and writes "pots" and eos, the end. Each of these T
# = 5 tokens is a row, named by what it reads and what it must write: bos→p, p→o, and so on, where bos is the beginning.
# In row p→o the right letter «o» has the logit 5.559, but the wrong letter «p» has 4.705, and «o» gets only 70 %. How
# much would it help to raise z_o, the logit of «o»? We need ∂L/∂z_o, which these lessons call dz_o: a `d` before a name
# means the gradient of the loss with respect to it.
#
# Two colleagues have derived dz_o, and one says −0.0605, the other −0.1211. The signs agree, so with either number
# gradient descent raises z_o, and the loss falls. Who is right?

# %% Imports
from support.graph import Graph
from support.lab import GREEN, GREY, ORANGE, ROWS, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show

import numpy as np

lesson = begin("01_derivatives")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (00) A model gives the right token 0.9 in four rows and 0.01 in the fifth. Why is the mean of the five a poor
#    judge?
# 2. (00) What does a fresh model do that makes its loss larger than that of a blind guess?
# 3. (00) A model is learning, and autograd's gradients are right to the last digit. What can still be wrong with it?
#
# (The answers are at the end.)

# %% [markdown]
# ## How many digits, how many passes?
#
# Each row gives a logit z to each of the V = 7 tokens. They become probabilities, positive with sum 1, and the loss L
# is the mean of −ln p over the five right tokens:
#
#     p_w = exp(z_w) / Σ_j exp(z_j)
#
# 1. You move z_o by h and see how much L changes. Of the 16 digits of a float64, how many of the derivative are right
#    with the best h: 4, 8 or 16? Is that h closer to 1e-8 or to 1e-15?
# 2. How many times must you compute L to test the gradients of all 826 parameters of the model?

# %%
guess_digits = ...  # right digits of the derivative, with the best h
z = example["output.z"]
T, V = z.shape
right, place = [VOCABULARY.index(token) for token in TARGET_OUT], (1, VOCABULARY.index("o"))  # z_o is z[place]


def loss(z):
    """Logits z (T, V) -> L, the mean of −ln p over the right tokens."""
    p = np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    return -np.log(p[np.arange(T), right]).mean()


show("logits z (T, V)", z, ROWS, VOCABULARY)
print(f"L = {loss(z):.6f}")

# %% [markdown]
# ## Just try it
#
# Move z_o by h = 0.1 and look:
#
#     L(z_o)        = 0.110752
#     L(z_o + 0.1)  = 0.104907       one-sided   (0.104907 − 0.110752) / 0.1 = −0.0585
#     L(z_o − 0.1)  = 0.117019       two-sided   (0.104907 − 0.117019) / 0.2 = −0.0606
#
# The first colleague seems to be right. For the derivation, follow the path from z_o to L, and multiply the derivatives
# of its steps, the last one first. (The derivative of p_o with respect to z_o is p_o (1 − p_o), as lesson 03 shows.)
#
#     dz_o = 1 · 1/5 · (−1/p_o) · p_o (1 − p_o) = −(1 − p_o)/5 = −0.0605
#
# [In the explorer: at which logit of «o» has dz_o shrunk to half?
# Guess first.](../minitransformer/explorer/page/index.html#embed=output.dz[1,3]&turn=output.z[1,3])
#
# ![The path from z_o to L, with its numbers](../plots/01_derivatives_graph.png)
#
# The formula gives −0.0605, trying −0.0585 and −0.0606, so this judge misses a small forgotten term. We want one so
# precise that any disagreement is *your* mistake. Should we make h smaller?
#
# ## What a step leaves out
#
# Let f be the loss as a function of the number x that we move, with all derivatives taken at x. Taylor's series is
#
#     f(x + h) = f + h f' + (h²/2) f'' + (h³/6) f''' + ...
#     f(x − h) = f − h f' + (h²/2) f'' − (h³/6) f''' + ...
#
# Solve the first line for f', or subtract the second from the first, which cancels the even terms:
#
#     one-sided    (f(x + h) − f(x)) / h        = f' + (h/2) f'' + ...       error of order h
#     two-sided    (f(x + h) − f(x − h)) / 2h   = f' + (h²/6) f''' + ...     error of order h²
#
# For z_o, f'' = p_o (1 − p_o)/5 = 0.0422, so with h = 0.1 the one-sided error is about 0.05 · 0.0422 = 0.0021, as we
# saw.

# %% [markdown]
# ## What a step rounds off
#
# The computer rounds f, with an error of about eps |f|, where eps is the gap between 1 and the next number that it can
# store, 2.2e-16 in float64 and 1.2e-7 in float32. When you subtract two numbers that agree in their first 8 digits,
# these good digits cancel and the rounding error stays. Dividing by a small h then makes it large:
#
#     one-sided    error(h) ≈ (h/2) |f''| + eps |f| / h
#
# As h shrinks, the first term falls and the second grows: on logarithmic axes, a V.
#
# **Your line.** Which h is at its bottom, if `size` is |f| and `bend` is |f''|?

# %%
p = example["output.p"]
eps, size, bend = np.finfo(np.float64).eps, loss(z), p[place] * (1 - p[place]) / 5
best_h = ...  # your line: from eps, size and bend
lesson.judge("best_h", best_h)

# %% [markdown]
# At the bottom the derivative with respect to h is 0:
#
#     |f''|/2 − eps |f| / h² = 0      and so      h = √(2 eps |f| / |f''|)
#
# If f and f'' aren't far from 1, the best h and the best error are both about √eps = 1.5e-8, and half of the digits
# are lost. The two-sided difference keeps two thirds: at h = ∛eps = 6.1e-6 its error is about ∛eps² = 3.7e-11.

# %% [markdown]
# ## A step to the side
#
# The digits are lost when we subtract f(x), so step in a direction that needs no subtraction: the imaginary one. With
# ih for h times the imaginary unit, so that (ih)² = −h², Taylor's series still holds:
#
#     f(x + ih) = f + ih f' − (h²/2) f'' − ih (h²/6) f''' + ...
#
# **Your line.** For z_o and h = 0.1 the left side is 0.110541 − 0.006051i. On the right, f and its derivatives are real
# numbers, so where is f'?

# %%
sideways = np.zeros_like(z)
sideways[place] = 0.1
side = loss(z + 1j * sideways)
slope = ...  # your line: f' up to an error of order h², from side alone
lesson.judge("slope", slope)

# %% [markdown]
# f is in the real part, and f' in the imaginary part:
#
#     Im f(x + ih) / h = f' − (h²/6) f''' + ...
#
# Here this is −0.006051/0.1 = −0.0605. Each part has its own 16 digits, so h may be as small as 1e-30. **Step to the
# side, into the imaginary direction, and nothing is subtracted, so no digit is lost.**
#
# > **1967.** Newton and Leibniz let h go to 0 on paper, which no computer can. James Lyness and Cleve Moler showed how
# > to differentiate numerically by means of complex numbers. The method became widely known in 1998, when William
# > Squire and George Trapp reduced it to the one line above, in a three-page note.


# %%
def one_sided(f, x, h, u):  # u is the direction of the step: 1 for the entry of x that moves, 0 for the others
    return (f(x + h * u) - f(x)) / h


def two_sided(f, x, h, u):
    return (f(x + h * u) - f(x - h * u)) / (2 * h)


def complex_step(f, x, h, u):
    return f(x + 1j * h * u).imag / h


def each_entry(judge, f, x, h):
    """Ask the judge for the derivative with respect to each entry of x."""
    found = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        u = np.zeros_like(x)
        u[index] = 1
        found[index] = judge(f, x, h, u)
    return found


# %% [markdown]
# ## Three judges, one picture
#
# Ask all three about the 35 logits, for h from 1 down to 1e-20, and take the error of the worst derivative, divided by
# the largest one.

# %%
dz = example["output.dz"]
STEPS = 10.0 ** -np.arange(0, 20.1, 0.25)
JUDGES = {one_sided: GREY, two_sided: ORANGE, complex_step: GREEN}


def errors(judge, dtype, constant=0.0):
    """The error of the judge for each step, computed in `dtype`; `constant` is added to the loss (0 for now)."""
    found = [each_entry(judge, lambda x: loss(x) + dtype(constant), z.astype(dtype), dtype(h)) for h in STEPS]
    return np.array([error(each, dz) for each in found])


curves = {(judge, dtype): errors(judge, dtype) for judge in JUDGES for dtype in (np.float64, np.float32)}
best_of_one_sided = -np.log10(curves[one_sided, np.float64].min())
lesson.compare("right digits of the one-sided difference at its best h", guess_digits, best_of_one_sided)

# %% [markdown]
# ![The error of three judges over the step](../plots/01_derivatives.png)
#
# Each panel has two V's, with a smooth left arm (Taylor) and a ragged right arm (rounding), until z + h is rounded to
# z. The complex step falls along the orange left arm, hiding it, and stays down. If yours stays at the top,
# something in f drops the imaginary part.
#
# At the best h, the one-sided difference is right to 8 digits, the two-sided one to 11, and the complex step to all 16.
# At h = 1e-15 both differences are wrong in their first digit (guess 1). In float32 even the best difference has only
# five digits, so test gradients in float64.
#
# ## The signature of a factor 2
#
# The colleagues hand in all of dz, 35 entries each. We compare them with the judge's, entry by entry, by
# |yours − true| / (|yours| + |true|). If yours = 2 true, then
#
#     |2 − 1| / (2 + 1) = 1/3
#
# for every entry. The first colleague agrees to the last digit, and the second has 0.3333 in all 35 entries, the
# signature of a factor of 2. The *same* number everywhere means a wrong constant; if the numbers vary, a term is wrong.

# %%
true = each_entry(complex_step, loss, z, 1e-30)
lesson.check("the first colleague, against the complex step", error(dz, true), 1e-14)
second = 2 * dz
signature = np.abs(second - true) / (np.abs(second) + np.abs(true))
show("the second colleague", signature, ROWS, VOCABULARY, digits=4)
lesson.check("the second colleague has 1/3 in each entry", error(signature, 1 / 3), 1e-9)

# %% [markdown]
# ## All gradients at once
#
# So far each entry costs one computation of the loss. Write all parameters of a model in one long vector θ, and draw a
# random direction u. The chain rule says that at h = 0
#
#     d/dh L(θ + h u) = Σ_j (∂L/∂θ_j) u_j
#
# The complex step finds the left side in one forward pass. It must equal Σ_j g_j u_j, where g is our own gradient, from
# the backward pass; if an entry of g is wrong, only an unlikely accident hides it. So one forward pass judges all
# gradients of the library's Transformer (guess 2).

# %%
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward

model, _, source, target_in, target_out = load_example()
parameters = model.parameters()
theta = np.concatenate([parameter.data.ravel() for parameter in parameters])


def loss_of_model(theta):
    """Write θ into the model and run it -> L."""
    taken = 0
    for parameter in parameters:
        size, shape = parameter.data.size, parameter.data.shape
        parameter.data = theta[taken : taken + size].reshape(shape)
        taken += size
    return cross_entropy(model(source, target_in), target_out)[0]


logits, cache = model.forward(source, target_in)
L, loss_cache = cross_entropy(logits, target_out)
model.backward(cross_entropy_backward(1.0, loss_cache), cache)  # 1.0 is dL/dL
g = np.concatenate([parameter.grad.ravel() for parameter in parameters])
u = np.random.default_rng(1).standard_normal(theta.size)
judged = complex_step(loss_of_model, theta, 1e-30, u)
print(f"one forward pass {judged:.12f}, the backward pass {g @ u:.12f}")
lesson.check(f"all {g.size} gradients agree along a random direction", error(g @ u, judged), 1e-12)

# %% [markdown]
# Twelve digits agree: −1.969017336827. Now leave out a constant factor in one layer, the 1/√D of lesson 06. Then 42 of
# the 826 entries are wrong, and the backward pass gives −1.698, so the mistake is caught.

# %%
wrong = []
for name, parameter in model.named_parameters():
    factor = np.sqrt(3) if ".cross_attention.sublayer.q." in name else 1.0
    wrong.append(factor * parameter.grad.ravel())
mistaken = np.concatenate(wrong) @ u
lesson.check("a forgotten factor is caught", error(mistaken, judged), at_least=0.1)

# %% [markdown]
# ## Add a million to the loss
#
# Add 1,000,000 to the loss. No derivative changes, but the rounding error eps |f| now contains a large |f|. How many of
# its 11 digits does the best two-sided difference keep?

# %%
guess_million = ...  # right digits of the two-sided difference, after adding a million
million = {judge: errors(judge, np.float64, 1e6).min() for judge in JUDGES}
lesson.compare("right digits with the million", guess_million, -np.log10(million[two_sided]))
for judge, best in million.items():
    print(f"{judge.__name__:12} best error {curves[judge, np.float64].min():.1e}, with the million {best:.1e}")

# %% [markdown]
# It falls from 11 digits to 6, while the complex step keeps all 16, because the million is in the real part and the
# derivative in the imaginary part. This isn't a trick: a single weight moves a tiny part of a real loss, and the rest
# acts like such a constant. A test with differences must then be tolerant, and small wrong terms slip through.
#
# **In papers:** two-sided differences are *central differences*, comparing a backward pass with them is *gradient
# checking*, and Σ_j g_j u_j is the *directional derivative* along u, or a *Jacobian-vector product* (JVP).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 02.
#
# ### The bottom of the other V
#
# The two-sided difference divides the same rounding error by 2h:
#
#     error(h) ≈ (h²/6) |f'''| + eps |f| / 2h
#     h |f'''|/3 − eps |f| / 2h² = 0      and so      h = ∛(3 eps |f| / 2|f'''|)
#
# At the bottom the first term is half of the second, and the error is (3/4) eps |f| / h. For z_o, f''' = p_o (1 − p_o)
# (1 − 2 p_o)/5 = −0.0167. This gives h = 1.3e-5 and an error of 2.3e-11 relative to dz_o. The best in the picture lies
# between half of that and twice that; exactly where depends on how your processor rounds.
#
# ### What complex numbers do with a product
#
# Let x' and y' be the derivatives of x and y. Multiply two numbers that carry their derivatives in the imaginary part:
#
#     (x + ih x')(y + ih y') = x y − h² x' y' + ih (x y' + x' y)
#
# The imaginary part is the product rule, and at h = 1e-30 the term with h² is far below the last digit. Division, exp
# and log work the same way: every complex operation carries out its own differentiation rule. Numbers that do exactly
# this, with (ih)² = 0, are called dual numbers, and automatic differentiation in forward mode computes with them.

# %% [markdown]
# ### Corners
#
# The Transformer contains ReLU, max(0, a), which has a corner at a = 0. One of its inputs in row p→o is a = −0.052,
# where the slope is 0. A two-sided difference with h = 0.1 ends at 0.048, beyond the corner, and finds the slope
# 0.048/0.2 = 0.24. In a large network some input is always that close to 0, but the complex step doesn't move along the
# real line, so it crosses no corner.
#
# ### What breaks the complex step
#
# f must be built from operations that have a Taylor series in complex numbers, and some don't have one. At x = −0.7 the
# complex step is right only for the last three of these.

# %%
TABLE = {  # name: (function, its true derivative at −0.7)
    "np.abs(x)": (np.abs, -1.0),
    "np.conj(x)": (np.conj, 1.0),
    "x * np.conj(x)": (lambda x: x * np.conj(x), -1.4),
    "np.linalg.norm(x)": (np.linalg.norm, -1.0),
    "np.sqrt(x * x)": (lambda x: np.sqrt(x * x), -1.0),
    "np.maximum(x, 0)": (lambda x: np.maximum(x, 0), 0.0),
    "np.where(x.real < 0, -x, x)": (lambda x: np.where(x.real < 0, -x, x), -1.0),
}
one = np.ones(1)
slopes = {name: float(np.sum(complex_step(f, -0.7 * one, 1e-30, one))) for name, (f, _) in TABLE.items()}
for name, (_, slope) in TABLE.items():
    print(f"  {name:<28} complex step {slopes[name]:5.2f}   true {slope:5.2f}")

# %% [markdown]
# So write x·x for the square, look at `.real` when you compare, transpose with `.T` and never with `.conj().T`, and
# never store into a real array, which drops the imaginary part. NumPy orders complex numbers by their real parts first,
# so max(0, x) goes the right way. Only exactly at the corner does the imaginary part decide.
#
# ### Why dy must be random
#
# A single layer has no loss, only an output y. Draw random numbers dy and take L = Σ_i dy_i y_i, so that ∂L/∂y_i =
# dy_i, as if it came from a real loss. This is how later lessons test each layer. Why not dy = 1? In some layers the
# sum of the output is always the same. Then L is constant, and the judge sees nothing. Subtract the mean, y_i = x_i −
# (1/N) Σ_j x_j for N numbers:
#
#     ∂y_i/∂x_j = 1[i = j] − 1/N      and so      dx_j = Σ_i dy_i ∂y_i/∂x_j = dy_j − (1/N) Σ_i dy_i
#
# The sum of y is always 0. With dy = 1 the right dx is 0, and so is twice that.


# %%
def centre_backward(dy):
    return dy - dy.mean()


rng = np.random.default_rng(0)
x, dy, ones = rng.standard_normal(7), rng.standard_normal(7), np.ones(7)
judged_dx = each_entry(complex_step, lambda x: (dy * (x - x.mean())).sum(), x, 1e-30)
blind_dx = each_entry(complex_step, lambda x: (ones * (x - x.mean())).sum(), x, 1e-30)
lesson.check("random dy: the right dx passes", error(centre_backward(dy), judged_dx), 1e-14)
lesson.check("random dy: the doubled one is caught", error(2 * centre_backward(dy), judged_dx), at_least=0.9)
lesson.check("dy = 1: the doubled one passes", np.abs(2 * centre_backward(ones) - blind_dx).max(), 1e-15)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, then keyboard, 20 minutes. Show with Taylor's series that this is f' up to an error of order h⁴. What are
#    its best h and best error in powers of eps?
#
#        (−f(x + 2h) + 8 f(x + h) − 8 f(x − h) + f(x − 2h)) / 12h
#
# 2. Keyboard, 15 minutes. Write a file my.py with a class MyLayer that subtracts the mean over the last axis. (Derive
#    it from `minitransformer.core.Layer`. Its forward(x) returns y and a cache, its backward(dy, cache) returns dx.)
#    Run `minitransformer gradcheck my.py:MyLayer`. Then put a factor of 2 into its backward and run it again.
#
# Exercises with a checker: `minitransformer start 01`.
#
# ## Questions
#
# 1. You find |yours − true| / (|yours| + |true|) = 0.5 in every entry. What are the candidates?
# 2. Why may h be 1e-30, although 1 + 1e-30 is 1 in float64?
# 3. A test along one random direction passes. Can an entry of the gradient still be wrong?
# 4. A function has `if x > 0:` inside. Can you still use the complex step?
# 5. *Somewhere else.* An account of 1 grows by 3 % for 30 years, and a program computes the result in a loop. How do
#    you find out, to all digits and without a formula, how fast the result changes with the rate?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The mean, 0.72, looks fine. But the fifth row costs −ln 0.01 = 4.6 and each of the others 0.1: being sure of
#    something wrong is what the logarithm punishes.
# 2. It has opinions: its logits differ, although it knows nothing yet. That boldness costs something, and no luck makes
#    up for it.
# 3. The program itself. If the values are computed with the keys' weights, every gradient is the right gradient of the
#    wrong program.
#
# ### The questions
#
# 1. |factor − 1| / (factor + 1) = 1/2 gives the factors 3 and 1/3. If you take a mean over an axis of length 3, look
#    there first.
# 2. It is never added to 1. The 1 is in the real part and 1e-30 in the imaginary part.
# 3. In exact arithmetic only by an accident of probability 0. In floating point, a mistake that is tiny compared with
#    the whole sum can hide. Then use several directions, or go entry by entry.
# 4. Yes, if the comparison looks at the real part and x isn't exactly 0. The step never changes the branch.
# 5. Run the loop with the rate 0.03 + 1e-30i, and divide the imaginary part of the result by 1e-30. That gives 70.70,
#    and so does the formula, 30 · 1.03²⁹. It works for any program whose steps take complex numbers and whose
#    comparisons look at real parts.
#
# The exercise. The terms with h², h³ and h⁴ cancel in the sum. What is left is of order h⁵, and the division makes it
# h⁴. The V is lowest about where h⁴ = eps / h, so h = eps^(1/5) = 7e-4, and the error is eps^(4/5) = 3e-13. The
# gradcheck says WRONG, and what it got is twice what it expected.


# %%
def four_points(f, x, h, u):
    near, far = h * u, 2 * h * u
    return (-f(x + far) + 8 * f(x + near) - 8 * f(x - near) + f(x - far)) / (12 * h)


best_of_four = errors(four_points, np.float64).min()
print(f"four points: best error {best_of_four:.1e}")

# %%
# the pictures of this lesson
parts = -np.log(p[np.arange(T), right])  # each row's −ln p
graph = Graph()
graph.node("z", (0, 0), "logit", lit=True)
graph.node("p", (1.9, 0), "softmax")
graph.node("ln", (3.8, 0), "−ln")
graph.node("mean", (5.6, 0), "mean of 5")
graph.node("L", (7.2, 0))
graph.node("tokens", (1.9, 0.9), "6 other tokens")
graph.node("rows", (5.6, 0.9), "4 other rows")
graph.edge("z", "p", f"{z[place]:.3f}", f"−{(1 - p[place]) / 5:.4f}", "z_o")
graph.edge("p", "ln", f"{p[place]:.3f}", f"−{1 / p[place] / 5:.3f}", "p_o")
graph.edge("ln", "mean", f"{parts[1]:.3f}", "0.2")
graph.edge("mean", "L", f"{parts.mean():.4f}", "1")
graph.edge("tokens", "p")
graph.edge("rows", "mean")
lesson.save(graph.draw(), "graph")

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6), sharex=True, sharey=True)
for panel, dtype in zip(axes, (np.float64, np.float32), strict=True):
    for judge, color in JUDGES.items():
        panel.loglog(STEPS, curves[judge, dtype], color=color, label=judge.__name__.replace("_", " "))
    eps = float(np.finfo(dtype).eps)
    panel.plot([eps ** (1 / 2), eps ** (1 / 3)], [eps ** (1 / 2), eps ** (2 / 3)], "k*", label="derived best step")
    panel.set(title=dtype.__name__, xlabel="step h (smaller to the right)", ylim=(1e-17, 30))
axes[0].invert_xaxis()
axes[0].set_ylabel("error of the worst of 35 derivatives")
axes[1].legend(loc="lower left")
lesson.save(figure)
lesson.finish(globals())
