# %% [markdown]
# # Lesson 02: The linear layer and ReLU
#
# * Question: how much of a gradient do the shapes alone tell me, and what happens where they tell nothing?
# * You derive: dx, dW and db of y = xW + b from indices; ReLU's backward; the paper's feed-forward network
# * Reading: 21 min, going deeper 0 min
# * Run: 60 s (fast: 5 s)
# * Needs: 01
# * Difficulty: 2 of 5
# * Paper: section 3.3, equation 2

# %%
import importlib
import itertools
from functools import partial
from lab import BLUE, GREY, ORANGE, PINK, begin, error, plt

import numpy as np

from minitransformer import functional
from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score
from minitransformer.layers import FeedForward, Linear
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import AverageOfLast, TrainingSettings, cosine, train

lesson = begin("02_linear_relu")

# %% [markdown]
# Nearly all of a Transformer's arithmetic is one operation, y = xW + b, and nearly all of its non-linearity outside
# attention is another, max(0, x). This lesson derives both, and puts them together to equation 2 of the paper.
#
# As in lesson 01, dy is short for ∂L/∂y, the gradient that arrives from above (L is the loss), and dx, dW, db are what
# backward returns.
#
# ## Predict
#
# 1. Take x (N, I) and dy (N, O), transpose none, one or both, and multiply them in either order: eight products, if the
#    shapes fit. How many have the shape (I, O) that dW must have? How many if N = I = O? (Under "Shapes".)
# 2. What is ReLU's derivative at 0 exactly? Ask a one-sided difference, a two-sided one, and the complex step.
#    (Under "The kink".)
# 3. In a Transformer that learns to reverse words, somebody transposes dW in every square matrix. Will it still learn?
#    (Under "Does a wrong gradient show?".)

# %% [markdown]
# ## Small numbers
#
# One row x with two features, a layer with three outputs, then ReLU (a = max(0, y), entry by entry):
#
#     x = [1, 2]      W = [1  0  −1]      b = [0, 1, −2]
#                         [2  1   0]
#
#     y = [1·1 + 2·2 + 0,  1·0 + 2·1 + 1,  1·(−1) + 2·0 − 2] = [5, 3, −3]         a = [5, 3, 0]
#
# From above arrives da = [1, −2, 4]: if a₀ grows by a little, the loss grows by 1 times that; if a₁ grows, the loss
# falls by 2 times that; and so on. Go back.
#
#     dy = [1, −2, 0]                ReLU was off in the last place: the 4 cannot pass
#     db = [1, −2, 0]                b is added to y, so what changes y changes b alike
#     dW = [1·1  1·(−2)  0]          the weight from feature i to output o multiplies xᵢ,
#          [2·1  2·(−2)  0]          so its gradient is xᵢ dyₒ
#     dx = [1·1 + 0·(−2) + 0,  2·1 + 1·(−2) + 0] = [1, 0]     feature i reaches the loss through row i of W
#
# Try one: raise the weight 2 at the lower left by 0.01. Then y₀ grows by 2·0.01, and the loss by 0.02, at the rate 2.

# %%
x, b = np.array([[1.0, 2.0]]), np.array([0.0, 1.0, -2.0])
W = np.array([[1.0, 0.0, -1.0], [2.0, 1.0, 0.0]])
y, da = x @ W + b, np.array([[1.0, -2.0, 4.0]])
dy = da * (y > 0)
print("y ", y[0], "\ndy", dy[0], "\ndW", *(x.T @ dy), "\ndx", (dy @ W.T)[0])
by_hand = np.array([5, 3, -3, 1, -2, 0, 1, -2, 0, 2, -4, 0, 1, 0])
lesson.check(
    "the example by hand", np.abs(np.hstack([y[0], dy[0], (x.T @ dy).ravel(), (dy @ W.T)[0]]) - by_hand).max(), 0
)

