# %% [markdown]
# # Lesson 11: Residuals, dropout, and the norm that moved
#
# * Question: the paper writes LayerNorm(x + Sublayer(x)), most code x + Sublayer(LayerNorm(x)). Who is right?
# * You derive: both backward passes; dropout's mean and variance; what a gradient meets on its way down 24 sub-layers
# * Reading: 27 min, going deeper 0 min
# * Run: 60 s (fast: 4 s)
# * Needs: 02, 06, 10
# * Difficulty: 3 of 5
# * Paper: sections 3.1 and 5.4

# %%
from lab import BLUE, GREY, ORANGE, SKY, YELLOW, begin, error, plt

import numpy as np

lesson = begin("11_residuals")

# %% [markdown]
# A Transformer is a pile of sub-layers: attention, feed-forward, attention, feed-forward, and so on. Each one adds
# what it has found to what was there already. That sum is the residual connection. Somewhere beside it stands a
# LayerNorm (lesson 10: subtract the mean of a token's features, divide by their standard deviation, scale by γ,
# shift by β). Two places are in use, and they are two different models:
#
#     post-norm, the paper:        y = LayerNorm(x + Dropout(Sublayer(x)))
#     pre-norm, most code since:   y = x + Dropout(Sublayer(LayerNorm(x)))      and one LayerNorm after the last layer
#
# No question about the Transformer is asked more often than why the code that one reads has the second line, when the
# paper has the first. Both are right. They differ in what happens to the gradient, and that can be measured.
#
# ## Predict
#
# Write your guesses down. The section "The surprise" answers all three.
#
# 1. A post-norm stack of 24 sub-layers, just initialised. How large is the gradient at its input, compared with the
#    gradient at its output: about equal, a hundredth, a millionth?
# 2. The task: say each token again. A model with no sub-layers at all can do it. Post-norm and pre-norm, each with
#    and without warm-up (a learning rate that rises from 0): which of the four learn it in 200 steps?
# 3. Of those that do not: is the gradient too small from the beginning, or does it become so?

# %% [markdown]
# ## Small numbers
#
# One token with C = 4 features, and a sub-layer that you can do in your head: f(v) moves each feature one place to
# the right. Its backward moves each gradient one place to the left. γ = 1, β = 0, no dropout, no eps.
#
#     x = [2, 0, −2, 0]        f(x) = [0, 2, 0, −2]
#     post-norm   s = x + f(x) = [2, 2, −2, −2], mean 0, standard deviation 2, so y = [1, 1, −1, −1]
#     pre-norm    x has standard deviation √2, so n = [√2, 0, −√2, 0] and y = x + f(n) = [2, √2, −2, −√2]
#
# Now let the loss ask for y₁ alone, dy = [1, 0, 0, 0], and go backwards. LayerNorm's backward (lesson 10) is
# `r (dy − mean(dy) − x̂ mean(dy x̂))`, with r = 1 / standard deviation and x̂ the normalised vector.
#
#     post-norm   ds = ½ ([1, 0, 0, 0] − ¼ − ¼ [1, 1, −1, −1]) = [¼, −¼, 0, 0]
#                 dx = ds + (ds moved left) = [¼, −¼, 0, 0] + [−¼, 0, 0, ¼] = [0, −¼, 0, ¼]
#     pre-norm    dn = (dy moved left) = [0, 0, 0, 1]
#                 dx = dy + (LayerNorm's backward of dn) = [1, 0, 0, 0] + [−0.177, −0.177, −0.177, 0.530]
#
# In pre-norm the 1 arrives whole, and something is added to it. In post-norm a quarter of it enters the sum, and
# here the sub-layer's own gradient cancels even that.


# %%
def layer_norm(x, gamma, beta, eps):  # lesson 10
    x_hat = x - x.mean(-1, keepdims=True)
    r = 1 / np.sqrt((x_hat**2).mean(-1, keepdims=True) + eps)
    x_hat = x_hat * r
    return gamma * x_hat + beta, (x_hat, r, gamma)


def layer_norm_backward(dy, cache):
    x_hat, r, gamma = cache
    d = gamma * dy  # dx̂
    dx = r * (d - d.mean(-1, keepdims=True) - x_hat * (d * x_hat).mean(-1, keepdims=True))
    axes = tuple(range(dy.ndim - 1))
    return dx, (dy * x_hat).sum(axes), dy.sum(axes)


x, dy = np.array([2.0, 0, -2, 0]), np.array([1.0, 0, 0, 0])
y_post, remember = layer_norm(x + np.roll(x, 1), 1, 0, eps=0)
ds = layer_norm_backward(dy, remember)[0]
dx_post = ds + np.roll(ds, -1)
n, remember = layer_norm(x, 1, 0, eps=0)
y_pre = x + np.roll(n, 1)
dx_pre = dy + layer_norm_backward(np.roll(dy, -1), remember)[0]
for name, array in {"post y": y_post, "post dx": dx_post, "pre y": y_pre, "pre dx": dx_pre}.items():
    print(f"{name:8}", np.round(array, 3))
