# %% [markdown]
# # Lesson 12: The whole machine
#
# [![The Transformer, all of it lit](../plots/12_transformer_map.png)](../plots/00_reverse_whole.png)
#
# **What is new when all pieces are put together, and how do I know that 63 million gradients are right?**
#
# 13 min, with a pencil 30, going deeper 8 · runs in 25 s (fast: 6 s) · needs 01, 02, 03, 04, 05, 06, 07, 08, 09, 10,
# 11 · difficulty 4 of 5 · paper: sections 3.1, 3.2.3 and 3.4, figure 1
#
# ## Only one rule
#
# A student has written a Transformer by hand. All shapes are right, the loss falls, and the answers get better. But her
# encoder has never received more than part of its gradient, and no curve shows it.
#
# Each of her parts is right, and so is each of yours. What she got wrong is how they connect. For that there is one
# rule, which you met in lesson 04 (the matrix E) and lesson 11 (the residual path): **if a value is used in several
# places, its gradient is the sum of the gradients from all of them.**

# %% Imports
from support.architecture import gradient_sizes
from support.lab import ROWS, SOURCE, TARGET_IN, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show
from support.pictures import canvas, mix, number

import numpy as np

from minitransformer.backend import BackendUnavailableError, to_device, to_host, use_backend
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, named_config
from minitransformer.plotting import BLUE, GREY, ORANGE

lesson = begin("12_transformer")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) The shapes nearly force dW = xᵀ dy. When would a wrong formula fit them, too?
# 2. (07) Why does a model that peeks at its answers pass a gradient check?
# 3. (10) Which test finds a LayerNorm that forgets μ and σ on the way back, even where it is only 5 % off?
#
# (The answers are at the end.)

# %% [markdown]
# ## Where values are used more than once
#
# * **x, before every sub-layer**, goes into the sub-layer and around it: two uses, two gradients.
# * **x, inside self-attention**, becomes q, k and v: three uses.
# * **M** becomes the keys and the values of cross-attention, in *every* decoder layer: 12 uses in the paper's model.
# * **E** embeds the source, embeds the target, and turns the decoder's output into logits: three uses.
#
# ![One vector goes two ways, and two gradients come back and add](../plots/12_transformer_fork.png)
#
# This is the first kind, with the numbers of row p→o at the decoder's feed-forward network. Where the paths branch, the
# gradients add, and a forgotten path raises no error.
#
# **Your line.** In the running example's cross-attention, backward has found `dk` and `dv`. Keys and values were made
# from M, by k = M W_k + b_k and v = M W_v + b_v, so what is the gradient of M?

# %%
dk, dv = (example[f"cross.{name}"].swapaxes(0, 1).reshape(4, 6) for name in ("dk", "dv"))  # heads side by side, (S, C)
W_k, W_v = example["cross.W_k"], example["cross.W_v"]
dM = ...  # your line: from dk, dv, W_k and W_v, (S, C)
lesson.judge("dM", dM)

# %% [markdown]
# ## One number of E, and five lost shares
#
# 1. How many of the 35 logits (5 rows of 7) move if you add 0.1 to one number in the row of E for «o»?
# 2. Of the six gradients that the decoder's layers send to M, the student keeps only the last layer's. By how many
#    percent of its size is her dM wrong?
#
# [In the explorer: change one number in the row of E for «o». How many of the 35 logits move?
# Guess first.](../minitransformer/explorer/page/index.html#embed=output.z[1,3]&turn=E[3,0])

# %%
guess_logits = ...  # how many of the 35 logits move
guess_missing = ...  # per cent of the size of dM

# %% [markdown]
# ## Eleven lessons in two cells
#
# Here they are again, for one sequence without a batch axis; skim them. `at` says where a piece is ("0.cross" is the
# cross-attention of layer 0), and the dictionaries `params` and `grads` hold its weights and their gradients. Each
# forward returns what its backward needs.
#
# Only `attend` deserves a closer look. In cross-attention, the decoder's x asks and M answers, so its backward returns
# dx, from the queries, and dM, which is your line. Self-attention is the same function with M = x, where x has all
# three uses and its gradient is dx + dM.

# %%
H, D, PE = 2, 3, example["PE"]
root = np.sqrt(H * D)  # √C, lesson 04
params, grads = {}, {}


def linear(x, at, part):  # lesson 02
    return x @ params[f"{at}.W_{part}"] + params[f"{at}.b_{part}"]


