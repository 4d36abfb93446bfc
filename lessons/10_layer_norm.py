# %% [markdown]
# # Lesson 10: LayerNorm's three paths
#
# [![The Transformer, all five norms lit](../plots/10_layer_norm_map.png)](../plots/00_reverse_whole.png)
#
# **What keeps a token's numbers the same size through all the layers, and what does that do to the gradient?**
#
# 11 min, with a pencil 35, going deeper 7 · runs in 3 s (fast: 3 s) · needs 01, 02, 05, 06 · difficulty 3 of 5 · paper:
# section 3.1 (the "Norm" in "Add & Norm"); Ba, Kiros and Hinton 2016
#
# ## Sizes that nobody chose
#
# In the five rows of our decoder just before its first norm, the standard deviations of the features are 3.23, 3.25,
# 3.80, 1.60 and 1.43. Nobody chose these sizes, and yet they matter.
#
# A large row asks with large queries, large queries make large scores, and the softmax becomes sure. In
# cross-attention, our row p→o looks at «o» with the weight 0.564. Make the row three times as large, and the weight is
# 0.876; make it ten times as large, and it is 0.999. A softmax this sure passes back almost no gradient (lesson 06).
# How sharply a token looks, and whether it still learns, would depend on an accident of size.
#
# Worse, sizes multiply: a layer whose output is 1.2 times its input seems harmless, but 24 of them make 1.2²⁴ = 79.5,
# and with 0.8 they make 0.8²⁴ = 0.0047.

# %% Imports
from support.graph import Graph
from support.lab import BLUE, GREY, ORANGE, begin, error, plt, running_example, show
from support.pictures import matrix_text, number

import numpy as np

from minitransformer.gradcheck import complex_step
from minitransformer.layers import LayerNorm, RMSNorm

lesson = begin("10_layer_norm")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) Which of dW, db and dx change if a linear layer gets rows twice as large, and the same dy?
# 2. (05) Why are scores divided by √D, and not by D?
# 3. (06) Each row of ds sums to 0 because there is a change to the scores that no weight notices. Which one?
#
# (The answers are at the end.)

# %% [markdown]
# ## One size for every token
#
# LayerNorm subtracts the mean of a token's features and divides by their standard deviation. Then the model may choose
# a scale and a shift for each feature:
#
#     μ   = (1/C) Σ_i x_i                        mean
#     σ   = √( (1/C) Σ_i (x_i − μ)² + ε )        standard deviation; ε = 1e-5 keeps us from dividing by 0
#     x̂_i = (x_i − μ) / σ                        mean 0, variance 1
#     y_i = γ_i x̂_i + β_i                        γ starts at 1, β at 0
#
# Size 1 was our choice. With γ and β, which all tokens share, the model can learn a better one.


# %%
def mean(features):
    return features.mean(axis=-1, keepdims=True)


def normalize(x, eps=1e-5):
    """x (..., C) -> x̂ (..., C), μ and σ (..., 1)"""
    mu = mean(x)
    sigma = np.sqrt(mean((x - mu) ** 2) + eps)
    return (x - mu) / sigma, mu, sigma


rng = np.random.default_rng(10)
after = {}
for factor in (0.8, 1.0, 1.2):
    plain = normed = rng.standard_normal((100, 64))
    for _ in range(24):
        W = factor * rng.standard_normal((64, 64)) / np.sqrt(64)
        plain = plain @ W
        normed, _, _ = normalize(normed @ W)
    after[factor] = plain.std(), normed.std()
    print(f"factor {factor}: rows of size {plain.std():7.4f} after 24 layers; with LayerNorm {normed.std():.4f}")

# %% [markdown]
# With a LayerNorm after each matrix, all rows come out with size 1, whatever the matrices do.
#
# > **2016.** A year after Ioffe and Szegedy had normalized each feature over a batch, Ba, Kiros and Hinton flipped the
# > table and normalized each example over its features. They wanted it for recurrent networks, where sentences differ
# > in length, so a batch has no common statistics. The Transformer kept their norm and dropped the recurrence.
#
# ## Ten times the row, and a forgotten path
#
# 1. What happens to y and to dx if you multiply a row x by 10?
# 2. A colleague forgets that μ and σ depend on x, and returns dx = γ ∘ dy / σ. By how many percent is this off, for
#    random numbers, at C = 4 and at C = 512? Put the second answer in the cell.