lesson.check("post-norm by hand: dx", error(dx_post, np.array([0, -0.25, 0, 0.25])), 1e-15)
lesson.quote("[1, 0, 0, 0] + [−0.177, −0.177, −0.177, 0.530]", 1, 0, 0, 0, *(dx_pre - dy))

# %% [markdown]
# ## The derivation
# ### Part 1: two paths, two gradients
#
# Write f for the sub-layer and m for the dropout mask (part 2). Name every step of the forward pass; then read it
# upwards. Where a value is used twice, its gradient is the sum of both uses.
#
#     post-norm                              upwards
#     f = Sublayer(x)                        ds = LayerNorm's backward of dy           (dγ and dβ with it)
#     s = x + m f        x is used twice     df = m ds
#     y = LayerNorm(s)                       dx = ds + (Sublayer's backward of df)
#
#     pre-norm                               upwards
#     n = LayerNorm(x)   x is used twice     df = m dy
#     f = Sublayer(n)                        dn = Sublayer's backward of df
#     y = x + m f                            dx = dy + (LayerNorm's backward of dn)
#
# Look at the first term of each dx. It is the gradient that comes past the sub-layer: the identity path. In
# post-norm it is `ds`, which has gone through the LayerNorm. In pre-norm it is `dy` itself, untouched.
#
# For a whole pre-norm stack, put the lines for all N sub-layers below each other, with l = 0 ... N − 1 counting them:
#
#     x_N = x_0 + Σₗ mₗ fₗ          dx_0 = dx_N + Σₗ (LayerNorm's backward of dnₗ)
#
# The output is the input plus N findings, and the gradient at the input is the gradient at the output plus N
# corrections. No such sum exists for post-norm: there the whole sum so far is normalised again each time.

# %% [markdown]
# ### Part 2: dropout
#
# Section 5.4: dropout goes on the output of each sub-layer, before it is added to x and normalised, with P = 0.1. In
# training each number fᵢ is set to 0 with probability P, and the others are divided by 1 − P ("inverted" dropout):
#
#     yᵢ = mᵢ fᵢ         mᵢ = 0 with probability P, else 1 / (1 − P)
#     mean of mᵢ         P · 0 + (1 − P) / (1 − P) = 1             so the mean of yᵢ is fᵢ
#     mean of mᵢ²        P · 0 + (1 − P) / (1 − P)² = 1 / (1 − P)
#     variance of yᵢ     fᵢ² (1 / (1 − P) − 1) = fᵢ² P / (1 − P)
#     backward           dfᵢ = mᵢ dyᵢ        the same mask: it is a constant factor, drawn once per forward pass
#
# With P = 0.1, a 3 becomes 0 in one case of ten and 3.333 in the others; its standard deviation is 3 √(1/9) = 1.
# When the model is used, nothing is dropped and nothing scaled: m = 1, the mean of what training saw.
#
# Dropout belongs on f and not on the sum. On the sum it would also cut the identity path: a feature of x would
# get through 24 sub-layers without being set to 0 with probability 0.9²⁴ = 0.080.

# %%
P, f = 0.1, 3.0
mean = P * 0 + (1 - P) * f / (1 - P)
variance = P * (0 - mean) ** 2 + (1 - P) * (f / (1 - P) - mean) ** 2
print(
    f"a {f:.0f} with P = {P}: becomes 0 or {f / (1 - P):.3f}, mean {mean:.3f}, standard deviation {variance**0.5:.3f}"
)
lesson.check("mean of y is f, variance f² P / (1 − P)", error([mean, variance], [f, f * f * P / (1 - P)]), 1e-15)
rng = np.random.default_rng(0)
sample = f * (rng.random(400_000) >= P) / (1 - P)
lesson.check("400,000 drawn masks: mean, in units of its standard error", abs(sample.mean() - f) * 400_000**0.5, 4)
lesson.check("... and variance", error(sample.var(), variance), 0.02)
lesson.quote("0.9²⁴ = 0.080", 0.9, 0.9**24)

# %% [markdown]
# ### Part 3: what the identity path loses in post-norm
#
# At the beginning of training γ = 1 and β = 0, so x, an output of the LayerNorm below, has variance 1 over features.
# Let f have variance σ² and be uncorrelated with x. Then the sum s = x + f has variance 1 + σ², and LayerNorm divides
# by its root:
#
#     r = 1 / √(1 + σ²)            σ = 1: r = 1/√2 = 0.707
#
# Backwards, `ds = r (dy − mean(dy) − x̂ mean(dy x̂))`. The two means take 2 of C directions away, so for a random dy
# the length shrinks by √(1 − 2/C) more, which is little for large C. So on the identity path the gradient is
# multiplied by about r in every sub-layer:
#
#     after 24 sub-layers with σ = 1:    (1/√2)²⁴ = 2⁻¹² = 0.00024
#
# This is the popular argument for pre-norm, and it is true. But it is about one path of many.