# %% [markdown]
# ## The derivation
#
# ### Part 1: forward, with every index
#
# x has N rows (tokens) of I features, W has I rows and O columns, b has O entries:
#
#     yₙₒ = Σᵢ xₙᵢ Wᵢₒ + bₒ            n = 1..N, o = 1..O, the sum over i = 1..I
#
# The loss depends on any number θ (an entry of x, W or b) only through the y, so by the chain rule
#
#     ∂L/∂θ = Σₙ Σₒ dyₙₒ ∂yₙₒ/∂θ.
#
# That is the only rule we need. Below, 1[n = m] is 1 if n = m, and else 0: under a sum over n it picks the term n = m.
#
# ### Part 2: dx
#
# Take θ = xₘⱼ. It occurs in yₙₒ only if n = m, in the one term i = j, with the factor Wⱼₒ:
#
#     ∂yₙₒ/∂xₘⱼ = 1[n = m] Wⱼₒ
#     dxₘⱼ = Σₙ Σₒ dyₙₒ 1[n = m] Wⱼₒ = Σₒ dyₘₒ Wⱼₒ = Σₒ dyₘₒ (Wᵀ)ₒⱼ
#
# The sum runs over the inner indices of a matrix product, once W is turned: dx = dy Wᵀ. Rows do not mix, neither
# forward nor backward.

# %% [markdown]
# ### Part 3: dW
#
# Take θ = Wⱼₖ. It occurs in yₙₒ only if o = k, with the factor xₙⱼ, but in *every* row n:
#
#     ∂yₙₒ/∂Wⱼₖ = xₙⱼ 1[o = k]
#     dWⱼₖ = Σₙ Σₒ dyₙₒ xₙⱼ 1[o = k] = Σₙ xₙⱼ dyₙₖ = Σₙ (xᵀ)ⱼₙ dyₙₖ
#
# So dW = xᵀ dy. Here the rows do mix: each token that used the weight adds its share.
#
# ### Part 4: db, and the leading axes
#
# Take θ = bₖ. ∂yₙₒ/∂bₖ = 1[o = k], in every row, so dbₖ = Σₙ dyₙₖ: the column sums of dy.
#
# In a Transformer x is (B, T, I), with B sequences of T tokens. Nothing changes: each token is a row. Number the tokens
# of all sequences from 1 to N = B·T, do the above, and put the shape back. In particular dW and db sum over *all*
# leading axes. Summing db over the first axis only leaves (T, O), a shape that NumPy would happily broadcast against b.
#
# ### Part 5: ReLU
#
#     yᵢ = max(0, xᵢ)            ∂yᵢ/∂xⱼ = 1[i = j] 1[xᵢ > 0]            dxᵢ = dyᵢ 1[xᵢ > 0]
#
# Each entry stands alone: where x is positive the slope is 1, where it is negative the slope is 0, and at 0 there is no
# derivative; we take 0 there. As yᵢ > 0 exactly where xᵢ > 0, it is enough to remember y.

# %% [markdown]
# ### Part 6: the feed-forward network of the paper
#
# Equation 2: FFN(x) = max(0, x W₁ + b₁) W₂ + b₂, for each token alone. C = d_model features go in and out, F = d_ff are
# in between; in the paper's base model C = 512 and F = 2048. It is three lines forward, and backward the same lines
# read upwards:
#
#     h = x W₁ + b₁        (N, F)        dx, dW₁, db₁  from dh
#     a = max(0, h)        (N, F)        dh = da 1[a > 0]
#     y = a W₂ + b₂        (N, C)        da, dW₂, db₂  from dy
#
# Fused into one formula: dx = ((dy W₂ᵀ) ∘ 1[h > 0]) W₁ᵀ, with ∘ the product entry by entry.
#
# ## From scratch


# %%
def linear(x, W, b):
    """x (..., I), W (I, O), b (O,) -> y (..., O)."""
    return x @ W + b


def linear_backward(dy, x, W):
    """dy (..., O) -> dx (..., I), dW (I, O), db (O,)."""
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (N, I), (N, O)
    return dy @ W.T, rows.T @ dy_rows, dy_rows.sum(axis=0)


def relu(x):
    return np.maximum(x, 0)


def relu_backward(dy, y):
    return dy * (y > 0)


def feed_forward(x, W1, b1, W2, b2):
    a = relu(linear(x, W1, b1))
    return linear(a, W2, b2), a