def linear_backward(dy, x, at, part):
    grads[f"{at}.W_{part}"] += x.T @ dy
    grads[f"{at}.b_{part}"] += dy.sum(axis=0)
    return dy @ params[f"{at}.W_{part}"].T


def ffn(x, at):  # lesson 02
    a = linear(x, at, 1)
    r = np.where(a.real > 0, a, 0)
    return linear(r, at, 2), (x, a, r)


def ffn_backward(dy, cache, at):
    x, a, r = cache
    dr = linear_backward(dy, r, at, 2)
    return linear_backward(np.where(a.real > 0, dr, 0), x, at, 1)


def norm(x, at):  # lesson 10
    mu = x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt(((x - mu) ** 2).mean(axis=-1, keepdims=True) + 1e-5)
    x_hat = (x - mu) / sigma
    return params[f"{at}.gamma"] * x_hat + params[f"{at}.beta"], (x_hat, sigma)


def norm_backward(dy, cache, at):
    x_hat, sigma = cache
    grads[f"{at}.gamma"] += (dy * x_hat).sum(axis=0)
    grads[f"{at}.beta"] += dy.sum(axis=0)
    dx_hat = dy * params[f"{at}.gamma"]
    mu_path = dx_hat.mean(axis=-1, keepdims=True)
    sigma_path = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    return (dx_hat - mu_path - sigma_path) / sigma


# %%
def split_heads(x):  # (T, C) -> (H, T, D), lesson 08
    return x.reshape(len(x), H, D).swapaxes(0, 1)


def merge_heads(x):  # (H, T, D) -> (T, C)
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def attend(x, M, at, allowed=True):  # lessons 05 to 08
    q, k, v = split_heads(linear(x, at, "q")), split_heads(linear(M, at, "k")), split_heads(linear(M, at, "v"))
    s = q @ k.swapaxes(1, 2) / np.sqrt(D)
    p = np.exp(s - s.real.max(axis=-1, keepdims=True)) * allowed
    p = p / p.sum(axis=-1, keepdims=True)
    o = merge_heads(p @ v)
    return linear(o, at, "o"), (x, M, q, k, v, p, o)