# %%
C = 512
rng = np.random.default_rng(1)
x, f, dy = rng.standard_normal((3, 100, C))  # 100 tokens
x, f = (layer_norm(a, 1, 0, eps=0)[0] for a in (x, f))
ds = layer_norm_backward(dy, layer_norm(x + f, 1, 0, eps=0)[1])[0]
factor = np.linalg.norm(ds) / np.linalg.norm(dy)
print(f"one LayerNorm behind x + f, both of variance 1: |ds| / |dy| = {factor:.4f}")
lesson.check("the factor is √(1 − 2/C) / √2", error(factor, ((1 - 2 / C) / 2) ** 0.5), 0.01)
lesson.quote("(1/√2)²⁴ = 2⁻¹² = 0.00024", 1, 2, 2, 2**-12.0)

# %% [markdown]
# ### Part 4: what the other path gives back
#
# `dx = ds + (Sublayer's backward of ds)`. Let the sub-layer multiply the variance of a gradient going down by τ². If
# the two terms are uncorrelated, their variances add, and dx has 1 + τ² times the variance of ds. Together:
#
#     |dx|² / |dy|² = (1 + τ²) / (1 + σ²)          1, if the sub-layer lets gradients down as it lets values up
#
# Does it? Take the feed-forward network f = ReLU(x W₁) W₂ (lesson 02), W₁ (C, F) and W₂ (F, C), with Glorot's random
# weights: every entry has mean 0 and variance w = 2 / (C + F), independent of the rest. So a sum of k products, each of
# a number and a weight, has the variance k w times the mean square of the numbers; ReLU keeps half of a mean square.
#
#     up       x: 1     → x W₁: C w     → ReLU: C w / 2      → W₂: σ² = C w / 2 · F w
#     down     ds: 1    → W₂ᵀ: C w      → ReLU: C w / 2      → W₁ᵀ: τ² = C w / 2 · F w
#     so       σ² = τ² = C F w² / 2 = 2 C F / (C + F)²       8/25 = 0.32 for the paper's F = 4 C
#
# They are equal. So what each LayerNorm takes, each sum gives back, on average. And pre-norm? There nothing shrinks
# on the way, and x grows: Var(xₗ) = 1 + l σ² if Var(x₀) = 1. The norm in front of sub-layer l divides by its root, so
#
#     |dxₗ|² / |dxₗ₊₁|² = 1 + τ² / (1 + l σ²) = (1 + (l + 1) σ²) / (1 + l σ²)       with σ = τ
#
# Multiplied over all l, each numerator cancels the next denominator: 1 + N σ² is left. The final norm divides by just
# that. From end to end both models have the factor 1. Two stacks of feed-forward networks confirm it.


# %%
def two_stacks(C, F, N, rng):
    """|dx| / |dy| from the output of N feed-forward sub-layers to their input: post, its identity path, pre."""
    x = layer_norm(rng.standard_normal((200, C)), 1, 0, 0)[0]
    bound = (6 / (C + F)) ** 0.5  # uniform in ±bound has variance bound²/3 = 2 / (C + F)
    weights = [(rng.uniform(-bound, bound, (C, F)), rng.uniform(-bound, bound, (F, C))) for _ in range(N)]
    a, b, caches = x, x, []
    for W1, W2 in weights:
        n, norm_pre = layer_norm(b, 1, 0, 0)
        open_post, open_pre = a @ W1 > 0, n @ W1 > 0  # which ReLUs let through
        a, norm_post = layer_norm(a + (a @ W1 * open_post) @ W2, 1, 0, 0)
        b = b + (n @ W1 * open_pre) @ W2
        caches.append((norm_post, open_post, norm_pre, open_pre))
    dy = rng.standard_normal((200, C))
    da, identity, db = dy, dy, layer_norm_backward(dy, layer_norm(b, 1, 0, 0)[1])[0]
    for (W1, W2), (norm_post, open_post, norm_pre, open_pre) in zip(weights[::-1], caches[::-1], strict=True):
        identity = layer_norm_backward(identity, norm_post)[0]
        ds = layer_norm_backward(da, norm_post)[0]
        da = ds + ((ds @ W2.T) * open_post) @ W1.T
        db = db + layer_norm_backward(((db @ W2.T) * open_pre) @ W1.T, norm_pre)[0]
    return [np.linalg.norm(d) / np.linalg.norm(dy) for d in (da, identity, db)]


post, identity, pre = two_stacks(C=96, F=128, N=24, rng=np.random.default_rng(2))
print(f"24 feed-forward sub-layers, |dx| / |dy|: post {post:.3f} (identity path {identity:.5f}), pre {pre:.3f}")
lesson.check("the whole gradient passes both stacks unchanged, |1 − factor|", max(abs(1 - post), abs(1 - pre)), 0.15)