def feed_forward_backward(dy, x, a, W1, W2):
    da, dW2, db2 = linear_backward(dy, a, W2)
    dh = relu_backward(da, a)
    dx, dW1, db1 = linear_backward(dh, x, W1)
    return dx, dW1, db1, dW2, db2


# %% [markdown]
# ## Checked
#
# The judge from lesson 01, then the library. Sizes are all different, weights and biases of order one, dy random.


# %%
def complex_step(f, x):
    """The gradient of the scalar f at the array x, exact to rounding; f must take complex numbers (lesson 01)."""
    grad = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        grad[i] = f(z).imag / 1e-30
    return grad


rng = np.random.default_rng(0)
B, T, C, F = 2, 3, 4, 5
x, dy, da = rng.standard_normal((B, T, C)), rng.standard_normal((B, T, C)), rng.standard_normal((B, T, F))
W1, b1, W2, b2 = (rng.standard_normal(shape) for shape in ((C, F), F, (F, C), C))

dx, dW, db = linear_backward(da, x, W1)
lesson.check("linear: dx", error(dx, complex_step(lambda x: (da * linear(x, W1, b1)).sum(), x)), 1e-14)
lesson.check("linear: dW", error(dW, complex_step(lambda W: (da * linear(x, W, b1)).sum(), W1)), 1e-14)
lesson.check("linear: db", error(db, complex_step(lambda b: (da * linear(x, W1, b)).sum(), b1)), 1e-14)
lesson.check("relu: dx", error(relu_backward(dy, relu(x)), complex_step(lambda x: (dy * relu(x)).sum(), x)), 1e-15)

inputs = {"x": x, "W1": W1, "b1": b1, "W2": W2, "b2": b2}
y, a = feed_forward(**inputs)
gradients = feed_forward_backward(dy, x, a, W1, W2)
for name, gradient in zip(inputs, gradients, strict=True):
    judged = complex_step(lambda z, name=name: (dy * feed_forward(**{**inputs, name: z})[0]).sum(), inputs[name])
    lesson.check(f"feed-forward: d{name}", error(gradient, judged), 1e-14)

# %% [markdown]
# And our functions are the library's: `linear`, `relu`, and the layer `FeedForward`, which holds two `Linear` layers
# with the weights W₁, b₁ and W₂, b₂. In the base model it has 2·512·2048 + 2048 + 512 = 2,099,712 parameters, about
# twice as many as one attention.

# %%
library_y, cache = functional.linear(x, W1, b1)
lesson.check("linear = the library's", error(linear(x, W1, b1), library_y), 1e-15)
for name, ours, theirs in zip(("dx", "dW", "db"), (dx, dW, db), functional.linear_backward(da, cache), strict=True):
    lesson.check(f"linear, {name} = the library's", error(ours, theirs), 1e-14)
library_y, cache = functional.relu(x)
lesson.check("relu = the library's", error(relu(x), library_y), 0)
lesson.check("relu, dx = the library's", error(relu_backward(dy, relu(x)), functional.relu_backward(dy, cache)), 0)

layer = FeedForward(C, F, dtype=np.float64)
layer.expand.W.data[...], layer.expand.b.data[...] = W1, b1
layer.contract.W.data[...], layer.contract.b.data[...] = W2, b2
library_y, cache = layer.forward(x)
library_dx = layer.backward(dy, cache)
lesson.check("FeedForward = the library's", error(y, library_y), 1e-14)
theirs = (library_dx, layer.expand.W.grad, layer.expand.b.grad, layer.contract.W.grad, layer.contract.b.grad)
worst = max(error(ours, other) for ours, other in zip(gradients, theirs, strict=True))
lesson.check("FeedForward, all five gradients = the library's", worst, 1e-14)
base = sum(parameter.data.size for parameter in FeedForward(512, 2048).parameters())
print(f"parameters of one feed-forward network of the base model: {base:,}")
lesson.quote("2·512·2048 + 2048 + 512 = 2,099,712", 2, 512, 2048, 2048, 512, base)