def attend_backward(dy, cache, at):  # -> dx, dM
    x, M, q, k, v, p, o = cache
    do = split_heads(linear_backward(dy, o, at, "o"))
    dv = p.swapaxes(1, 2) @ do
    dp = do @ v.swapaxes(1, 2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dq = ds @ k / np.sqrt(D)
    dk = ds.swapaxes(1, 2) @ q / np.sqrt(D)
    dx = linear_backward(merge_heads(dq), x, at, "q")
    dM = linear_backward(merge_heads(dk), M, at, "k") + linear_backward(merge_heads(dv), M, at, "v")
    return dx, dM


# %% [markdown]
# ## The machine
#
# In `Norm(x + Sublayer(x))` the gradient of the sum, `dsum`, goes to x twice: around the sub-layer, and through it.


# %%
def encoder_layer(x, at):
    y, cache_self = attend(x, x, f"{at}.encoder.self")
    x, cache_norm1 = norm(x + y, f"{at}.encoder.norm1")
    y, cache_ffn = ffn(x, f"{at}.encoder.ffn")
    x, cache_norm2 = norm(x + y, f"{at}.encoder.norm2")
    return x, (cache_self, cache_norm1, cache_ffn, cache_norm2)


def encoder_layer_backward(dy, cache, at):
    cache_self, cache_norm1, cache_ffn, cache_norm2 = cache
    dsum = norm_backward(dy, cache_norm2, f"{at}.encoder.norm2")
    dy = dsum + ffn_backward(dsum, cache_ffn, f"{at}.encoder.ffn")
    dsum = norm_backward(dy, cache_norm1, f"{at}.encoder.norm1")
    dx, dx_kv = attend_backward(dsum, cache_self, f"{at}.encoder.self")
    return dsum + dx + dx_kv


def decoder_layer(x, M, at):
    y, cache_self = attend(x, x, f"{at}.decoder.self", np.tri(len(x), dtype=bool))  # lesson 07
    x, cache_norm1 = norm(x + y, f"{at}.decoder.norm1")
    y, cache_cross = attend(x, M, f"{at}.cross")
    x, cache_norm2 = norm(x + y, f"{at}.decoder.norm2")
    y, cache_ffn = ffn(x, f"{at}.decoder.ffn")
    x, cache_norm3 = norm(x + y, f"{at}.decoder.norm3")
    return x, (cache_self, cache_norm1, cache_cross, cache_norm2, cache_ffn, cache_norm3)


def decoder_layer_backward(dy, cache, at):  # -> the gradient for the layer below, and this layer's share of dM
    cache_self, cache_norm1, cache_cross, cache_norm2, cache_ffn, cache_norm3 = cache
    dsum = norm_backward(dy, cache_norm3, f"{at}.decoder.norm3")
    dy = dsum + ffn_backward(dsum, cache_ffn, f"{at}.decoder.ffn")
    dsum = norm_backward(dy, cache_norm2, f"{at}.decoder.norm2")
    dx, dM = attend_backward(dsum, cache_cross, f"{at}.cross")
    dsum = norm_backward(dsum + dx, cache_norm1, f"{at}.decoder.norm1")
    dx, dx_kv = attend_backward(dsum, cache_self, f"{at}.decoder.self")
    return dsum + dx + dx_kv, dM


# %% [markdown]
# In the whole model, the encoder has to wait on the way back until *all* decoder layers have given their share of dM,
# and dE is complete only at the very end.


# %%
def forward(source, target_in, layers):
    E, caches = params["E"], []
    M = root * E[source] + PE[: len(source)]  # lessons 04 and 09
    for layer in range(layers):
        M, cache = encoder_layer(M, layer)
        caches.append(cache)
    y = root * E[target_in] + PE[: len(target_in)]
    for layer in range(layers):
        y, cache = decoder_layer(y, M, layer)
        caches.append(cache)
    z = y @ E.T
    p = np.exp(z - z.real.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True), (source, target_in, y, caches)


def backward(p, target_out, cache):
    source, target_in, y, caches = cache
    layers = len(caches) // 2
    for name, value in params.items():
        grads[name] = np.zeros_like(value)
    dz = (p - np.eye(p.shape[-1])[target_out]) / len(p)  # lesson 03
    grads["E"] += dz.T @ y  # first use of E
    dy = dz @ params["E"]
    shares = []  # of dM, from the last decoder layer to the first
    for layer in reversed(range(layers)):
        dy, share = decoder_layer_backward(dy, caches[layers + layer], layer)
        shares.append(share)
    np.add.at(grads["E"], target_in, root * dy)  # second use
    dx = sum(shares)  # this is dM
    for layer in reversed(range(layers)):
        dx = encoder_layer_backward(dx, caches[layer], layer)
    np.add.at(grads["E"], source, root * dx)  # third use
    return shares


def loss(p, target_out):
    return -np.log(p[np.arange(len(p)), target_out]).mean()


# %% [markdown]
# ## The running example, from end to end
#
# With the example's weights, row p→o gives «o» 70 % and «p» 30 %, as in lesson 00, and the loss is 0.1108.


# %%
def ids(tokens):
    return [VOCABULARY.index(token) for token in tokens]


source, target_in, target_out = ids(SOURCE), ids(TARGET_IN), ids(TARGET_OUT)
for name, value in example.items():
    symbol = name.rpartition(".")[2]
    if symbol in ("gamma", "beta") or symbol[:2] in ("W_", "b_"):  # of all numbers, take the parameters
        params[f"0.{name}"] = value
params["E"] = example["E"]
p, cache = forward(source, target_in, layers=1)
z = cache[2] @ params["E"].T
L = loss(p, target_out)
backward(p, target_out, cache)
show("probabilities p (T, V)", p, ROWS, VOCABULARY, digits=2)

params["E"] = example["E"] + 0.1 * (np.arange(42) == 18).reshape(7, 6)  # one number in the row of «o»
moved_logits = forward(source, target_in, layers=1)[1][2] @ params["E"].T - z
params["E"] = example["E"]
lesson.compare("logits that move, of 35", guess_logits, np.count_nonzero(np.abs(moved_logits) > 1e-9))

# %% [markdown]
# All 35 move, because E has also read «o», whose vector reaches every row through M.
#
# ![The running example's machine, with the size of the gradient on every wire](../plots/12_transformer.png)
#
# Of the three gradients that add up to dE, the largest comes from the source, by the longest path.
#
# To prove it, we move each of the 826 parameters by an imaginary step, one after another (lesson 01), and do it again
# with random weights and *two* layers, where dM has two shares to add.


# %%
def size(x):
    """‖x‖, the root of the sum of all squares."""
    return float(np.sqrt((x**2).sum()))


def worst_gradient(layers):
    """The largest error of all gradients against the complex step, over the largest gradient."""
    p, cache = forward(source, target_in, layers)
    shares = backward(p, target_out, cache)
    worst = 0.0
    for name, value in params.items():
        for index in np.ndindex(value.shape):
            params[name] = value.astype(complex)
            params[name][index] += 1e-30j
            true = loss(forward(source, target_in, layers)[0], target_out).imag / 1e-30
            worst = max(worst, abs(grads[name][index] - true))
        params[name] = value
    return worst / max(np.abs(each).max() for each in grads.values()), shares


worst, _ = worst_gradient(layers=1)
lesson.check("all gradients of the example, entry by entry", worst, 1e-13)

trained, trained_grads = params.copy(), grads.copy()
rng = np.random.default_rng(12)
for name, value in trained.items():
    for layer in "01":
        around = 1.0 if name.endswith("gamma") else 0.0
        params[name.replace("0.", f"{layer}.")] = around + 0.5 * rng.standard_normal(value.shape)
worst, two_shares = worst_gradient(layers=2)
lesson.check("all gradients of two layers with random weights", worst, 1e-12)

# %% [markdown]
# ## 63 million gradients in one number
#
# For the paper's base model, which we take from the library, one forward pass for each of its 63,082,496 parameters is
# too much. But lesson 01 moved *all* of them at once. Let θ be the parameters in one long vector, g the gradient that
# backward computes, and u a random direction. If backward is right, a single forward pass in complex numbers gives
#
#     Im L(θ + ih u) / h = Σ_j u_j ∂L/∂θ_j = Σ_j u_j g_j
#
# An error in any of the 63 million entries moves the right side, and only an unlikely accident hides it. (How large an
# error could hide: see Going deeper.)
#
# > **1970.** In a master's thesis in Helsinki, Seppo Linnainmaa followed rounding errors through long computations, and
# > found that a single backward pass gives the derivative with respect to every intermediate result. Ten years later
# > Bert Speelpenning wrote a compiler that derives this pass automatically. In this lesson, you have been the compiler.

# %%
kind, words = lesson.pick(full=("base", 37000), fast=("tiny", 370))
model = Transformer(named_config(kind, words), dtype=np.float64)
for name, parameter in model.named_parameters():
    if name.endswith((".b", ".beta", ".gamma")):  # untrained they are 0 and 1, which would hide mistakes
        parameter.data += 0.3 * rng.standard_normal(parameter.data.shape)
source_ids, target_ids = rng.integers(3, words, (2, 7)), rng.integers(3, words, (2, 6))  # two sentences


def model_loss():
    z, cache = model.forward(source_ids, target_ids[:, :-1])
    L, loss_cache = cross_entropy(z, target_ids[:, 1:], 0.1)  # 0.1: label smoothing, lesson 03
    return L, loss_cache, cache


def encoder_gradient():
    return np.concatenate([parameter.grad.ravel() for parameter in model.encoder.parameters()])


_, loss_cache, cache = model_loss()
decode_cache = cache.features.decode
dy = model.output.backward(cross_entropy_backward(1.0, loss_cache), cache.output)
arriving, shares = [], []  # sizes of dy, and shares of dM, from the last decoder layer to the first
for layer in reversed(model.decoder.layers):  # one by one, to keep each share of dM
    arriving.append(size(dy))
    dy, share = layer.backward(dy, decode_cache.decoder.layers.pop())
    shares.append(share)
model.target_embedding.backward(dy, decode_cache.embedding)
model.encode_backward(shares[0], model.encode(source_ids)[1])  # first with the last layer's share of dM,
mistaken = encoder_gradient()
model.encode_backward(sum(shares[1:]), cache.features.encode)  # then with the others; gradients add up
right = encoder_gradient()

slope = squares = 0.0
for parameter in model.parameters():
    u = rng.standard_normal(parameter.data.shape)
    slope += np.vdot(u, parameter.grad)
    squares += np.vdot(parameter.grad, parameter.grad)
    parameter.data = parameter.data + 1e-30j * u
true = model_loss()[0].imag / 1e-30
print(f"one forward pass in complex numbers  {true:.14f}\none backward pass and a dot product  {slope:.14f}")
lesson.check("all gradients along a random direction, over ‖g‖", abs(slope - true) / np.sqrt(squares), 1e-12)

# %% [markdown]
# ## The mistake that no curve shows
#
# Now the student's mistake: the last decoder layer's share of dM is kept, and the other five are forgotten.

# %%
dM = sum(shares)
parts = [size(share) / size(dM) for share in shares[::-1]]  # the first layer first
missing = size(dM - shares[0]) / size(dM)
missing_encoder = size(right - mistaken) / size(right)
cosine = np.vdot(mistaken, right) / size(mistaken) / size(right)
print(f"without the other shares, dM is off by {missing:.0%}, and the encoder's gradient by {missing_encoder:.0%}")
lesson.compare("per cent of dM that is missing", guess_missing, 100 * missing)

# %% [markdown]
# ![Each decoder layer's share of dM](../plots/12_transformer_memory.png)
#
# You should see bars that grow from layer 1 to layer 6. In this untrained model each decoder layer hands down about
# half of the gradient that arrives, and the share it sends to M shrinks with it. The student has only the top bar:
# her dM is off by 57 % of its size, and the gradient of her encoder by 64 %.
#
# How would she notice? The angle between the encoder's wrong gradient and the right one has a cosine of 0.77, so a
# small step against the wrong one still goes downhill. The loss falls, the mistake stays, and only a gradient check
# shows it.
#
# **In papers:** going back over all wires of a *computational graph* is *reverse-mode automatic differentiation*, what
# each forward keeps for it are *saved activations*, Σ_j u_j g_j is a *Jacobian-vector product* (JVP), and M is the
# *encoder output* or the *encoder's hidden states*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 13.
#
# ### The same step on a GPU
#
# Does the machine look different on a GPU? The library writes all its mathematics against one name, `xp`, which is
# NumPy, or CuPy after `use_backend("cupy")`. Nothing changes in the formulas, forward or backward. What changes is
# where the arrays live: a model that is made inside the block has its weights on the GPU, `to_device` brings an array
# there, and `to_host` waits for a result and fetches it. A GPU adds in a different order, so the last digits may
# differ.


# %%
def one_step(library):
    """The loss of a small model and all its gradients, computed by "numpy" or "cupy", as arrays of the host."""
    with use_backend(library):
        small = Transformer(named_config("tiny", 370), seed=12, dtype=np.float64)
        z, cache = small.forward(source_ids % 367 + 3, target_ids[:, :-1] % 367 + 3)  # ids come from the host
        L, loss_cache = cross_entropy(z, to_device(target_ids[:, 1:] % 367 + 3))
        small.backward(cross_entropy_backward(1.0, loss_cache), cache)
        return float(L), np.concatenate([to_host(parameter.grad).ravel() for parameter in small.parameters()])


loss_numpy, grads_numpy = one_step("numpy")
try:
    loss_cupy, grads_cupy = one_step("cupy")
except BackendUnavailableError:
    print(f"NumPy: a loss of {loss_numpy:.6f}. CuPy has no GPU here, so there is nothing to compare it with")
else:
    print(f"NumPy: a loss of {loss_numpy:.6f}; CuPy on the GPU: {loss_cupy:.6f}")
    lesson.check("all gradients of the small model, GPU against CPU", error(grads_cupy, grads_numpy), 1e-11)

# %% [markdown]
# How fast it is, and how to train on a GPU: docs/gpu.md.
#
# ### Why gradients of several uses add up
#
# Give the three uses of E three names: L = f(E₁, E₂, E₃), where all three happen to be equal to E. Move E by δE. To
# first order the loss changes by the sum of three changes, one for each name, all with the same δE:
#
#     δL = Σ_wc (∂f/∂E₁ + ∂f/∂E₂ + ∂f/∂E₃)_wc δE_wc
#
# What multiplies δE is the gradient. In the running example the three parts have the sizes 2.045 (source), 0.990
# (target) and 0.438 (output), and dE has 2.288. The argument for M is the same, with one name for each decoder layer.
# What a layer reads from M also goes through all layers above it. That path isn't lost: it goes through the decoder's
# y, and its gradient comes back with dy.

# %% [markdown]
# ### What the check has not seen
#
# The two sides of the check differ by the sum of the errors g_j − ∂L/∂θ_j, each times its u_j. If the u_j are
# independent normal numbers, this sum is normal too, and its standard deviation is the *total error*, the root of the
# sum of all squared errors. Such a number is rarely near 0: fewer than 1 in 1,000 are within a thousandth of the
# standard deviation. So if the sides agree to 1e-12 ‖g‖, a total error above 1e-9 ‖g‖ is very unlikely.
#
# It does *not* follow that each entry is right to 12 digits. A typical entry is ‖g‖ / 8,000 (the root of 63 million),
# so 1e-9 ‖g‖ is 8e-6 of it, which leaves five digits. An entry that is tiny next to the others may be completely wrong.
#
# 8.7 million of the 63.1 million gradients are exactly 0 on our two sentences. Nearly all belong to hidden units that
# ReLU switches off for all of these few tokens. The check confirms the zeros, but not what these entries are when a
# unit is on. We trust them because the same code computes all other units.

# %%
library = load_example()
library_loss, _ = cross_entropy(library.model(library.source, library.target_in), library.target_out)
lesson.check("the loss of the example equal to the library's", error(L, library_loss), 1e-12)
zeros = sum(np.count_nonzero(parameter.grad == 0) for parameter in model.parameters())
print(f"{zeros:,} of {model.num_parameters():,} gradients are exactly 0")

# %% [markdown]
# ### Three mistakes and what they look like
#
# * A decoder layer's share of dM is lost: all of the encoder's gradients are wrong, and so is dE; the decoder's are
#   right.
# * One use of E is forgotten: only dE is wrong. A model with untied matrices would pass the check.
# * Queries and keys come from the encoder, values from the decoder. The shapes forbid it, unless S = T. Then it runs,
#   and the values, which no causal mask covers, carry the future. A gradient check passes, because backward belongs to
#   this forward. Lesson 07's leak test finds it:


# %%
def swapped(x, M, at, allowed=True):  # what attend must not be
    q, k, v = split_heads(linear(M, at, "q")), split_heads(linear(M, at, "k")), split_heads(linear(x, at, "v"))
    s = q @ k.swapaxes(1, 2) / np.sqrt(D)
    p = np.exp(s - s.max(axis=-1, keepdims=True)) * allowed
    return linear(merge_heads(p / p.sum(axis=-1, keepdims=True) @ v), at, "o"), None


params = trained
first, second = ids(["bos", *"pot"]), ids(["bos", *"pos"])  # only the last token differs
moved = {}
right_attend = attend
for attend in (right_attend, swapped):  # the layers use the function that is called `attend` now
    (before, _), (after, _) = forward(source, first, 1), forward(source, second, 1)
    moved[attend] = np.abs(after - before)[:-1].max()
attend = right_attend
print(f"a changed last token moves earlier rows by {moved[right_attend]:.2g}; swapped, by {moved[swapped]:.2g}")

# %% [markdown]
# ### How many parameters?
#
# With all biases, an attention has 4 (C² + C) parameters, a feed-forward network 2 C F + F + C, and a norm 2 C. An
# encoder layer has one attention and two norms, a decoder layer two and three. For the base model these are six times
# 3,152,384 and six times 4,204,032: 18.9 million in the encoder and 25.2 million in the decoder. With 37,000 rows of E
# the total is 63,082,496. The paper prints 65 million, which fits no vocabulary near the 37,000 of its text (see
# docs/paper.md), so a program isn't proven right because it prints exactly that.
#
# ## Exercise
#
# 1. Pre-norm, 30 minutes. Change the two layers to x + piece(Norm(x)), add one norm after each stack, and fix the
#    backward passes. You're done when `worst_gradient` passes.
# 2. Find the culprit, 20 minutes. Multiply the gradient of one tensor of the base model by 1.001, and find it with
#    directions u that are 0 in half of the tensors. How many forward passes do you need?
#
# Exercises with a checker: `minitransformer start 12`.
#
# ## Questions
#
# 1. The source has 7 tokens, the target 5. What is the shape of the weights of cross-attention, and of dM?
# 2. Can the encoder's backward pass start before the decoder's is done?
# 3. A source is padded. Does the row of dM of a padded token get any gradient?
# 4. Your model agrees with the complex step to 15 digits along random directions, but doesn't learn. Name three
#    possible reasons.
# 5. *Somewhere else.* A model sends its rows 12 times through the same layer, with one set of weights, as ALBERT does.
#    What is the gradient of these weights? What does the check along a random direction move?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. When lengths are equal. With as many tokens as inputs, or as many inputs as outputs, a forgotten transpose has the
#    right shape and wrong numbers.
# 2. The check compares backward with its own forward. The wrong mask is in both, and they agree.
# 3. The cosines of dx with the vector of ones and with x̂, which are 0 for a right backward pass at any width.
#
# ### Questions
#
# 1. (H, 5, 7), one matrix for each head. dM is (7, C).
# 2. No. It starts with dM, and the last share of dM comes from decoder layer 1, which backward visits last.
# 3. No. Nobody attends to it, so its weights, its dk and its dv are 0, and so is its row of dM.
# 4. For example: a mask that lets the decoder see the answer, targets that aren't shifted, a learning rate that is far
#    too large or too small, gradients that aren't set to 0 between steps, padding that counts in the loss.
# 5. The sum of 12 gradients, one for each time. θ has the weights once, so u has one part for them, and the imaginary
#    step is felt in all 12 places; in just one place, it would check one of 12 shares. An example with one number: y =
#    weight³ x, with weight 2 and x = 1, has three shares of weight² = 4, and the slope 12.
#
# ### Exercise
#
# Second: a tensor is found by halving, so eight forward passes are enough for up to 256 tensors.

# %%
# the pictures of this lesson
uses = {  # of E, and the share of dE that comes from each; lookup is a product with one-hot rows (lesson 04)
    "source": np.eye(7)[source].T @ example["source.de"],
    "target": np.eye(7)[target_in].T @ example["target.de"],
    "output": example["output.dz"].T @ example["decoder.norm3.y"],
}
sizes = {name: size(value) for name, value in {**example, **uses}.items()}
lesson.save(gradient_sizes(sizes))

figure, axes = plt.subplots(figsize=(6.4, 2.6))
axes.barh(np.arange(len(parts)) + 1, parts, color=ORANGE)
axes.set(title="Each decoder layer's share of dM", xlabel="size of the share / size of dM", ylabel="decoder layer")
lesson.save(figure, "memory")

# %%
figure, axes = canvas(8.0, 3.3)
FORK = {"through": example["decoder.ffn.dx"][1], "around": example["decoder.norm3.dx"][1]}  # what comes back


def vector(x, y, values, color, title):
    """A column of numbers around the middle (x, y), under a title."""
    for i, value in enumerate(values):
        fill = mix(color if value > 0 else GREY, 0.5 * abs(value) / np.abs(values).max())
        low = y + 0.19 * (len(values) / 2 - 1 - i)
        axes.add_patch(plt.Rectangle((x - 0.28, low), 0.56, 0.19, facecolor=fill, edgecolor="white"))
        axes.text(x, low + 0.09, number(value, 3), fontsize=8, ha="center", va="center")
    axes.text(x, y + 0.68, title, fontsize=9, color=color, ha="center", va="center")


def arrow(start, end, color):
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)