# %%
guess_off = ...  # per cent, for C = 512

# %% [markdown]
# ## Move one number of six
#
# Our row p→o arrives at the last norm of the decoder with
#
#     x = (1.430, 1.797, −1.055, 0.335, −0.992, 2.236)
#
# The numbers sum to 3.750, so μ = 0.625. The mean of the squares of x − μ is 1.690, so σ = 1.300. The first feature has
# learned γ_0 = 2.09 and β_0 = −0.64, so
#
#     x̂_0 = (1.430 − 0.625)/1.300 = 0.619           y_0 = 2.09 · 0.619 − 0.64 = 0.654
#
# Now move x_0 by 0.1. How many of the six numbers of x̂ move with it?
#
# [In the explorer: set x_0 to 1.53. How many of the six x̂ of the row move?
# Guess first.](../minitransformer/explorer/page/index.html#embed=decoder.norm3.x_hat[1,0]&turn=decoder.norm3.x[1,0])

# %%
guess = ...  # how many of the six numbers of x̂ move

at = "decoder.norm3"
x, gamma, beta, dy = (example[f"{at}.{name}"] for name in ("x", "gamma", "beta", "dy"))
C = x.shape[-1]
x_hat, mu, sigma = normalize(x)
y = gamma * x_hat + beta
moved = x[1].copy()
moved[0] += 0.1
change = normalize(moved)[0] - x_hat[1]
show("row p→o", [x[1], x_hat[1], y[1], change], ["x", "x̂", "y", "change of x̂"])
lesson.compare("numbers of x̂ that move", guess, np.count_nonzero(np.abs(change) > 1e-6))

# %% [markdown]
# If μ and σ had stayed where they were, x̂_0 would have moved by 0.1/1.300 = 0.077, and the others not at all. But x̂_0
# moves by 0.058 only, and the others move down, by up to 0.023. So x_0 has more than one path to the loss.
#
# ## Three paths
#
# The gradient dy comes from above, and the step y_i = γ_i x̂_i + β_i turns it into dx̂_i = γ_i dy_i. From x to x̂ there
# are three paths, here for our row.
#
# ![The three paths of row p→o, with its numbers](../plots/10_layer_norm_graph.png)
#
# What does each of them contribute to dx_j? **Directly**, with μ and σ fixed, x_j moves only x̂_j:
#
#     ∂x̂_j/∂x_j = 1/σ           this path brings   dx̂_j / σ
#
# **Through μ**, which every x̂_i contains, and with σ fixed,
#
#     ∂x̂_i/∂μ = −1/σ           so   dμ = −(1/σ) Σ_i dx̂_i
#     ∂μ/∂x_j = 1/C             this path brings   dμ / C = −(1/σ) mean(dx̂)

# %% [markdown]
# **Your line.** What does the third path, through σ with μ fixed, contribute to row p→o? For ∂σ/∂x_j, differentiate
# both sides of σ² = (1/C) Σ_i (x_i − μ)² + ε. Use `dx_hat[1]`, `x_hat[1]` and `sigma[1]`.

# %%
dx_hat = gamma * dy
through_sigma = ...  # your line: what the path through σ brings to dx of row p→o, (C,)
lesson.judge("through_sigma", through_sigma)

# %% [markdown]
# Every x̂_i contains σ, so
#
#     ∂x̂_i/∂σ = −(x_i − μ)/σ² = −x̂_i/σ           so   dσ = −(1/σ) Σ_i dx̂_i x̂_i
#
# And σ² = (1/C) Σ_i (x_i − μ)² + ε, differentiated on both sides, gives
#
#     2σ ∂σ/∂x_j = (2/C) (x_j − μ)
#     ∂σ/∂x_j    = (x_j − μ)/(C σ) = x̂_j/C        this path brings   dσ x̂_j / C = −(1/σ) x̂_j mean(dx̂ ∘ x̂)
#
# A fourth path, from x to μ to σ, contributes nothing, because deviations from the mean sum to 0:
#
#     2σ ∂σ/∂μ = −(2/C) Σ_i (x_i − μ) = 0
#
# Together:
#
#     dx = (1/σ) ( dx̂ − mean(dx̂) − x̂ mean(dx̂ ∘ x̂) )
#
# For our row, dμ = 0.130 and dσ = 0.034. The path through μ brings the same 0.130/6 = 0.022 to every feature, and the
# path through σ brings each a share in proportion to its x̂, here at most 0.007.
#
# All N tokens use the same γ_i and β_i, and the gradients of several uses add. The sums run over the tokens, while the
# means in dx run over the features:
#
#     dγ_i = Σ_n dy_ni x̂_ni           dβ_i = Σ_n dy_ni