# %% [markdown]
# ## Shapes
#
# Try all eight products of x and dy. With N, I and O all different only one has the shape of dW, and only one of dy and
# W that of dx: you could have guessed both formulas from the shapes alone. That is a good way to remember them, and
# the reason why every axis in a check should have a length of its own.
#
# Now let W be square, I = O, as the projections of attention are (C to C). Two candidates for dW fit, xᵀdy and its
# transpose dyᵀx, and two for dx, dy Wᵀ and dy W. No assertion on shapes, no error message will ever tell them apart.
# If N = I = O, all eight fit.


# %%
def candidates(a, b):
    """The eight products of a and b, each turned or not, in either order, as far as their shapes fit."""
    for left, right in itertools.permutations((a, b)):
        for l, r in itertools.product((left, left.T), (right, right.T)):
            if l.shape[1] == r.shape[0]:
                yield l @ r


def count(N, I, O):
    x, dy, W = rng.standard_normal((N, I)), rng.standard_normal((N, O)), rng.standard_normal((I, O))
    of_dW = [product for product in candidates(x, dy) if product.shape == W.shape]
    of_dx = [product for product in candidates(dy, W) if product.shape == x.shape]
    right = sum(error(product, x.T @ dy) < 1e-12 for product in of_dW)
    return len(of_dW), len(of_dx), right


for sizes in ((6, 4, 5), (6, 4, 4), (4, 4, 4)):
    fit_dW, fit_dx, right = count(*sizes)
    print(f"  N, I, O = {sizes}: {fit_dW} products fit dW, {fit_dx} fit dx; {right} of the former is right")
lesson.check("all sizes different: products that fit dW", count(6, 4, 5)[0], 1)
lesson.check("all sizes equal: products that fit dW", count(4, 4, 4)[0], at_least=8)
lesson.check("all sizes equal: products that are right", count(4, 4, 4)[2], 1)

x_square, W_square, dy_square = (rng.standard_normal(shape) for shape in ((6, 4), (4, 4), (6, 4)))
true_dx = complex_step(lambda x: (dy_square * (x @ W_square)).sum(), x_square)
lesson.check("square W: error of dx = dy W", error(dy_square @ W_square, true_dx), at_least=0.3)
symmetric = W_square + W_square.T
true_dx = complex_step(lambda x: (dy_square * (x @ symmetric)).sum(), x_square)
lesson.check("symmetric W: error of dx = dy W, the mistake is invisible", error(dy_square @ symmetric, true_dx), 1e-14)

# %% [markdown]
# The last check is the reason for random weights: at W = 0, at W = 1 (the identity) or at any other symmetric W the
# wrong formula gives the right numbers. Check at weights that have no symmetry.
#
# ## The kink
#
# ReLU has no derivative at 0: from the right the slope is 1, from the left 0. What do the judges of lesson 01 say
# there, and near it? A two-sided difference with step h takes one point on each side, as long as |x| < h:
#
#     (relu(x + h) − relu(x − h)) / 2h = (x + h − 0) / 2h = 1/2 + x/2h
#
# That is a ramp where there should be a step: 0.5 at x = 0, and 0.55 at x = h/10. The complex step stays at x, so it is
# right at every x except 0 itself. There NumPy compares 0 + ih with 0, finds the real parts equal, goes by the
# imaginary parts, and answers 1. Our backward answers 0. Any slope from 0 to 1 would do (a line with such a slope
# touches the graph at 0 and stays below it), so this is no mistake, but in a check it looks like one.

# %%
h = 1e-5
print("       x    from the right   from the left   two-sided   complex step   our backward")
for point in (1e-6, 0.0, -1e-6):
    p = np.array([point])
    right, left = (relu(p + h) - relu(p)) / h, (relu(p) - relu(p - h)) / h
    both, step = (relu(p + h) - relu(p - h)) / (2 * h), complex_step(lambda z: relu(z).sum(), p)
    ours = relu_backward(np.ones(1), relu(p))
    print(f"{point:8.0e} {right[0]:17.2f} {left[0]:15.2f} {both[0]:11.2f} {step[0]:14.2f} {ours[0]:14.2f}")
    if point == 0:
        lesson.quote("0.5 at x = 0", both[0], 0)
        lesson.check("complex step at the kink", error(step, 1.0), 0)
        lesson.check("our backward at the kink", np.abs(ours).max(), 0)
    if point > 0:
        lesson.quote("and 0.55 at x = h/10", both[0], h / point)