row = example["decoder.ffn.x"][1]
axes.text(1.8, 3.17, "forward: one vector goes two ways", fontsize=10, color=BLUE, ha="center", va="center")
axes.text(6.1, 3.17, "backward: two gradients come back and add", fontsize=10, color=ORANGE, ha="center", va="center")
vector(0.4, 1.45, row, BLUE, "x")
vector(4.6, 1.45, sum(FORK.values()), ORANGE, "dx")
axes.text(5.22, 1.45, "+", fontsize=16, color=ORANGE, ha="center", va="center")
arrow((5.1, 1.45), (4.94, 1.45), ORANGE)
for (way, gradient), y in zip(FORK.items(), (2.2, 0.65), strict=True):
    vector(1.8, y, row, BLUE, "x")
    vector(6.3, y, gradient, ORANGE, "")
    arrow((0.74, 1.45), (1.46, y), BLUE)
    arrow((5.96, y), (5.32, 1.5 if y > 1.45 else 1.4), ORANGE)
    arrow((2.14, y), (2.44, y), BLUE)
    arrow((6.94, y), (6.64, y), ORANGE)
    for x in (2.9, 7.4):
        axes.text(x, y, f"{way} the\nfeed-forward\nnetwork", fontsize=8, ha="center", va="center", color="#222222")
lesson.save(figure, "fork")
lesson.finish(globals())