# %%
dmu = -dx_hat.sum(axis=-1, keepdims=True) / sigma
dsigma = -(dx_hat * x_hat).sum(axis=-1, keepdims=True) / sigma
paths = {"directly": dx_hat / sigma, "through μ": np.repeat(dmu / C, C, axis=-1), "through σ": dsigma * x_hat / C}
dx = sum(paths.values())
show("dx of row p→o", [*(path[1] for path in paths.values()), dx[1]], [*paths, "sum"])

# %% [markdown]
# ## Three paths in one line
#
# Here are the three paths in one line, checked with ε = 0.1, so that a mistake with ε would show.


# %%
def layer_norm(x, gamma, beta, eps=1e-5):
    x_hat, _, sigma = normalize(x, eps)
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dx_hat = gamma * dy
    dx = (dx_hat - mean(dx_hat) - x_hat * mean(dx_hat * x_hat)) / sigma
    tokens = tuple(range(dy.ndim - 1))  # all axes but the last
    return dx, (dy * x_hat).sum(axis=tokens), dy.sum(axis=tokens)


given = {"x": rng.standard_normal((2, 3, 5)), "gamma": rng.standard_normal(5), "beta": rng.standard_normal(5)}
upstream = rng.standard_normal((2, 3, 5))


def loss(**moved):
    return (upstream * layer_norm(**{**given, **moved}, eps=0.1)[0]).sum()


mine, cache = layer_norm(**given, eps=0.1)
found = layer_norm_backward(upstream, cache)
for name, gradient in zip(given, found, strict=True):
    true = complex_step(lambda value, name=name: loss(**{name: value}), given[name])
    lesson.check(f"d{name}, against the complex step", error(gradient, true), 1e-13)

layer = LayerNorm(5, eps=0.1, dtype="float64")
layer.gamma.data[...], layer.beta.data[...] = given["gamma"], given["beta"]
library, cache = layer.forward(given["x"])
lesson.check("y equal to the library's", error(mine, library), 1e-13)
lesson.check("dx equal to the library's", error(found[0], layer.backward(upstream, cache)), 1e-13)

# %% [markdown]
# ## Two directions that LayerNorm ignores
#
# If you add the same number to all features of x, μ takes it away again. If you stretch x − μ by any factor, σ takes
# that away (as long as ε is small). The first is a step along the vector of ones, the second along x̂. Neither changes
# the loss, so dx is orthogonal to both. **What LayerNorm takes from a row on the way up, its mean and its size, it
# takes from the gradient on the way down.**
#
# The two means do exactly this: mean(dx̂) is the part of dx̂ along the ones, and x̂ mean(dx̂ ∘ x̂) = x̂
# (dx̂·x̂)/(x̂·x̂) the part along x̂, because x̂·x̂ = C.
#
# With C = 3 you can see it. The token x = (3, 1, −1) has μ = 1, and x − μ = (2, 0, −2) lies in the plane of all vectors
# with sum 0. Divided by σ = 1.633 it has length √3, like every other token, so they all end up on one circle. Now let
# the loss be L = x̂_0, so that dx̂ = (1, 0, 0):
#
#     dx̂ − mean(dx̂)    = (2/3, −1/3, −1/3)                                  in the plane
#     x̂ mean(dx̂ ∘ x̂)  = (1.225, 0, −1.225) · 0.408 = (1/2, 0, −1/2)
#     σ dx              = (2/3, −1/3, −1/3) − (1/2, 0, −1/2) = (1/6, −1/3, 1/6)
#
# The loss is x̂_0, and yet it depends most strongly on x_1.
#
# ![Tokens on the circle, and gradients along it](../plots/10_layer_norm.png)

# %% [markdown]
# On the left, gray arrows take tokens to the plane, and blue ones end on the circle. On the right, for the same loss,
# you should see orange tangents. If yours aren't tangents, the path through σ is missing; if they leave the plane, the
# path through μ is.
#
# The picture also answers guess 1: ten times the token is the same point of the circle, so y and dx̂ stay the same, and
# only 1/σ changes. dx is a tenth, so large rows get small gradients.
#
# ## Which path is missing?
#
# So you can test a backward pass without knowing the right answer, by the cosines of dx with the ones and with x̂. Here
# are the largest cosines of four wrong versions on 24 random tokens, with ε = 0.