# %% [markdown]
# How often does a difference step over a kink? Move x along a random direction v with step ±h. Call a unit's value
# before ReLU s, and its change ±h·t, and let s and t be standard normal and independent. The two points lie on two
# sides of the kink if |s| < h|t|. The density of s near 0 is 1/√(2π), so that s is between −h|t| and h|t| with
# probability 2h|t|/√(2π); and the mean of |t| is √(2/π). Together the probability is
#
#     2 h √(2/π) / √(2π) = 2h/π.
#
# That is small; but a network has many units. With 2,000 tokens and 512 units there are 1,024,000 values of ReLU, and
# with h = 1e-5 we expect 6.5 of them to cross. 9 did, and they alone put the two-sided difference off by 0.67 %, where
# lesson 01 promised ten digits. The complex step crosses none.

# %%
rng = np.random.default_rng(2)
N, C, F = 2000, 64, 512
x, v, dy = rng.standard_normal((N, C)), rng.standard_normal((N, C)), rng.standard_normal((N, F))
W = rng.standard_normal((C, F)) / np.sqrt(C)  # then x W is standard normal, and v W as well


def crossed(h):
    return ((x + h * v) @ W > 0) != ((x - h * v) @ W > 0)


slopes = relu_backward(dy, relu(x @ W)) * (v @ W)
exact = slopes.sum()
stepped = (dy * relu((x + 1e-30j * v) @ W)).sum().imag / 1e-30
differences = dy * (relu((x + h * v) @ W) - relu((x - h * v) @ W)) / (2 * h)
count_crossed = np.count_nonzero(crossed(h))
print(f"values of ReLU {N * F:,}; expected to cross {N * F * 2 * h / np.pi:.1f}, crossed {count_crossed}")
lesson.quote("With 2,000 tokens and 512 units there are 1,024,000 values of ReLU", N, F, N * F)
lesson.quote("h = 1e-5 we expect 6.5 of them to cross. 9 did", h, N * F * 2 * h / np.pi, count_crossed)
lesson.quote("the two-sided difference off by 0.67 %", 100 * error(differences.sum(), exact))
others = (differences - slopes)[~crossed(h)].sum() / exact
lesson.check("two-sided difference, what the others add to its error", abs(others), 1e-9)
lesson.check("crossings at h = 1e-3 against 2h/π", error(crossed(1e-3).sum(), N * F * 2e-3 / np.pi), 0.12)
lesson.check("complex step along v", error(stepped, exact), 1e-12)

# %% [markdown]
# ### A unit that is off
#
# If unit k is off for every token of a batch, column k of the mask 1[h > 0] is 0. Then dW₁'s column k, db₁'s entry k
# and dW₂'s row k are 0 exactly: this batch does not change the unit's own weights, and only layers below, which change
# x, could switch it on again. A unit that is off for all data is dead.

# %%
b1_off = b1.copy()
b1_off[2] = -100.0
x, dy = inputs["x"], rng.standard_normal(inputs["x"].shape)
_, a = feed_forward(x, W1, b1_off, W2, b2)
_, dW1, db1, dW2, _ = feed_forward_backward(dy, x, a, W1, W2)
lesson.check("gradients of a unit that is off", np.abs(np.hstack([dW1[:, 2], db1[2], dW2[2]])).max(), 0)

# %% [markdown]
# ## Does a wrong gradient show?
#
# We put our `linear_backward` into the library's place and train the small Transformer of lesson 00 to reverse words of
# up to eight letters, for 700 steps. Then we do it again with a mistake, in the square matrices only. There are four of
# them, all in attention, and no shape complains. The last run is a control: no gradient for these four at all.
#
#     right
#     dW transposed        dW = dyᵀ x
#     dx transposed        dx = dy W
#     dW = 0               the four matrices stay as they were drawn


# %%
def as_derived(dy, cache, out=None):
    return linear_backward(dy, cache.x, cache.W)


def dW_transposed(dy, cache, out=None):
    dx, dW, db = as_derived(dy, cache)
    return dx, dW.T if dW.shape[0] == dW.shape[1] else dW, db