# %% [markdown]
# Measured over these 24 sub-layers: the gradient is multiplied by 0.98 in post-norm and by 1.05 in pre-norm. The
# identity path of post-norm alone would have left 0.0095 of it.
#
# So "post-norm shrinks the gradient by 1/√2 a sub-layer" holds for the identity path and not for the gradient.
# The sub-layers themselves carry it. Keep that in mind: it works only as long as they do.
#
# ## From scratch
#
# Both placements around a feed-forward network, in lines that you have seen in part 1. `m` is the mask with its
# scale, drawn by whoever calls.

# %%
lesson.quote("multiplied by 0.98 in post-norm and by 1.05 in pre-norm", post, pre, within=0.001)
lesson.quote("path of post-norm alone would have left 0.0095 of it", identity, within=0.001)


def feed_forward(x, W1, b1, W2, b2):  # lesson 02; .real, as the complex step compares real parts
    h = x @ W1 + b1
    a = np.where(h.real > 0, h, 0)
    return a @ W2 + b2, (x, h, a, W1, W2)


def feed_forward_backward(dy, cache):
    x, h, a, W1, W2 = cache
    dh = np.where(h > 0, dy @ W2.T, 0)
    dW1, dW2 = np.einsum("bti,btj->ij", x, dh), np.einsum("bti,btj->ij", a, dy)
    return dh @ W1.T, [dW1, dh.sum((0, 1)), dW2, dy.sum((0, 1))]


# %%
def add_norm(x, m, gamma, beta, *weights, placement, eps=1e-5):
    if placement == "post":
        f, cache_f = feed_forward(x, *weights)
        y, cache_norm = layer_norm(x + m * f, gamma, beta, eps)
    else:
        n, cache_norm = layer_norm(x, gamma, beta, eps)
        f, cache_f = feed_forward(n, *weights)
        y = x + m * f
    return y, (m, cache_f, cache_norm)


def add_norm_backward(dy, cache, placement):
    """dx, and the gradients of gamma, beta, W1, b1, W2, b2."""
    m, cache_f, cache_norm = cache
    if placement == "post":
        ds, dgamma, dbeta = layer_norm_backward(dy, cache_norm)
        dx_f, dweights = feed_forward_backward(m * ds, cache_f)
        dx = ds + dx_f
    else:
        dn, dweights = feed_forward_backward(m * dy, cache_f)
        dx_n, dgamma, dbeta = layer_norm_backward(dn, cache_norm)
        dx = dy + dx_n
    return [dx, dgamma, dbeta, *dweights]


# %% [markdown]
# ## Checked
#
# First against the complex step (lesson 01): Im f(x + ih) / h with h = 1e-30 is the derivative, exact to rounding.
# All axes have different lengths, γ and β are random, the mask is on, and the upstream gradient is random.


# %%
def complex_gradient(function, a):
    g = np.empty(a.shape)
    for i in np.ndindex(a.shape):
        shifted = a.astype(complex)
        shifted[i] += 1e-30j
        g[i] = function(shifted).imag / 1e-30
    return g


rng = np.random.default_rng(3)
B, T, C, F = 2, 3, 5, 7
x, dy = rng.standard_normal((2, B, T, C))
given = [rng.standard_normal(shape) for shape in ((C,), (C,), (C, F), (F,), (F, C), (C,))]  # gamma ... b2
m = (rng.random((B, T, C)) >= 0.3) / 0.7
for placement in ("post", "pre"):
    _, cache = add_norm(x, m, *given, placement=placement)
    gradients = add_norm_backward(dy, cache, placement)
    worst, inputs = 0.0, [x, *given]
    for k, gradient in enumerate(gradients):

        def loss(a, k=k, placement=placement, inputs=inputs):
            x, *rest = [a if j == k else b for j, b in enumerate(inputs)]
            return (add_norm(x, m, *rest, placement=placement)[0] * dy).sum()

        worst = max(worst, error(gradient, complex_gradient(loss, inputs[k])))
    lesson.check(f"{placement}-norm: dx and six parameter gradients, against the complex step", worst, 1e-13)

# %% [markdown]
# Then against the library's `Residual`, with dropout on. It draws its own mask; we take it from its cache, because
# the backward pass must use the same one. What a second mask would do is measured, too.

# %%
from minitransformer.layers import FeedForward, Residual