# %%
def cosine(one, other):
    return np.abs((one * other).sum(-1)) / np.linalg.norm(one, axis=-1) / np.linalg.norm(other, axis=-1)


many, gamma_many, dy_many = rng.standard_normal((24, 7)), rng.standard_normal(7), rng.standard_normal((24, 7))
hat, _, size = normalize(many, eps=0)
dhat = gamma_many * dy_many
backward = {
    "right": (dhat - mean(dhat) - hat * mean(dhat * hat)) / size,
    "μ forgotten": (dhat - hat * mean(dhat * hat)) / size,
    "σ forgotten": (dhat - mean(dhat)) / size,
    "both forgotten": dhat / size,
    "γ outside the means": gamma_many * (dy_many - mean(dy_many) - hat * mean(dy_many * hat)) / size,
}
signature = {name: (cosine(result, np.ones(7)).max(), cosine(result, hat).max()) for name, result in backward.items()}
print(" " * 20, "cosine with 1   cosine with x̂")
for name, (with_ones, with_hat) in signature.items():
    print(f"{name:20} {with_ones:13.0e} {with_hat:15.0e}")
lesson.check("right: both cosines are 0", max(signature["right"]), 1e-13)

# %% [markdown]
# Each path makes one of the two cosines 0. If only the first isn't 0, look at the path through μ; if only the second
# isn't, look at the path through σ. If neither is 0, both paths are missing, or γ is outside the means: γ ∘ (dy −
# mean(dy) − ...). That mistake makes no difference in a new layer, where every γ is 1.
#
# ## Nearly right, if the model is wide
#
# A backward pass that forgets both μ and σ sounds hopeless, so we measure how long its error is.

# %%
off = {}
for width in (4, 16, 64, 512):
    hat, _, size = normalize(rng.standard_normal((2000, width)))
    dhat = rng.standard_normal((2000, width))
    true = (dhat - mean(dhat) - hat * mean(dhat * hat)) / size
    off[width] = np.median(np.linalg.norm(dhat / size - true, axis=-1) / np.linalg.norm(true, axis=-1))
    print(f"C = {width:3d}: off by {off[width]:.0%}")
lesson.compare("per cent off at C = 512", guess_off, 100 * off[512])

# %% [markdown]
# At C = 4 it is off by 100 %, but at C = 512 only by 5 %. The error lies in the two directions that LayerNorm removes,
# and the right dx lies in the other C − 2. A random dx̂ has about the same amount in each direction, so the ratio of
# the lengths is about √2/√(C − 2): 1 at C = 4, and 0.06 at C = 512.
#
# So in a wide model the wrong backward pass is nearly right. It may well train, and a test that allows 10 % lets it
# pass, but the two cosines catch it at any width.
#
# **In papers:** γ and β are the *gain* and the *bias* (Ba et al. 2016), and the fact that shifting or stretching x
# changes nothing is *re-centering* and *re-scaling invariance* (Zhang and Sennrich 2019).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 11. How to check your own gradients of a norm, and of all other pieces,
# against PyTorch's is in docs/pytorch.md.
#
# ### With ε, exactly
#
# The deviations sum to 0, and the mean of their squares is σ² − ε. So
#
#     1·x̂ = 0           x̂·x̂ = C (σ² − ε)/σ² = C (1 − ε/σ²)
#
# Here 1 is the vector of ones. Put both into dx:
#
#     1·dx = (1/σ) ( 1·dx̂ − C mean(dx̂) − (1·x̂) mean(dx̂ ∘ x̂) ) = 0
#     x̂·dx = (1/σ) ( x̂·dx̂ − 0 − (x̂·x̂)(x̂·dx̂)/C ) = (ε/σ³) (x̂·dx̂)
#
# Along 1, nothing passes at all. Along x̂ a little passes: ε/σ² of what passes in other directions, or 1e-5 for σ = 1.
#
# So "variance 1" holds only if the variance of x is far above ε. A token whose features are ±0.001 comes out with a
# variance of 0.091. A token whose features are all equal has x̂ = 0 and σ = √ε, and its gradient is multiplied by
# 1/√ε = 316.
#
# ### A matrix before a LayerNorm
#
# Let x come out of a linear layer with the matrix W and no bias, x = input W. Then dW = inputᵀ dx (lesson 02). With
# ε = 0,
#
#     Σ_ij W_ij dW_ij = Σ_ij W_ij Σ_n input_ni dx_nj
#                     = Σ_n x_n·dx_n = Σ_n (σ_n x̂_n + μ_n 1)·dx_n = 0
#
# The gradient is orthogonal to the matrix, so a plain gradient step always makes W longer, by Pythagoras. And a longer
# W makes a larger x with a smaller gradient, so each step rotates W by less: the learning rate shrinks on its own.