def dx_transposed(dy, cache, out=None):
    dx, dW, db = as_derived(dy, cache)
    return dy @ cache.W if dW.shape[0] == dW.shape[1] else dx, dW, db


def dW_zero(dy, cache, out=None):
    dx, dW, db = as_derived(dy, cache)
    return dx, 0 * dW if dW.shape[0] == dW.shape[1] else dW, db


def train_with(backward):
    """The losses of training, and the share of held-out words that are reversed to the last letter."""
    task = get_task("reverse")
    task.max_len = 8
    sizes = {"d_model": 64, "num_heads": 2, "d_ff": 128, "num_layers": 1, "dropout": 0.0}
    model = Transformer(TransformerConfig(len(task.vocabulary), **sizes), seed=0)
    steps = lesson.pick(full=700, fast=40)
    schedule, averaging = partial(cosine, steps=steps, peak=3e-3, warmup=50), AverageOfLast(steps)
    module = importlib.import_module(Linear.__module__)  # the file in which the layer finds its backward
    library_backward, module.linear_backward = module.linear_backward, backward
    try:
        history = train(model, task, schedule=schedule, settings=TrainingSettings(steps=steps), averaging=averaging)
    finally:
        module.linear_backward = library_backward
    batch = task.held_out_batch(np.random.default_rng(5), lesson.pick(full=500, fast=20))
    return np.array(history.losses), decode_and_score(model, batch)[1]


runs = {"right": as_derived, "dW transposed": dW_transposed, "dx transposed": dx_transposed, "dW = 0": dW_zero}
losses, right_words = {}, {}
for name, backward in runs.items():
    losses[name], right_words[name] = train_with(backward)
    print(
        f"{name:<14} loss at the end {losses[name][-20:].mean():.4f} nats, words right {right_words[name]:6.1%}",
        flush=True,
    )

# %% [markdown]
# ## The picture

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), width_ratios=(1, 1.4))
grid = np.linspace(-2, 2, 401)  # in units of h
both = (relu((grid + 1) * h) - relu((grid - 1) * h)) / (2 * h)
left.plot(grid, complex_step(lambda z: relu(z).sum(), grid * h), color=BLUE, label="complex step")
left.plot(grid, both, "--", color=ORANGE, label="difference")
left.set(xlabel="x, in units of the step h", ylabel="slope of max(0, x)", title="Slope of ReLU near its kink")
left.legend(fontsize=8, loc="lower right", handlelength=1.5)
styles = ((BLUE, "-"), (ORANGE, "--"), (PINK, "-"), (GREY, ":"))
for name, (color, style) in zip(runs, styles, strict=True):
    window = 10
    smooth = np.convolve(losses[name], np.ones(window) / window, mode="valid")
    right.semilogy(np.arange(window, len(losses[name]) + 1), smooth, style, color=color, linewidth=1.3, label=name)
right.set(
    xlabel="training step",
    ylabel="loss (nats per token, mean of 10 steps)",
    title="Training with right and wrong gradients",
)
right.legend(fontsize=8)
lesson.save(figure)

# %% [markdown]
# On the left you should see a step, and a ramp of width 2h through it. If the ramp were a step, too, then x never came
# nearer to 0 than h. On the right you should see three curves on top of each other and one far above. If the dotted
# curve (dW = 0) left the others, then the four matrices would have had something to learn.
#
# ## The surprise
#
# We expected the transposed dW to hurt. With the right gradient 99.4 % of held-out words were reversed to the last
# letter, with the transposed one 99.8 %, and the loss curves cannot be told apart. The control says why: without any
# gradient for the four matrices it is 99.4 %. (Differences of half a per cent are chance here.) Whatever a square
# matrix does between two layers that learn, these can learn around it. So in this task its gradient can be right, wrong
# or missing, and the loss has nothing to say about it.
#
# The transposed dx is worse, because it spoils what all layers below receive: 13 % of the words. But look at its curve:
# it falls, smoothly, for 700 steps. Without the right one beside it, you would call it a slow learner and look for a
# better learning rate.
#
# "The loss falls" is no evidence for a gradient. A check with the complex step takes a second, and is.

