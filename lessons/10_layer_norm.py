# %% [markdown]
# # Lesson 10: LayerNorm's three paths
#
# * Question: what is the gradient of a layer that divides a token by its own spread?
# * You derive: dx by three paths, then fused; its exact geometry with eps; what each forgotten path breaks; RMSNorm
# * Reading: 23 min, going deeper 0 min
# * Run: 2 s (fast: 2 s)
# * Needs: 01, 02
# * Difficulty: 3 of 5
# * Paper: section 3.1 (the Norm in "Add & Norm"); Ba, Kiros and Hinton 2016

# %%
from lab import BLUE, GREEN, GREY, ORANGE, begin, error, plt

import numpy as np

from minitransformer.layers import LayerNorm, RMSNorm

lesson = begin("10_layer_norm")
rng = np.random.default_rng(10)

# %% [markdown]
# Numbers grow or shrink on their way through a deep model, and a step of learning that suits one size is wrong for
# another. LayerNorm gives every token the same size: it takes the C features x_1 ... x_C of ONE token, subtracts their
# mean, divides by their spread, and lets the model choose a scale γ_i and a shift β_i for each feature:
#
#     m  = (1/C) Σ_i x_i                  the mean
#     c_i = x_i − m                       centred
#     v  = (1/C) Σ_i c_i²                 the variance: divided by C, not C − 1 ("biased")
#     σ  = √(v + eps)                     eps = 1e-5, a small constant INSIDE the root: no division by 0
#     x̂_i = c_i / σ                       normalised
#     y_i = γ_i x̂_i + β_i                 γ starts at 1 and β at 0; all tokens share them
#
# All sums run over the features of one token; no token sees another. (σ is the standard deviation but for eps.)
#
# ## Predict
#
# 1. A token is [1, 0, 0, 0], and γ = 1, β = 0. What is y_1? And with C − 1 in the variance? (Small numbers)
# 2. All features of a token are multiplied by 100. What happens to y, and what to dx, the derivative of the loss by x?
#    (Part 5)
# 3. Somebody forgets that m and σ depend on x, and returns dx_i = γ_i dy_i / σ. How far off is that, for C = 4 and for
#    C = 512? (The surprise)

# %% [markdown]
# ## Small numbers
#
# [1, 0, 0, 0]: the mean is 1/4, so c = [0.75, −0.25, −0.25, −0.25]. The squares are 0.5625 and three times 0.0625,
# together 0.75, so v = 0.75/4 = 0.1875 and σ = 0.433. The first entry is 0.75/0.433 = 1.732, which is √3. With
# C − 1 = 3 the variance would be 0.25, σ = 0.5, and the first entry 1.500.
#
# Now move x_1 a little, from 1 to 1 + h. With three equal numbers and one larger one, the result is ALWAYS
# [1.732, −0.577, −0.577, −0.577], but for eps: every such token is the same after centring and scaling. So the
# derivative must be nearly 0, although the direct path, 1/σ, is 2.31. What cancels it are the mean and the spread.


# %%
def normalise(x, eps=1e-5):
    """x (..., C) -> x̂ (..., C) and σ (..., 1)."""
    c = x - x.mean(axis=-1, keepdims=True)
    v = (c * c).mean(axis=-1, keepdims=True)
    sigma = np.sqrt(v + eps)
    return c / sigma, sigma


token = np.array([1.0, 0, 0, 0])
c = token - token.mean()
x_hat, sigma = normalise(token)
unbiased = c / np.sqrt((c * c).sum() / 3 + 1e-5)
h = 1e-6
slope = (normalise(token + h * np.eye(4)[0])[0] - x_hat)[0] / h
print(f"  divided by C:      {np.round(x_hat, 3)}    sigma {sigma[0]:.3f}")
print(f"  divided by C - 1:  {np.round(unbiased, 3)}")
print(f"  1/sigma = {1 / sigma[0]:.3f}, but x̂_1 moves by {slope:.6f} per unit of x_1")
lesson.quote("0.75/0.433 = 1.732", 0.75, sigma[0], x_hat[0])
lesson.quote("the first entry 1.500", unbiased[0])
lesson.quote("[1.732, −0.577, −0.577, −0.577]", *x_hat)
lesson.quote("the direct path, 1/σ, is 2.31", 1, 1 / sigma[0])