# %% [markdown]
# ### C − 1, and ε outside the root
#
# LayerNorm divides the sum of squares by C. Some code divides by C − 1, which multiplies x̂ by √((C − 1)/C), so x̂
# becomes smaller: by 13 % at C = 4, 0.1 % at C = 512. The model can undo this with γ, but then the third term of dx
# needs C − 1 too. If you mix the two, dx is no longer orthogonal to x̂.
#
# Some code puts ε outside the root, σ = √(variance) + ε. On ordinary tokens this changes next to nothing. But in the
# backward pass, the path through σ now divides only by the root, and dx of a token with equal features is 0/0 = NaN.
#
# ### RMSNorm: one path less
#
# RMSNorm (Zhang and Sennrich 2019) doesn't subtract the mean, and has no β. T5 and LLaMA use it.
#
#     rms = √(mean(x ∘ x) + ε)           x̂ = x / rms           y = γ ∘ x̂
#     dx  = (1/rms) ( dx̂ − x̂ mean(dx̂ ∘ x̂) )
#
# There is no μ, so the second path is gone, and with it the second term. LayerNorm is RMSNorm of x − mean(x), plus β.

# %%
rms = np.sqrt(mean(many**2) + 1e-5)
x_rms, dhat = many / rms, gamma_many * dy_many
layer = RMSNorm(7, dtype="float64")
layer.gamma.data[...] = gamma_many
library, cache = layer.forward(many)
dx_rms = (dhat - x_rms * mean(dhat * x_rms)) / rms
lesson.check("RMSNorm: y equal to the library's", error(gamma_many * x_rms, library), 1e-13)
lesson.check("RMSNorm: dx equal to the library's", error(dx_rms, layer.backward(dy_many, cache)), 1e-13)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. Work out x̂ and dx for C = 2 and ε = 0. What is left of the input?
# 2. Keyboard, 20 minutes. Write a layer `MyNorm` with C − 1 in the variance, forward and backward, with γ and β as
#    parameters (`minitransformer/core.py` shows what a layer is). It is right if `minitransformer gradcheck
#    my.py:MyNorm --shape 2 3 4` says so. Then change C − 1 to C in the backward pass only. Which gradients are wrong?
#
# Exercises with a checker: `minitransformer start 10`.
#
# ## Questions
#
# 1. Why isn't a gradient check at γ = 1 enough?
# 2. Why do dγ and dβ sum over the tokens, when the means in dx run over the features?
# 3. A token has σ = 0.01, and ε = 1e-5. How much of dx̂ along x̂ gets through, compared with other directions?
# 4. Your dx sums to 1e-17 for each token, and its cosine with x̂ is 0.4. Where do you look?
# 5. *Somewhere else.* BatchNorm normalizes each feature over the N examples of a batch, while LayerNorm normalizes each
#    example over its features. Which means in dx change? To which two vectors is a feature's gradient orthogonal, and
#    on whose numbers does the gradient of one example depend?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Only dW = xᵀ dy, which doubles. The sum of the rows of dy is db, and dy Wᵀ is dx, and neither contains x.
# 2. A product q·k of D random features has variance D, so its size, the standard deviation, grows like √D. Divided
#    by D, the scores of wide heads would all be near 0.
# 3. Add the same number to all of them. No weight changes, so the loss doesn't, and the gradient has nothing along the
#    vector of ones.
#
# ### Questions
#
# 1. With γ = 1, taking γ out of the means changes nothing, and forgetting it changes nothing either.
# 2. A sum belongs where one number is used many times. All tokens use γ_i. All features of a token use its μ and σ.
# 3. ε/σ² = 1e-5/1e-4, a tenth.
# 4. In the path through σ. It may be missing, or divide by C where the forward pass divides by C − 1.
# 5. The formula stays, and its means run over the examples. The N gradients of a feature are orthogonal to the vector
#    of ones and to the feature's x̂, both over the batch. So the gradient of an example depends on all the others, and
#    so does its y: it changes with the company it happens to be in.
#
# ### Exercise
#
# With C = 2 the deviations are d and −d, and σ is the size of d, so x̂ is (1, −1) or (−1, 1). Only the sign of
# x_0 − x_1 is left. The two directions that LayerNorm removes are the only ones, so dx = 0. In `MyNorm` with C in the
# backward pass only, dx is wrong, and dγ and dβ are right.