for placement in ("post", "pre"):
    network = FeedForward(C, F, dtype="float64")
    layer = Residual(network, C, dropout_rate=0.3, norm=placement, dtype="float64")
    own = [layer.norm.gamma, layer.norm.beta, *network.parameters()]  # the network's are W1, b1, W2, b2
    for parameter, value in zip(own, given, strict=True):
        parameter.data[...] = value
    y, cache = layer.forward(x, rng=np.random.default_rng(4))
    dx = layer.backward(dy, cache)
    m = cache.dropout.keep * cache.dropout.scale
    my_y, my_cache = add_norm(x, m, *given, placement=placement)
    mine = add_norm_backward(dy, my_cache, placement)
    library = [dx, *(parameter.grad for parameter in own)]
    lesson.check(f"{placement}-norm forward equals the library's", error(my_y, y), 1e-12)
    worst = max(error(a, b) for a, b in zip(mine, library, strict=True))
    lesson.check(f"{placement}-norm backward equals the library's", worst, 1e-12)
    second = (rng.random(m.shape) >= 0.3) / 0.7
    wrong = add_norm_backward(dy, (second, *my_cache[1:]), placement)[0]
    lesson.check(f"{placement}-norm with a second mask in backward: dx is off by", error(wrong, dx), at_least=0.1)

# %% [markdown]
# ## A stack to look into
#
# Now 12 layers, each attention and feed-forward, so 24 sub-layers, thin ones (C = 32, F = 64, 4 heads). The pieces
# are the library's. Below stands an embedding and above it the same matrix again (lesson 04). There are no positions,
# as the task does not ask for any: say each of the 8 tokens again, out of 10 letters. A guess costs ln 10 = 2.303 nats.
#
# The backward pass is a loop, so we can note the length of the gradient between any two sub-layers as it goes by.

# %%
from minitransformer.core import Layer, Parameter
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers import LayerNorm, SelfAttention
from minitransformer.layers.embedding import Embedding, OutputProjection
from minitransformer.training import Adam

B, S, C, F, H, LETTERS, LAYERS = 32, 8, 32, 64, 4, 10, 12


class Stack(Layer):
    def __init__(self, placement, seed, dtype="float32"):
        rng = np.random.default_rng(seed)
        E = Parameter((rng.standard_normal((LETTERS, C)) / C**0.5).astype(dtype))
        made = {"rng": rng, "dtype": dtype}
        pairs = [(SelfAttention(C, H, **made), FeedForward(C, F, **made)) for _ in range(LAYERS)]
        self.sublayers = [Residual(f, C, norm=placement, dtype=dtype) for pair in pairs for f in pair]
        self.final = [LayerNorm(C, dtype=dtype)] if placement == "pre" else []
        self.all = [Embedding(E), *self.sublayers, *self.final, OutputProjection(E)]

    def measure(self, ids):
        """One forward and backward -> the loss, and the length of dx below each sub-layer and above the last."""
        self.zero_grad()
        x, caches, self.xs = ids, [], []
        for layer in self.all:
            x, cache = layer.forward(x)
            caches.append(cache)
            self.xs.append(x)
        loss, cache = cross_entropy(x, ids, pad=-1)
        self.caches, d, lengths = caches, cross_entropy_backward(1.0, cache), []
        for layer, cache in zip(self.all[:0:-1], caches[:0:-1], strict=True):  # all but the embedding
            d = layer.backward(d, cache)
            lengths.append(np.linalg.norm(d))
        self.all[0].backward(d, caches[0])
        return float(loss), np.array(lengths[::-1])[: 2 * LAYERS + 1]

    def query_key_gradients(self):
        """The length of the gradient of the query and key matrices, for each attention from below."""
        return np.array([np.linalg.norm(f.sublayer.qkv.W.grad[:, : 2 * C]) for f in self.sublayers[::2]])

    def spread(self):
        """How much the top's vectors differ from token to token: their standard deviation, as a share of the whole."""
        top = self.xs[2 * LAYERS].reshape(-1, C)
        return top.std(axis=0).mean() / top.std()

    def common(self):
        """The length of the mean over tokens of a sub-layer's output, as a share of the output's (post-norm)."""
        outputs = [f.sublayer(x).reshape(-1, C) for f, x in zip(self.sublayers, self.xs, strict=False)]
        return np.mean([np.linalg.norm(f.mean(axis=0)) / np.sqrt((f**2).sum(axis=1).mean()) for f in outputs])


# %% [markdown]
# At initialisation, in float64 and on one batch. For post-norm we also send the gradient down the identity path
# alone, through the 24 LayerNorms and past all sub-layers.

# %%
ids = np.random.default_rng(5).integers(0, LETTERS, (B, S))
at_start, differ = {}, {}
for placement in ("post", "pre"):
    model = Stack(placement, seed=1, dtype="float64")
    _, lengths = model.measure(ids)
    at_start[placement] = lengths, model.query_key_gradients()
    top = model.xs[2 * LAYERS]  # (B, S, C)
    differ[placement] = np.linalg.norm(top - top.mean(axis=1, keepdims=True)) / np.linalg.norm(top)
    first, *_, last = at_start[placement][1]
    print(f"{placement:4}-norm, untrained: |dx| below / |dx| above {lengths[0] / lengths[-1]:.2f}; ", end="")
    print(f"spread of the top {model.spread():.3f}; query and key gradients, layer 12 / layer 1: {last / first:.2g}")
    if placement == "post":
        d = np.random.default_rng(6).standard_normal((B, S, C))
        past = [np.linalg.norm(d)]
        for f, cache in zip(model.sublayers[::-1], model.caches[-2:0:-1], strict=True):
            d = f.norm.backward(d, cache.norm)
            past.append(np.linalg.norm(d))
        past = np.array(past[::-1]) / past[0]