# %% [markdown]
# ## The derivation
#
# ### Part 1: three paths from x_j to the loss
#
# d + a name is the derivative of the loss by it (lesson 01), and dy_i is given. From y_i = γ_i x̂_i + β_i the
# derivative by x̂_i is
#
#     g_i = dy_i γ_i
#
# x_j reaches the loss in three ways. By the chain rule each contributes a product of derivatives, and dx_j is the sum.
#
#     (a) directly:             x_j → c_j → x̂_j
#     (b) through the mean:     x_j → m → every c_i → every x̂_i
#     (c) through the spread:   x_j → c_j → v → σ → every x̂_i
#
# Path (a). With m and σ fixed, ∂c_j/∂x_j = 1 and ∂x̂_j/∂c_j = 1/σ. It contributes
#
#     g_j · 1/σ
#
# Path (b). With σ fixed, c_i = x_i − m gives ∂x̂_i/∂m = −1/σ for every i, so the derivative of the loss by m is
# dm = Σ_i g_i (−1/σ). And ∂m/∂x_j = 1/C. Write mean(g) = (1/C) Σ_i g_i. It contributes
#
#     Σ_i g_i (−1/σ) · 1/C = −(1/σ) mean(g)

# %% [markdown]
# Does m also act through v? ∂v/∂m = (1/C) Σ_i 2 c_i · (−1) = −(2/C) Σ_i c_i = 0, as centred numbers sum to 0. The
# fourth path, x → m → v → σ, exists and carries exactly nothing.
#
# Path (c), step by step from the end:
#
#     ∂x̂_i/∂σ = −c_i/σ² = −x̂_i/σ              so   dσ = Σ_i g_i (−x̂_i/σ) = −(1/σ) Σ_i g_i x̂_i
#     ∂σ/∂v   = 1/(2√(v + eps)) = 1/(2σ)
#     ∂v/∂c_j = 2 c_j / C                       with m fixed
#     ∂c_j/∂x_j = 1
#
# The last three multiply to ∂σ/∂x_j = 1/(2σ) · 2 c_j/C = c_j/(σC) = x̂_j/C. With mean(g x̂) = (1/C) Σ_i g_i x̂_i, path
# (c) contributes
#
#     dσ · x̂_j/C = −(1/σ) x̂_j mean(g x̂)
#
# The three together:
#
#     dx_j = (1/σ) ( g_j − mean(g) − x̂_j mean(g x̂) )            dx = (1/σ) ( g − mean(g) − x̂ mean(g x̂) )
#
# Note where γ stands: inside g, so inside both means. To take it out, γ (dy − mean(dy) − ...), is right only if all γ
# are equal, as they are at the start of training.

# %% [markdown]
# ### Part 2: γ and β
#
# Every token t of every sequence b uses the same γ_i, in y_bti = γ_i x̂_bti + β_i. Gradients of several uses add:
#
#     dγ_i = Σ_b Σ_t dy_bti x̂_bti             dβ_i = Σ_b Σ_t dy_bti
#
# The sums run over ALL leading axes, the means of Part 1 over the last axis only. One sees it by the shapes: γ is (C,).
#
# ### Part 3: what it means
#
# Let 1 be the vector of C ones, and a·b the dot product. mean(g) = (1·g)/C and mean(g x̂) = (x̂·g)/C. Thus dx = J g with
#
#     J = (1/σ) ( I − 1 1ᵀ/C − x̂ x̂ᵀ/C )                    J is symmetric, so the Jacobian ∂x̂/∂x is J, too
#
# The part of g along a vector u is u (u·g)/(u·u). For the vector 1 it is 1 (1·g)/C, as 1·1 = C: the second term of J
# removes exactly that part of g. If x̂·x̂ were C as well, the third would remove exactly the part along x̂. The reason is
# plain: adding a constant to x, or stretching c, changes nothing in x̂ (but for eps), so x must not be told to move in
# those two directions.