# %%
lesson.quote("With the right gradient 99.4 % of", 100 * right_words["right"], within=0.02, full_only=True)
lesson.quote("with the transposed one 99.8 %", 100 * right_words["dW transposed"], within=0.02, full_only=True)
lesson.quote("for the four matrices it is 99.4 %", 100 * right_words["dW = 0"], within=0.02, full_only=True)
lesson.quote("receive: 13 % of the words", 100 * right_words["dx transposed"], within=0.6, full_only=True)
if not lesson.fast:
    lesson.check("words right with dW transposed", right_words["dW transposed"], at_least=0.95)
    lesson.check("words right with dW = 0", right_words["dW = 0"], at_least=0.95)
    lesson.check("words right with dx transposed", right_words["dx transposed"], at_most=0.5)
    lesson.claim(
        "if the loss falls, the gradients are right",
        "wrong",
        "with dW transposed in every square matrix a Transformer reverses {dW transposed:.1%} of held-out words, "
        "with the right gradient {right:.1%}".format(**right_words),
    )

# %% [markdown]
# ## Exercise
#
# 1. *No bias, and a scale* (15 minutes, pencil). Let y = g·(xW) with one number g. Derive dx, dW and dg. You pass if
#    your three formulas agree with `complex_step`; take N, I, O all different, g = np.array(1.7) and a random dy.
# 2. *Leaky ReLU* (15 minutes, keyboard). y = x for x > 0, and 0.01·x else. Write it as a `minitransformer.core.Layer`
#    in a file my.py (forward(x) returns y and a cache, backward(dy, cache) returns dx), and run
#    `minitransformer gradcheck my.py:MyLayer`. You pass if it says so. Then explain why y is still enough to remember.
#
# Checked exercises on this lesson: `minitransformer start 02`.
#
# ## Questions
#
# 1. Why does dW sum over the tokens, and dx not?
# 2. W is (512, 512), and somebody wrote dx = dy W. Which of these find it: an assertion on shapes; a check at W = 0;
#    a check at W = the identity; a check at random W; a falling loss?
# 3. Somebody's db has the shape (T, O) in place of (O,). What does `b = b - lr * db` do?
# 4. A check by differences of a large ReLU network fails in three entries out of thousands, by a few per cent.
#    Is there a mistake?
# 5. Why is ReLU needed between the two matrices of the feed-forward network?

# %% [markdown]
# ## In the wild
#
# * PyTorch's `nn.Linear` keeps W as (out, in) and computes x Wᵀ + b; we keep (in, out), as the paper writes it. The
#   Hugging Face GPT-2 keeps (in, out), too. Whoever copies its weights into `nn.Linear` and forgets to transpose gets
#   errors for all matrices but the square one behind attention (`attn.c_proj`), which loads without a word.
# * PyTorch has three ways to write max(0, x), with three slopes at 0: `relu` has 0, `clamp(min=0)` has 1, and
#   `maximum` with zeros has 0.5. All lie between 0 and 1, and it hardly ever matters, since x is hardly ever exactly 0.
# * Lillicrap et al. (2016) replaced Wᵀ in dx = dy Wᵀ by a fixed random matrix on purpose, and the networks learned:
#   the forward weights come to agree with it. They call it feedback alignment. It is one reason why wrong
#   backwards train.
# * Many later models leave out b (T5, LLaMA), and with it db.

# %%
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. One W is used by every token, so a change of it changes all their outputs, and the effects add. A row of x enters
#    its own row of y only.
# 2. Only the check at random W. The shapes agree; at W = 0 both formulas give 0; the identity is its own transpose; and
#    the loss falls all the same.
# 3. It broadcasts: b silently becomes an array (T, O), one bias for each position, and the next forward accepts it. (In
#    place, `b -= lr * db`, NumPy refuses.) Let shapes be asserted where gradients are stored.
# 4. Perhaps not: a difference may have stepped over kinks. Try a smaller h: errors from kinks become rarer in
#    proportion to h, a mistake stays. Or take the complex step.
# 5. Without it, (xW₁ + b₁)W₂ + b₂ = x(W₁W₂) + (b₁W₂ + b₂): one linear layer, whatever F is.