print(f"post-norm, identity path alone: {past[0]:.2g} of the top's gradient is left below")

# %% [markdown]
# ## Training, with and without warm-up
#
# Four runs, 200 steps of Adam each, from the same weights and on the same batches: post-norm and pre-norm, at a
# learning rate of 0.006 from the first step, or rising to it in a straight line over 100 steps. Adam is lesson 13's.
# All that you need here: its first step moves every weight by the learning rate, however small the gradient.

# %%
from minitransformer.progress import tqdm

STEPS, LR, WARMUP = lesson.pick(200, 12), 0.006, 100


def train(placement, warmup, seed=1, lr=LR, steps=STEPS):
    """-> the loss and the lengths of dx at each step, the spread at each step, and the model."""
    model, rng = Stack(placement, seed), np.random.default_rng(seed + 100)
    optimizer = Adam(model.parameters())
    losses, lengths, spreads = [], [], []
    for step in range(1, steps + 1):
        loss, length = model.measure(rng.integers(0, LETTERS, (B, S)))
        losses.append(loss)
        lengths.append(length)
        spreads.append(model.spread())
        optimizer.lr = lr * min(1.0, step / warmup) if warmup else lr
        optimizer.step()
    return np.array(losses), np.array(lengths), np.array(spreads), model


names = {(norm, w): f"{norm}-norm" + ", warm-up" * (w > 0) for norm in ("post", "pre") for w in (0, WARMUP)}
runs = {key: train(*key) for key in tqdm(names, disable=None)}
print("                          loss   |dx| below / |dx| above        spread of the top")
print("after ... steps:           end       0        1       10      end     0     1    10   end")
for key, (losses, lengths, spreads, _) in runs.items():
    when = [0, 1, 10, -1]
    ratios = [f"{r:8.2g}" for r in (lengths[:, 0] / lengths[:, -1])[when]]
    print(f"{names[key]:20}{losses[-10:].mean():10.3f}", *ratios, "".join(f"{r:8.1g}" for r in spreads[when]))

# %% [markdown]
# The same for three more seeds, for post-norm; and once at a learning rate of 0.001 without warm-up.

# %%
again, left = {}, {}
for warmup in (0, WARMUP):
    more = [train("post", warmup, seed) for seed in lesson.pick((0, 2, 3), (0,))]
    again[warmup] = [losses[-10:].mean() for losses, *_ in more]
    ends = left[warmup] = [lengths[-1, 0] / lengths[-1, -1] for _, lengths, *_ in more]
    print(f"more seeds, post-norm, warm-up {warmup:3}: loss", *(f"{loss:.3f}" for loss in again[warmup]), end="; ")
    print("|dx| below / |dx| above at the end", *(f"{ratio:.1g}" for ratio in ends))
slow = train("post", 0, lr=0.001)[0][-10:].mean()
print(f"post-norm without warm-up at a learning rate of 0.001: loss {slow:.3f}")

# %% [markdown]
# ## The picture

# %%
figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.9))
depth, layer_number = np.arange(2 * LAYERS + 1), np.arange(1, LAYERS + 1)
for placement, colour in (("post", ORANGE), ("pre", BLUE)):
    lengths, query_key = at_start[placement]
    axes[0, 0].semilogy(depth, lengths / lengths[-1], color=colour, label=f"{placement}-norm")
    axes[0, 1].semilogy(layer_number, query_key, "o-", color=colour, markersize=3, label=f"{placement}-norm")
axes[0, 0].semilogy(depth, past, ":", color=ORANGE, label="post-norm, identity path alone")
axes[0, 0].set(title="Untrained: gradient of the input", ylabel="|dx|, at the top = 1", ylim=(2e-4, 20))
axes[0, 1].set(title="Untrained: gradient of W_q and W_k", ylabel="|gradient of W_q, W_k|", xlabel="layer")
colours = {("post", 0): ORANGE, ("post", WARMUP): YELLOW, ("pre", 0): BLUE, ("pre", WARMUP): SKY}
for key, (losses, lengths, _, _) in runs.items():
    style = "--" if key[1] else "-"
    axes[1, 0].semilogy(depth, lengths[-1] / lengths[-1, -1], style, color=colours[key])
    axes[1, 1].plot(np.arange(1, STEPS + 1), losses, style, color=colours[key], linewidth=1.2, label=names[key])
axes[1, 0].set(title=f"After {STEPS} steps: gradient of the input", ylabel="|dx|, at the top = 1")
axes[1, 1].axhline(np.log(LETTERS), color=GREY, linestyle=":", linewidth=1, label=f"ln {LETTERS}")
axes[1, 1].set(title="Training loss", ylabel="loss (nats per token)", xlabel="step", ylim=(-0.1, 3.0))
for axis in axes[:, 0]:
    axis.set(xlabel="sub-layers below", xticks=range(0, 25, 6))