# %% [markdown]
# ### Part 4: the same with eps, exactly
#
# Two facts: 1·x̂ = 0, as Σ c_i = 0. And x̂·x̂ = Σ c_i²/σ² = C v/σ², which is C only if eps = 0. With v = σ² − eps:
#
#     x̂·x̂ / C = v/σ² = 1 − eps/σ²
#
# The first gives what dx does along 1, the two together what it does along x̂:
#
#     1·dx = (1/σ) ( 1·g − C mean(g) − (1·x̂) mean(g x̂) ) = (1/σ) ( 1·g − 1·g − 0 ) = 0
#     x̂·dx = (1/σ) ( x̂·g − (x̂·1) mean(g) − (x̂·x̂) (x̂·g)/C ) = (1/σ) (x̂·g) ( 1 − (1 − eps/σ²) ) = (eps/σ³) (x̂·g)
#
# So dx is orthogonal to 1 exactly, whatever eps is, and to x̂ up to the factor eps/σ³. Put 1, x̂ or a u orthogonal to
# both in the place of g, and the same facts give all eigenvalues of J: J 1 = 0, J x̂ = (eps/σ³) x̂ and J u = u/σ.
# Where σ is 1, gradients along x̂ are damped to 1e-5 of the others. Where the spread is tiny, v far below eps, σ²
# is nearly eps, eps/σ³ is nearly 1/σ, and nothing is removed along x̂: such a token is hardly normalised, only centred
# and multiplied by 1/√eps = 316.

# %% [markdown]
# ### Part 5: another scale
#
# Replace x by αx with a number α > 0. Then m, c and √v are multiplied by α. If eps is multiplied by α², so is v + eps:
# σ becomes ασ, and x̂ stays. Write LN(x; eps). Then, exactly,
#
#     LN(αx; α² eps) = LN(x; eps)                    and for eps = 0:  LN(αx) = LN(x)
#
# The output stays, so g stays; in dx = (1/σ)(...) the bracket stays and 1/σ becomes 1/(ασ). So
#
#     dx at αx  =  (1/α) dx at x
#
# Larger inputs get smaller gradients, in inverse proportion. That answers guess 2: y stays (but for eps), dx is divided
# by 100. Now let x = h W come from a linear layer (lesson 02), so that dW = hᵀ dx, and let eps = 0. If W grows by α,
# the loss stays and dW is divided by α. And W gets no push along itself: with n for the tokens,
#
#     Σ_ij W_ij dW_ij = Σ_ij W_ij Σ_n h_ni dx_nj = Σ_n Σ_j x_nj dx_nj,      and x·dx = (σ x̂ + m 1)·dx = 0 by Part 4

# %% [markdown]
# ## From scratch
#
# First every small step, one line for each line of the forward, read upwards. Then the fused form.


# %%
def forward(x, gamma, beta, eps=1e-5):
    """x (..., C), gamma and beta (C,) -> y (..., C), and what backward needs."""
    x_hat, sigma = normalise(x, eps)
    return gamma * x_hat + beta, (x_hat, sigma, gamma)


def backward_in_steps(dy, cache):
    """dx by the three paths, each on its own -> (a), (b), (c), all (..., C)."""
    x_hat, sigma, gamma = cache
    C = dy.shape[-1]
    g = dy * gamma
    direct = g / sigma
    dm = (-g / sigma).sum(axis=-1, keepdims=True)  # (..., 1): one mean for each token
    through_mean = dm * np.ones(C) / C
    dsigma = (-g * x_hat / sigma).sum(axis=-1, keepdims=True)
    dv = dsigma / (2 * sigma)
    through_spread = dv * 2 * (x_hat * sigma) / C  # x̂ σ is c
    return direct, through_mean, through_spread