# %%
# the pictures of this lesson
def column(values):
    return matrix_text(values[1][:, None], 3)


graph = Graph()
for name, place in {"add": (-1.15, 0), "x": (0, 0), "μ": (1.75, 1.3), "σ": (1.75, -1.3), "y": (6, 0)}.items():
    graph.node(name, place)
graph.node("x̂", (3.9, 0), "x̂ = (x − μ) / σ", lit=True)
graph.edge("add", "x", column(x), column(dx), label="x")
graph.edge("x", "x̂", "x", column(paths["directly"]))
graph.edge("x", "μ", "x", column(paths["through μ"]), flip=True)
graph.edge("x", "σ", "x", column(paths["through σ"]))
graph.edge("μ", "x̂", number(mu[1, 0], 3), number(dmu[1, 0], 3))
graph.edge("σ", "x̂", number(sigma[1, 0], 3), number(dsigma[1, 0], 3), flip=True)
graph.edge("x̂", "y", column(x_hat), column(dx_hat), label="x̂")
lesson.save(graph.draw(), "graph")

# %%
# three directions at right angles: out of the plane, and two in it
out, right, back = np.array([1, 1, 1]) / 3**0.5, np.array([1, 0, -1]) / 2**0.5, np.array([-1, 2, -1]) / 6**0.5
turns = np.linspace(0, 2 * np.pi, 97)
circle = 3**0.5 * (np.outer(np.cos(turns), right) + np.outer(np.sin(turns), back))


def from_side(point):
    return point @ right, 0.9 * point @ out + 0.4 * point @ back


def from_above(point):
    return point @ right, point @ back


tokens = np.array([[3, 1, -1], [-2.6, -0.4, 0.6], [0.1, 0.9, 0.5]])
hats, means, _ = normalize(tokens, eps=0)
level = np.tile([2 / 3, -1 / 3, -1 / 3], (12, 1))  # dx̂ − mean(dx̂)
points = circle[:-1:8]
tangent = level - points * mean(level * points)
figure, (side, above) = plt.subplots(1, 2, figsize=(7.8, 3.6), width_ratios=(1.25, 1))
to_scale = {"angles": "xy", "scale_units": "xy", "scale": 1}
side.plot(*from_side(circle), color=BLUE)
side.plot(*from_side(np.outer([-2, 2.2], out)), ":", color=GREY, linewidth=1)
side.plot(*from_side(tokens), "o", color=BLUE, markersize=5)
side.quiver(*from_side(tokens), *from_side(-means * np.ones(3)), color=GREY, **to_scale)
side.quiver(*from_side(tokens - means), *from_side(hats - tokens + means), color=BLUE, **to_scale)
for place, words in {
    (0.15, 1.8): "(1, 1, 1)",
    (2.4, 1.95): "x = (3, 1, −1)",
    (2.95, 0.8): "− μ",
    (2.1, -0.4): "÷ σ",
}.items():
    side.text(*place, words)
above.plot(*from_above(circle), color=BLUE)
above.quiver(*from_above(points), *from_above(level), color=GREY, **to_scale)
above.quiver(*from_above(points), *from_above(tangent), color=ORANGE, **to_scale)
above.text(0, 0.15, "dx̂ − mean(dx̂)", color=GREY, ha="center")
above.text(0, -0.3, "σ dx", color=ORANGE, ha="center")
above.set(xlim=(-2, 2.6), ylim=(-2.4, 2))
for axes, title in ((side, "forward: onto the plane, onto the circle"), (above, "backward: the circle from above")):
    axes.set(xticks=[], yticks=[], aspect="equal", anchor="N")
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
lesson.save(figure)
lesson.finish(globals())