axes[0, 1].set_xticks(range(1, 13, 2))
for axis in axes[0]:
    axis.legend(fontsize=7)
figure.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
figure.suptitle("Gradients over depth, with post-norm and pre-norm", fontsize=11)
lesson.save(figure)

# %% [markdown]
# You should see, above left, two solid lines near 1 and a dotted one that falls; above right, the gradient of the
# query and key matrices falling faster for post-norm; below left, one line that falls by several powers of ten on
# its way down; below right, the same run staying at ln 10 while the three others reach 0.
# If the solid post-norm line falls like the dotted one, the backward pass has forgotten `+ dx_f`. If pre-norm's line is
# exactly flat, it has forgotten the sub-layer. If all four runs learn, your learning rate is lower than ours.

# %% [markdown]
# ## The surprise
#
# We had expected the textbook's story: post-norm's gradient vanishes with depth, so the lower layers do not learn. At
# initialisation this is not so. Down the identity path alone 0.012 of the gradient arrives after 24 sub-layers
# (0.00024 in part 3, but σ is less than 1 here). The whole gradient below is 2.1 times the one above, not a
# fraction of it (pre-norm: 5.5 times). What each norm takes, the sub-layers give back, as part 4 says.
#
# What does starve is inside: the gradient of the query and key matrices in layer 12 is 0.0051 times that in
# layer 1 (pre-norm: 0.083 times). From layer to layer attention mixes the tokens of a sequence, and they become
# alike: at the top they differ from their mean by 0.07 of their length (pre-norm: 0.42). Where all are alike, no
# score is better than the average (lesson 06: ds = p (dp − Σ p dp)).
#
# Then comes the first step. At a learning rate of 0.006 every weight of all 24 sub-layers moves by 0.006 at once. In
# post-norm the gradient below is then 0.31 times the one above, after 10 steps less than a thousandth. The
# tokens' vectors at the top lose what tells them apart in the same time: the spread goes from 0.68 to 0.086 in that one
# step. The part of a sub-layer's output that is the same for all tokens goes from 0.79 to 0.92 of its length: all
# 24 are pushed to add nearly the same vector to every token. The sum grows in that one direction, the norm divides
# all of it by the new size, and what was different between tokens shrinks, 24 times over. In the end the top says the
# same for each input, the loss stays at ln 10, and no gradient says how to get out. The vanishing is real, but it is
# the result and not the cause.


# %%
def below_to_above(key, step):
    lengths = runs[key][1][step]
    return lengths[0] / lengths[-1]


(post, post_qk), (pre, pre_qk) = at_start["post"], at_start["pre"]
lesson.quote("identity path alone 0.012 of the gradient arrives after 24 sub-layers", past[0], 2 * LAYERS, within=0.01)
lesson.quote("below is 2.1 times the one above, not a fraction of it (pre-norm: 5.5 times)",
             post[0] / post[-1], pre[0] / pre[-1], within=0.01)  # fmt: skip
lesson.quote("in layer 12 is 0.0051 times that in layer 1 (pre-norm: 0.083 times)",
             LAYERS, post_qk[-1] / post_qk[0], 1, pre_qk[-1] / pre_qk[0], within=0.01)  # fmt: skip
lesson.quote("differ from their mean by 0.07 of their length (pre-norm: 0.42)", differ["post"], differ["pre"])
lesson.quote("gradient below is then 0.31 times the one above", below_to_above(("post", 0), 1), within=0.1)
lesson.quote("the spread goes from 0.68 to 0.086 in that one step", *runs["post", 0][2][:2], within=0.1)
common = []
for steps in (0, 1):
    model = train("post", 0, steps=steps)[-1]
    model.measure(ids)
    common.append(model.common())
lesson.quote("goes from 0.79 to 0.92 of its length", *common, within=0.02)
lesson.check("untrained post-norm, |dx| below / above: no vanishing", post[0] / post[-1], at_least=0.7)
lesson.check("post-norm, no warm-up, the same after 10 steps", below_to_above(("post", 0), 10), 1e-3)
lesson.check("post-norm, warm-up, the same after 10 steps", below_to_above(("post", WARMUP), 10), at_least=0.2)
if not lesson.fast:
    ends = {key: losses[-10:].mean() for key, (losses, *_) in runs.items()}
    stuck, learnt = min(ends["post", 0], *again[0]), max(ends["post", WARMUP], *again[WARMUP])
    lesson.check("post-norm, no warm-up, four seeds: lowest loss", stuck, at_least=2.2)
    most = max(below_to_above(("post", 0), -1), *left[0])
    lesson.check("post-norm, no warm-up, four seeds: most that is left of the gradient at the end", most, 1e-3)
    lesson.check("post-norm, warm-up, four seeds: highest loss", learnt, 0.1)
    lesson.check("pre-norm, with and without: higher loss", max(ends["pre", 0], ends["pre", WARMUP]), 0.1)
    lesson.check("post-norm, no warm-up, a learning rate of 0.001: loss", slow, 0.1)