def backward(dy, cache):
    """dy (..., C) -> dx (..., C), dgamma (C,), dbeta (C,)."""
    x_hat, sigma, gamma = cache
    leading = tuple(range(dy.ndim - 1))
    g = dy * gamma
    dx = (g - g.mean(axis=-1, keepdims=True) - x_hat * (g * x_hat).mean(axis=-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum(axis=leading), dy.sum(axis=leading)


# %% [markdown]
# ## Checked
#
# B = 2, T = 3, C = 5, random x, γ, β and dy, and eps = 0.1, so large that a mistake with it would show. The complex
# step of lesson 01: f'(x) = Im f(x + ih) / h with h = 1e-30.

# %%
B, T, C, eps = 2, 3, 5, 0.1
x, dy = rng.standard_normal((2, B, T, C))
gamma, beta = rng.standard_normal((2, C))


def complex_step(loss, z, h=1e-30):
    derivative = np.zeros(z.shape)
    for index in np.ndindex(z.shape):
        moved = z.astype(complex)
        moved[index] += 1j * h
        derivative[index] = loss(moved).imag / h
    return derivative


y, cache = forward(x, gamma, beta, eps)
x_hat, sigma, _ = cache
dx, dgamma, dbeta = backward(dy, cache)
lesson.check("(a) + (b) + (c) = the fused dx", error(sum(backward_in_steps(dy, cache)), dx), 1e-13)
lesson.check("dx", error(dx, complex_step(lambda z: (dy * forward(z, gamma, beta, eps)[0]).sum(), x)), 1e-13)
lesson.check("dγ", error(dgamma, complex_step(lambda z: (dy * forward(x, z, beta, eps)[0]).sum(), gamma)), 1e-13)
lesson.check("dβ", error(dbeta, complex_step(lambda z: (dy * forward(x, gamma, z, eps)[0]).sum(), beta)), 1e-13)

layer = LayerNorm(C, eps=eps, dtype="float64")
layer.gamma.data[...], layer.beta.data[...] = gamma, beta
y_library, cache_library = layer.forward(x)
lesson.check("dx equals the library's", error(dx, layer.backward(dy, cache_library)), 1e-12)
lesson.check("y equals the library's", error(y, y_library), 1e-12)
worst = max(error(dgamma, layer.gamma.grad), error(dbeta, layer.beta.grad))
lesson.check("dγ and dβ equal the library's", worst, 1e-12)

# %% [markdown]
# The geometry of Part 4, exactly, and the scale of Part 5 with α = 100. The eigenvalues of J belong to the first token.

# %%
g = dy * gamma
along_one, along_x_hat = dx.sum(axis=-1), (dx * x_hat).sum(axis=-1)
lesson.check("1·dx = 0", np.abs(along_one).max() / np.abs(dx).max(), 1e-14)
predicted = eps / sigma[..., 0] ** 3 * (g * x_hat).sum(axis=-1)
lesson.check("x̂·dx = (eps/σ³) (x̂·g)", error(along_x_hat, predicted), 1e-13)
lesson.check("x̂·x̂ / C = 1 − eps/σ²", error((x_hat**2).mean(axis=-1), 1 - eps / sigma[..., 0] ** 2), 1e-14)

u, s = x_hat[0, 0], sigma[0, 0, 0]
J = (np.eye(C) - np.ones((C, C)) / C - np.outer(u, u) / C) / s
found = np.linalg.eigvalsh(J)  # in rising order
expected = [0, eps / s**3, 1 / s, 1 / s, 1 / s]
print("  eigenvalues of J:  ", np.round(np.abs(found), 4), " expected:", np.round(expected, 4))
lesson.check("eigenvalues of J: 0, eps/σ³, and 1/σ three times", error(found, expected), 1e-13)

y_far, cache_far = forward(100 * x, gamma, beta, 100**2 * eps)
dx_far, dgamma_far, _ = backward(dy, cache_far)
lesson.check("LN(αx; α² eps) = LN(x; eps)", error(y_far, y), 1e-13)
lesson.check("dx at αx = dx at x / α", error(100 * dx_far, dx), 1e-13)
lesson.check("dγ does not depend on the scale", error(dgamma_far, dgamma), 1e-13)

hidden, W = rng.standard_normal((7, 4)), rng.standard_normal((4, C))
d_hidden_W = backward(rng.standard_normal((7, C)), forward(hidden @ W, gamma, beta, 0.0)[1])[0]
dW = hidden.T @ d_hidden_W
lesson.check("eps = 0: no push along W, Σ W dW = 0", np.abs((W * dW).sum()) / np.abs(W * dW).sum(), 1e-13)

tiny = 1e-3 * np.array([1.0, -1.0] * 8)
variance = (normalise(tiny)[0] ** 2).mean()
lesson.quote("a token of ±0.001 comes out with the variance 0.091", 0.001, variance)
lesson.claim(
    "LayerNorm's output has mean 0 and variance 1",
    "half right",
    "before γ and β the mean is 0 and the variance v/(v + eps): 1 for a token of order one, but "
    f"{variance:.3f} for a token of ±0.001 with eps = 1e-5",
)

# %% [markdown]
# So "variance 1" holds where v is far above eps; a token of ±0.001 comes out with the variance 0.091, 1/11.

# %% [markdown]
# ## What each forgotten path does
#
# Six backwards, with eps = 0, so that both orthogonalities are sharp. Beside the error of dx stand the cosines of the
# angles between dx and 1, and between dx and x̂: 0 means orthogonal. The largest of 24 tokens is shown.


# %%
def cosine(a, b):
    return np.abs((a * b).sum(axis=-1)) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


def mean(a):
    return a.mean(axis=-1, keepdims=True)


C = 7
x, dy = rng.standard_normal((2, 4, 6, C))
gamma = rng.standard_normal(C)
x_hat, sigma = normalise(x, eps=0.0)
g = dy * gamma
x_hat_1, sigma_1 = x_hat * np.sqrt((C - 1) / C), sigma * np.sqrt(C / (C - 1))  # with C − 1 in the variance
mean_path, spread_path = mean(g), x_hat * mean(g * x_hat)
truth, _, _ = backward(dy, (x_hat, sigma, gamma))
dx_unbiased = (g - mean_path - x_hat_1 * (g * x_hat_1).sum(axis=-1, keepdims=True) / (C - 1)) / sigma_1
wrong = {
    "right": ((g - mean_path - spread_path) / sigma, truth),
    "mean path forgotten": ((g - spread_path) / sigma, truth),
    "spread path forgotten": ((g - mean_path) / sigma, truth),
    "both forgotten": (g / sigma, truth),
    "γ outside the means": (gamma * (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma, truth),
    "C − 1 forward, C backward": ((g - mean_path - x_hat_1 * mean(g * x_hat_1)) / sigma_1, dx_unbiased),
}
signature = {}
print(f"  {'':27} error of dx    cos(dx, 1)    cos(dx, x̂)")
for name, (got, truth) in wrong.items():
    signature[name] = cosine(got, np.ones(C)).max(), cosine(got, x_hat).max()
    print(f"  {name:27}   {error(got, truth):7.0e}       {signature[name][0]:7.0e}       {signature[name][1]:7.0e}")


def unbiased_forward(z):
    c = z - mean(z)
    return gamma * c / np.sqrt((c * c).sum(axis=-1, keepdims=True) / (C - 1))


numeric = complex_step(lambda z: (dy * unbiased_forward(z)).sum(), x)
lesson.check("C − 1 forward and backward: dx", error(dx_unbiased, numeric), 1e-12)
lesson.check("right: both cosines", max(signature["right"]), 1e-13)
lesson.check("mean path forgotten: still orthogonal to x̂", signature["mean path forgotten"][1], 1e-13)
lesson.check("mean path forgotten: cosine with 1", signature["mean path forgotten"][0], at_least=0.1)
lesson.check("spread path forgotten: still orthogonal to 1", signature["spread path forgotten"][0], 1e-13)
lesson.check("spread path forgotten: cosine with x̂", signature["spread path forgotten"][1], at_least=0.1)
lesson.check("both forgotten: the smaller cosine", min(signature["both forgotten"]), at_least=0.1)
lesson.check("γ outside: the smaller cosine", min(signature["γ outside the means"]), at_least=0.1)
lesson.check("C − 1 and C mixed: still orthogonal to 1", signature["C − 1 forward, C backward"][0], 1e-13)
lesson.check("C − 1 and C mixed: cosine with x̂", signature["C − 1 forward, C backward"][1], at_least=0.01)
all_one = error(1.0 * (dy - mean(dy) - x_hat * mean(dy * x_hat)) / sigma, backward(dy, (x_hat, sigma, np.ones(C)))[0])
lesson.check("γ outside, but γ = 1: no error at all", all_one, 1e-14)

# %% [markdown]
# Each path guards one orthogonality, and without looking at the right formula you can tell which is missing:
#
#     dx orthogonal to x̂, but not to 1   →   the mean path is missing
#     dx orthogonal to 1, but not to x̂   →   the spread path is missing (or C and C − 1 are mixed)
#     dx orthogonal to neither           →   both are missing, or γ was taken outside
#
# And see the last check: with γ = 1 nothing is wrong at all. A gradient check of a fresh LayerNorm passes, and the
# error comes as γ moves away from 1. Check with random γ.
#
# ## C − 1, and eps outside
#
# Dividing the variance by C − 1 multiplies x̂ by √((C − 1)/C) and, but for eps, does nothing else, so γ can undo it:
# 13 % at C = 4, 0.1 % at C = 512. In path (c), ∂v/∂c_j = 2c_j/(C − 1), so the third term of dx becomes
# x̂_j Σ_i g_i x̂_i / (C − 1). Done in both passes it is consistent, and dx is right; but weights trained with the one
# are off with the other.
#
# With eps outside, σ = √v + eps. On ordinary tokens that changes next to nothing. But path (c) now has
#
#     ∂σ/∂x_j = ∂σ/∂v · ∂v/∂c_j = 1/(2√v) · 2c_j/C = c_j/(C√v)             with no eps in it
#
# and for a token with all features equal, v = 0, the backward divides 0 by 0. Inside the root, σ = √eps there and all
# is finite.


# %%
def eps_outside(x, g, eps=1e-5):
    """x̂ and dx for σ = √v + eps: path (c) has ∂σ/∂x_j = c_j/(C√v)."""
    c = x - mean(x)
    root = np.sqrt(mean(c * c))
    x_hat = c / (root + eps)
    return x_hat, (g - mean(g) - c / root * mean(g * x_hat)) / (root + eps)


sample, upstream = rng.standard_normal((2, 8))
x_hat_out, dx_out = eps_outside(sample, upstream)
numeric = complex_step(lambda z: (upstream * eps_outside(z, upstream)[0]).sum(), sample)
lesson.check("eps outside: dx against the complex step", error(dx_out, numeric), 1e-13)
flat = np.full(8, 3.0)
dx_flat = backward(upstream, forward(flat, 1.0, 0.0)[1])[0]
with np.errstate(invalid="ignore"):
    dx_flat_out = eps_outside(flat, upstream)[1]
print(f"  a token of equal features: largest |dx|, eps inside {np.abs(dx_flat).max():.0f}, outside {dx_flat_out[0]}")
by_hand = (upstream - upstream.mean()) / np.sqrt(1e-5)
lesson.check("eps inside, equal features: dx = (g − mean(g))/√eps", error(dx_flat, by_hand), 1e-12)
lesson.check("eps outside, equal features: entries of dx that are NaN", np.isnan(dx_flat_out).sum(), at_least=8)
factor = {width: 1 - np.sqrt((width - 1) / width) for width in (4, 512)}
lesson.quote("13 % at C = 4, 0.1 % at C = 512", 100 * factor[4], 4, 100 * factor[512], 512)
lesson.claim(
    "dividing the variance by N or by N − 1 makes no difference",
    "half right",
    f"[1, 0, 0, 0] becomes {normalise(token)[0][0]:.3f} or {unbiased[0]:.3f} in its first entry; a constant factor, "
    f"which γ can undo, of {100 * factor[4]:.0f} % at d_model = 4 and {100 * factor[512]:.1f} % at 512",
)

# %% [markdown]
# ## RMSNorm: one path less
#
# RMSNorm (Zhang and Sennrich 2019; T5, LLaMA) does not subtract the mean and has no β:
#
#     ρ = √(mean(x²) + eps)        x̂ = x/ρ        y = γ x̂
#
# There is no m, so no path (b). Path (c) as before with x in place of c: ∂ρ/∂x_j = (1/(2ρ)) (2x_j/C) = x̂_j/C. So
#
#     dx = (1/ρ) ( g − x̂ mean(g x̂) )              x̂·dx = (eps/ρ³) (x̂·g), and 1·dx is anything
#
# LayerNorm is RMSNorm behind the subtraction of the mean: LN(x) = RMS(x − mean(x)), but for β. And the backward of the
# subtraction is the subtraction: c = x − mean(x) is c = (I − 1 1ᵀ/C) x, a symmetric matrix. That is path (b), whole.


# %%
def rms_forward(x, gamma, eps=1e-5):
    rho = np.sqrt(mean(x * x) + eps)
    return gamma * x / rho, (x / rho, rho, gamma)


def rms_backward(dy, cache):
    x_hat, rho, gamma = cache
    g = dy * gamma
    dgamma = (dy * x_hat).sum(axis=tuple(range(dy.ndim - 1)))
    return (g - x_hat * mean(g * x_hat)) / rho, dgamma


y_rms, cache_rms = rms_forward(x, gamma, eps)
dx_rms, dgamma_rms = rms_backward(dy, cache_rms)
lesson.check("RMSNorm: dx", error(dx_rms, complex_step(lambda z: (dy * rms_forward(z, gamma, eps)[0]).sum(), x)), 1e-13)
rms = RMSNorm(C, eps=eps, dtype="float64")
rms.gamma.data[...] = gamma
y_library, cache_library = rms.forward(x)
worst = max(error(y_rms, y_library), error(dx_rms, rms.backward(dy, cache_library)))
lesson.check("RMSNorm: y, dx and dγ equal the library's", max(worst, error(dgamma_rms, rms.gamma.grad)), 1e-12)
dx_centred, _ = rms_backward(dy, rms_forward(x - mean(x), gamma, eps)[1])
dx_layer, _, _ = backward(dy, forward(x, gamma, 0.0, eps)[1])
dx_centred -= mean(dx_centred)
lesson.check("LayerNorm's dx = RMSNorm's at c, its mean subtracted", error(dx_centred, dx_layer), 1e-13)
rho = cache_rms[1][..., 0]
along = (dx_rms * cache_rms[0]).sum(axis=-1)
lesson.check("RMSNorm: x̂·dx = (eps/ρ³) (x̂·g)", error(along, eps / rho**3 * (g * cache_rms[0]).sum(axis=-1)), 1e-12)

# %% [markdown]
# ## The picture
#
# On the left the signatures of the table. On the right one token is multiplied by α, from 1e-8 to 1e4, with the same
# upstream gradient, and the length of dx is drawn.

# %%
figure, (left, right_panel) = plt.subplots(1, 2, figsize=(7.0, 3.5), width_ratios=(1.15, 1))
rows = np.arange(len(signature))[::-1]
for offset, index, color, label in ((0.18, 0, BLUE, "with 1"), (-0.18, 1, ORANGE, "with x̂")):
    values = [max(pair[index], 1e-17) for pair in signature.values()]
    left.barh(rows + offset, np.log10(values) + 17, 0.34, left=-17, color=color, label=label)
left.set_yticks(rows, [name.replace("C − 1 forward, ", "C − 1 forward,\n") for name in signature])
left.set_xticks([-16, -12, -8, -4, 0], ["1e−16", "1e−12", "1e−8", "1e−4", "1"])
left.set(xlabel="largest |cosine| of dx", ylabel="backward pass", xlim=(-17, 0.2), title="is dx orthogonal to 1 and x̂?")
left.legend(loc="upper right", fontsize=8)
scales = np.logspace(-8, 4, 61)
lengths = {"eps inside": [], "eps outside": [], "no eps: 1/α": []}
for a in scales:
    lengths["eps inside"].append(np.linalg.norm(backward(upstream, forward(a * sample, 1.0, 0.0)[1])[0]))
    lengths["eps outside"].append(np.linalg.norm(eps_outside(a * sample, upstream)[1]))
    lengths["no eps: 1/α"].append(np.linalg.norm(backward(upstream, forward(a * sample, 1.0, 0.0, 0.0)[1])[0]))
for (name, values), color, style in zip(lengths.items(), (BLUE, GREEN, GREY), ("-", "-", ":"), strict=True):
    right_panel.loglog(scales, values, style, color=color, label=name)
right_panel.set(xlabel="scale α of the token", ylabel="length of dx", title="how large is dx?")
right_panel.legend(fontsize=8)
figure.suptitle("Each path keeps dx orthogonal to one direction; larger tokens get smaller gradients", fontsize=10)
lesson.save(figure)
slope = np.polyfit(np.log(scales[scales >= 0.1]), np.log(np.array(lengths["eps inside"])[scales >= 0.1]), 1)[0]
lesson.check("for α ≥ 0.1 the length of dx falls as α to the power −1: distance", abs(slope + 1), 1e-3)

# %% [markdown]
# You should see: each path forgotten gives one long bar, in its own colour, and the short bars end at 1e-16, where
# rounding is. On the right a straight line falls over seven powers of ten: ten times the token, a tenth of the
# gradient. To the left, where the spread is below √eps = 0.003, eps inside the root stops the rise at 1/√eps times
# the length of g − mean(g); eps outside stops it only at 1/eps times that, three hundred times higher. If you see a
# long bar in the row "right", a mean of yours runs over the wrong axis; if the blue line rises on to the left, eps is
# not inside the root.
#
# ## The surprise
#
# We expected a LayerNorm backward that forgets BOTH the mean and the spread to be badly wrong. Is it? Take random x and
# random g with γ = 1, and measure the length of the error of g/σ by the length of the true dx, for 2,000 tokens.

# %%
print("     C    error, median    cosine with the true dx, mean")
off, local = {}, np.random.default_rng(100)
for width in (4, 16, 64, 512):
    x_hat, sigma = normalise(local.standard_normal((2000, width)))
    g = local.standard_normal((2000, width))
    truth, _, _ = backward(g, (x_hat, sigma, np.ones(width)))
    off[width] = np.median(np.linalg.norm(g / sigma - truth, axis=-1) / np.linalg.norm(truth, axis=-1))
    print(f"  {width:4}        {100 * off[width]:5.1f} %      {cosine(g, truth).mean():.4f}")
lesson.quote("At C = 4 it is off by 100 %, and at C = 512 by 5 %", 4, 100 * off[4], 512, 100 * off[512])

# %% [markdown]
# At C = 4 it is off by 100 %, and at C = 512 by 5 %: guess 3. J removes two directions out of C, and a random g has
# only about √(2/C) of its length in them. So in a wide model a wrong backward is nearly right for a random gradient. It
# may well train, and a test with a tolerance of 0.1 passes it. The two dot products of the table do not care: they are
# 0 or they are not, at any width. (A real g is not random; in training the error may be larger or smaller than this.)
#
# ## Exercise
#
# 1. Pencil, 10 minutes. Work out x̂ and J for C = 2 with eps = 0. What can a LayerNorm over two features tell its
#    successors about its input? And what do the eigenvalues of Part 4 say for C = 2 with eps?
# 2. Keyboard, 20 minutes. Write `MyNorm` with C − 1 in the variance, forward and backward, and γ and β as parameters.
#    It passes if `minitransformer gradcheck my.py:MyNorm --shape 2 3 4` does (`minitransformer/core.py` shows what a
#    layer and a parameter are). Then put C into the backward alone, and look at which tensors it calls wrong.
#
# Checked exercises on this lesson: `minitransformer start 10`.
#
# ## Questions
#
# 1. Why is a gradient check of LayerNorm worth little at γ = 1?
# 2. A token has v = 1, and eps = 1e-5. How much of g along x̂ arrives in dx, compared with other directions?
# 3. A linear layer feeds a LayerNorm (eps = 0). What does a plain gradient step do to the length of its W?
# 4. Why do dγ and dβ sum over all tokens, but the means in dx only over features?
# 5. BatchNorm takes mean and variance over the batch, for each feature. Which part of this derivation changes, and what
#    would that mean for a sentence in a batch with others?

# %% [markdown]
# ## In the wild
#
# * The Annotated Transformer has `(x - mean) / (std + eps)` with PyTorch's `std`: C − 1, and eps outside, 1e-6. Until
#   2020 a constant token got NaN in the backward; since then PyTorch sends 0 back through a `std` of 0, and what is
#   left is (g − mean(g)) / eps, a million times g − mean(g). Real tokens are not constant.
# * `nn.LayerNorm` is as here: C, inside, 1e-5. BERT takes 1e-12, Keras 1e-3 unless told otherwise. Weights move between
#   libraries only with their eps.
# * γ outside the two means stands in public repositories with a NumPy Transformer. It survives because tests check a
#   fresh layer.
# * What T5's code calls LayerNorm is RMSNorm: no mean is subtracted. LLaMA's RMSNorm computes the mean square in
#   float32 even where the rest is 16 bits, as a sum of squares is the first thing to overflow.

# %%
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. γ outside the means, or forgotten in g altogether, makes no difference there. Random γ shows it at once.
# 2. The factor is eps/σ³ against 1/σ, so eps/σ² = 1e-5/(1 + 1e-5): a hundred-thousandth.
# 3. dW is orthogonal to W (Part 5). With lr for the step size, by Pythagoras |W − lr dW|² = |W|² + lr² |dW|²: it always
#    gets longer, and as the gradient falls as 1/|W|, each further step turns W by less.
# 4. A sum belongs where one number was used many times: γ_i by all tokens, m and σ by all features of their own token.
# 5. Only the axis of the means: the formula is the same, with g and x̂ averaged over the batch. But then every sentence
#    would depend on its neighbours in the batch, on padding, and on the batch's size; and to decode one sentence alone
#    one would need stored means. LayerNorm was made to avoid that.
#
# The exercise: for C = 2, x̂ = [1, −1] or [−1, 1], and J = 0: only the sign of x_1 − x_2 is left, and no gradient
# passes. With eps, J has the eigenvalues 0 and eps/σ³. And `MyNorm` with C in the backward alone: only dx is wrong.