# %% [markdown]
# So the answer to the third guess is: it becomes too small, on all of four seeds. Two more things are worth knowing.
# Post-norm does not need warm-up as such: at a learning rate of 0.001 it learns without. And pre-norm does not need it
# here even at 0.006: x has its own way to the top, whatever the sub-layers add.

# %%
lesson.claim("post-norm shrinks the gradient by about 1/√2 in every sub-layer", "half right",
             f"true of the identity path: {past[0]:.3f} is left after 24 sub-layers; the whole gradient below is "
             f"{post[0] / post[-1]:.1f} times the one above")  # fmt: skip
lesson.claim("with residual connections there are no gradient issues", "half right",
             "pre-norm has an unbroken path; in post-norm the query and key gradients of layer 12 are "
             f"{post_qk[-1] / post_qk[0]:.4f} times those of layer 1, and ten steps without warm-up leave "
             f"{below_to_above(('post', 0), 10):.1g} of the gradient; and a softmax can saturate")  # fmt: skip
if not lesson.fast:
    lesson.claim("a post-norm Transformer does not train without warm-up", "half right",
                 f"12 layers at a learning rate of 0.006: stuck at {stuck:.2f} nats or more on four seeds of four, "
                 f"learnt with warm-up; at 0.001 learnt without: {slow:.3f}")  # fmt: skip

# %% [markdown]
# ## Exercise
#
# 1. (15 minutes) Write a layer `MyResidual` with `forward(x, rng=None)` and `backward(dy, cache)` that has a
#    feed-forward network inside and computes y = LayerNorm(2 x + Sublayer(x)). Derive dx before you write it. It
#    passes when `minitransformer gradcheck my.py:MyResidual` is all ok. What is r for σ = 1 now?
# 2. (10 minutes) In `Stack`, leave out the final norm of pre-norm. Print the loss of the untrained stack and the
#    variance of `xs[2 * LAYERS]`, for 12 and for 24 layers and a few seeds. Explain with Var(xₗ) = 1 + l σ².
#
# Checked exercises on this lesson: `minitransformer start 11`.

# %% [markdown]
# ## Questions
#
# 1. Post-norm: the gradient at y is dy. Which of dγ, dβ, ds and dx can you compute without the sub-layer?
# 2. Why does a pre-norm model need a norm after its last layer, and a post-norm model not?
# 3. A colleague applies dropout to x + f instead of f, with P = 0.1. What is the chance that a feature of the
#    embedding gets through 24 sub-layers without ever being set to 0?
# 4. An evaluation with dropout left on: is the mean of f wrong? What is wrong, then?
# 5. In pre-norm the gradient below is larger than the one above: 5.5 times. Where does part 4 say so?

# %% [markdown]
# ## In the wild
#
# * The Annotated Transformer says "for code simplicity the norm is first", and is pre-norm with a final norm.
#   The authors' own tensor2tensor went over to pre-norm in its later settings. BERT is post-norm; GPT-2, T5 and LLaMA
#   are pre-norm. A formula copied from the paper above code copied from the web is the usual source of confusion.
# * PyTorch's `TransformerEncoderLayer` has `norm_first=False`: post-norm. `nn.Transformer` puts a final norm behind
#   both stacks either way; behind post-norm it normalises what has just been normalised. That breaks nothing, but the
#   parameters are not the paper's.
# * Swapping the order without adding the final norm is easily done. It trains, with logits that grow with depth.
# * Xiong et al. (2020) explained warm-up from the untrained gradients; Liu et al. (2020) found, as we do here, that
#   vanishing gradients are not where it starts; Noci et al. (2022) describe tokens becoming alike. DeepNorm (Wang et
#   al. 2022) keeps post-norm and multiplies x by a constant > 1 before the sum, which is exercise 1.

# %%
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. dγ and dβ (sums of dy x̂ and dy over tokens) and ds (LayerNorm's backward). dx needs the sub-layer's, too.
# 2. Pre-norm's x is a running sum that nobody has normalised: its variance is 1 + N σ² at the end. Post-norm's
#    last step is a LayerNorm already.
# 3. 0.9²⁴ = 0.080, as computed in part 2. On f alone the identity path is never cut.
# 4. The mean is right, as m has mean 1. But f has noise of variance f² P / (1 − P), other noise each time, and what
#    comes after is not linear, so even the mean of the model's output changes.
# 5. The factor from sub-layer l + 1 down to l is √(1 + τ² / (1 + l σ²)), above 1 for every l. The product is
#    √(1 + N σ²) if τ = σ; the final norm, which stands above the one that we call the top, has divided by as much.
