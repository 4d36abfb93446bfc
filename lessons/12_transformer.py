# %% [markdown]
# # Lesson 12: The whole machine
#
# [![Every place where a value is used more than once](../plots/12_transformer_map.png)](../plots/00_reverse_whole.png)
#
# **What is new when all pieces are put together, and how do I know that 63 million gradients are right?**
#
# 13 min, with a pencil 30, going deeper 5 · runs in 25 s (fast: 6 s) · needs 01, 02, 03, 04, 05, 06, 07, 08, 09, 10, 11
# · difficulty 4 of 5 · paper: sections 3.1, 3.2.3 and 3.4, figure 1, table 3
#
# ## Only one rule
#
# You have derived every part of the model and checked each one alone. Now we connect them: the encoder reads "stop"
# into the memory M, and the decoder reads M while it writes "pots". You may expect a long derivation, but we need only
# one rule. You met it in lesson 04 (the shared matrix E) and in lesson 11 (the residual path):
#
#     If a value is used in several places, its gradient is the sum of the gradients from all of them.
#
# The lit boxes and lines of the map are the places where this happens:
#
# * **x, before every sub-layer**, goes into the sub-layer and around it. Two uses, two gradients.
# * **x, inside self-attention**, becomes q, k and v. Three uses.
# * **M** becomes the keys and the values of cross-attention, in *every* decoder layer: 12 uses in the paper's model.
# * **E** embeds the source, embeds the target, and turns the decoder's output into logits. Three uses.
#
# [In the explorer: change one number in the row of E for the letter o. How many of the 35 logits move?
# Guess first.](../minitransformer/explorer/page/index.html#embed=output.z[1,3]&turn=E[3,0])
#
# This is also where hand-written backward passes go wrong, because a forgotten use raises no error. The forward pass is
# right, all shapes are right, and the model even learns.
#
# ## Guess first
#
# 1. In a decoder of six layers, somebody keeps only the last layer's gradient for M and forgets the other five. Which
#    parameters get wrong gradients? How wrong is dM: by a few percent, or by half?
# 2. The paper's base model has 63,082,496 parameters. Lesson 01's test compares one number from a forward pass with one
#    from backward. They agree to 12 digits. How many digits of a typical gradient can you then trust: 12, 5 or none?

# %% Imports
from architecture import gradient_sizes
from lab import ORANGE, ROWS, SOURCE, TARGET_IN, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show

import numpy as np

from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, named_config

lesson = begin("12_transformer")
example = running_example()

# %% [markdown]
# ## The pieces
#
# Here they are again, for one sequence, without a batch axis. You know them, so read quickly. `at` says where a piece
# is: "0.cross" is the cross-attention of layer 0. Its weights are in the dictionary `params`, and their gradients in
# `grads`. Each forward returns what its backward needs.
#
# Only `attend` deserves a closer look. In cross-attention, the decoder's x asks and M answers: queries come from x,
# keys and values from M. Its backward returns dx, from the queries, and dM, from the keys and the values.
# Self-attention is the same function with M = x. Then x has all three uses, and its gradient is dx + dM.

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
def split(x):  # (T, C) -> (H, T, D), lesson 08
    return x.reshape(len(x), H, D).swapaxes(0, 1)


def merge(x):  # (H, T, D) -> (T, C)
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def attend(x, M, at, allowed=True):  # lessons 05 to 08
    q, k, v = split(linear(x, at, "q")), split(linear(M, at, "k")), split(linear(M, at, "v"))
    s = q @ k.swapaxes(1, 2) / np.sqrt(D)
    p = np.exp(s - s.real.max(axis=-1, keepdims=True)) * allowed
    p = p / p.sum(axis=-1, keepdims=True)
    o = merge(p @ v)
    return linear(o, at, "o"), (x, M, q, k, v, p, o)


def attend_backward(dy, cache, at):  # -> dx, dM
    x, M, q, k, v, p, o = cache
    do = split(linear_backward(dy, o, at, "o"))
    dv = p.swapaxes(1, 2) @ do
    dp = do @ v.swapaxes(1, 2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dq = ds @ k / np.sqrt(D)
    dk = ds.swapaxes(1, 2) @ q / np.sqrt(D)
    dx = linear_backward(merge(dq), x, at, "q")
    dM = linear_backward(merge(dk), M, at, "k") + linear_backward(merge(dv), M, at, "v")
    return dx, dM


# %% [markdown]
# ## The machine
#
# The two layers follow the map upwards, and their backward passes follow it downwards. In `Norm(x + Sublayer(x))` the
# gradient of the sum, `dsum`, goes to x twice: around the sub-layer, and through it.


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
# Now the whole model. `backward` goes through `forward` from its last line to its first. The encoder has to wait until
# *all* decoder layers have given their share of dM, and dE is complete only at the very end.


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
# Load its weights and run. The row p→o gives o 70 % and p 30 %, as in lesson 00, and the loss is 0.1108. On the way
# back, each part computes the numbers that you know from its own lesson.


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
L = loss(p, target_out)
backward(p, target_out, cache)
show("probabilities p (T, V)", p, ROWS, VOCABULARY, digits=2)


# %%
def size(x):
    """‖x‖, the root of the sum of all squares."""
    return float(np.sqrt((x**2).sum()))


uses = {  # of E, and the share of dE that comes from each; lookup is a product with one-hot rows (lesson 04)
    "source": np.eye(7)[source].T @ example["source.de"],
    "target": np.eye(7)[target_in].T @ example["target.de"],
    "output": example["output.dz"].T @ example["decoder.norm3.y"],
}
sizes = {name: size(value) for name, value in {**example, **uses}.items()}
lesson.save(gradient_sizes(sizes))

# %% [markdown]
# ![The running example's machine, with the size of the gradient on every wire](../plots/12_transformer.png)
#
# Blue is the shape of what flows forward. Orange is the size of the gradient that flows back. The gradients of the
# three uses of E add up to dE, and the largest comes from the source, by the longest way.
#
# Is it right? Move each of the 826 parameters by an imaginary step, one after another (lesson 01). Then do it again
# with random weights and *two* layers, where dM has two shares to add.


# %%
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
library = load_example()
library_loss, _ = cross_entropy(library.model(library.source, library.target_in), library.target_out)
lesson.check("the loss equal to the library's", error(L, library_loss), 1e-12)

trained, trained_grads = params.copy(), grads.copy()
rng = np.random.default_rng(12)
for name, value in trained.items():
    for layer in "01":
        around = 1.0 if name.endswith("gamma") else 0.0
        params[name.replace("0.", f"{layer}.")] = around + 0.5 * rng.standard_normal(value.shape)
worst, two_shares = worst_gradient(layers=2)
lesson.check("all gradients of two layers with random weights", worst, 1e-12)
print("a share of dM from each layer:", [round(size(share), 3) for share in two_shares])

# %% [markdown]
# ## 63 million gradients in one number
#
# For the base model, which we take from the library, one forward pass per parameter is too much. But lesson 01 moved
# *all* parameters at once. Let θ be all of them in one long vector, g the gradient that backward computes, and u a
# random direction. If backward is right, then
#
#     Im L(θ + ih u) / h = Σ_j u_j ∂L/∂θ_j = Σ_j u_j g_j
#
# The left side is one forward pass in complex numbers.
#
# What does it show if both sides agree? They differ by the sum of the errors g_j − ∂L/∂θ_j, each times its u_j. If the
# u_j are independent normal numbers, this sum is normal, too. Its standard deviation is the *total error*, the root of
# the sum of all squared errors. Such a number is rarely near 0: fewer than 1 in 1,000 are within a thousandth of the
# standard deviation. So if the two sides agree to 1e-12 ‖g‖, a total error above 1e-9 ‖g‖ is very unlikely.
#
# It does *not* follow that each entry is right to 12 digits. A typical entry is ‖g‖ / 8,000 (the root of 63 million),
# so 1e-9 ‖g‖ is 8e-6 of it, which leaves five digits. (That was guess 2.) An entry that is tiny next to the others may
# be completely wrong.

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
# ## The surprise
#
# Suppose somebody keeps only the last decoder layer's share of dM and forgets the other five.

# %%
dM = sum(shares)
parts = [size(share) / size(dM) for share in shares[::-1]]  # the first layer first
missing = size(dM - shares[0]) / size(dM)
missing_encoder = size(right - mistaken) / size(right)
cosine = np.vdot(mistaken, right) / size(mistaken) / size(right)
figure, axes = plt.subplots(figsize=(6.4, 2.6))
axes.barh(np.arange(len(parts)) + 1, parts, color=ORANGE)
axes.set(title="Each decoder layer's share of dM", xlabel="size of the share / size of dM", ylabel="decoder layer")
lesson.save(figure, "memory")
print(f"without the other shares, dM is off by {missing:.0%}, and the encoder's gradient by {missing_encoder:.0%}")
print(f"cosine of the angle between the encoder's wrong gradient and the right one: {cosine:.2f}")

# %% [markdown]
# ![Each decoder layer's share of dM](../plots/12_transformer_memory.png)
#
# You should see bars that grow from layer 1 to layer 6. In this untrained model each decoder layer hands down about
# half of the gradient that arrives, and the share that it sends to M shrinks with it. If only the top bar is there, you
# have made the mistake. Then dM is off by 57 % of its size, and the gradient of the encoder by 64 %. dE is wrong, too.
# The gradients inside the decoder do not depend on dM, and stay right. (That was guess 1.)
#
# How would you notice? The angle between the encoder's wrong gradient and the right one has a cosine of 0.77. A small
# step against the wrong one still goes downhill. The loss falls, the mistake stays, and no curve shows it. Only a
# gradient check does.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 13.
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
# What a layer reads from M also goes through all layers above it. That path is not lost: it goes through the decoder's
# y, and its gradient comes back with dy.

# %% [markdown]
# ### What the check has not seen
#
# 8.7 million of the 63.1 million gradients are exactly 0 on our two sentences. Nearly all belong to hidden units that
# ReLU switches off for all of their few tokens. The check confirms the zeros, but not what these entries are when a
# unit is on. We trust them because the same code computes all other units.

# %%
zeros = sum(np.count_nonzero(parameter.grad == 0) for parameter in model.parameters())
print(f"{zeros:,} of {model.num_parameters():,} gradients are exactly 0")

# %% [markdown]
# ### Three mistakes and what they look like
#
# * A decoder layer's share of dM is lost: all gradients of the encoder are wrong, and dE; those of the decoder are
#   right.
# * One use of E is forgotten: only dE is wrong. A model with untied matrices would pass the check.
# * Queries and keys come from the encoder, values from the decoder. The shapes forbid it, unless S = T. Then it runs,
#   and the values, which no causal mask covers, carry the future. A gradient check passes, because backward belongs to
#   this forward. Lesson 07's leak test finds it:


# %%
def swapped(x, M, at, allowed=True):  # what attend must not be
    q, k, v = split(linear(M, at, "q")), split(linear(M, at, "k")), split(linear(x, at, "v"))
    s = q @ k.swapaxes(1, 2) / np.sqrt(D)
    p = np.exp(s - s.max(axis=-1, keepdims=True)) * allowed
    return linear(merge(p / p.sum(axis=-1, keepdims=True) @ v), at, "o"), None


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
# the total is 63,082,496, where the paper's Table 3 prints 65 million. Ten of the eleven rows of that table agree with
# a vocabulary of 40,932 to 41,160 tokens. The text says "about 37000", and the big model's row fits neither number. So
# a program is not proven right because it prints exactly 65 million.


# %%
def count(V, layers=6, C=512, F=2048, heads=8, d_k=64):
    """Parameters of a row of Table 3, where only d_k of queries and keys may differ from C / heads."""
    attention = 2 * (C + 1) * heads * d_k + 2 * (C + 1) * C
    feed_forward = 2 * C * F + F + C
    return V * C + layers * (3 * attention + 2 * feed_forward + 5 * 2 * C)


TABLE = {  # millions of parameters as printed: what differs from base
    "base": (65, {}),
    "(B) d_k = 16": (58, {"d_k": 16}),
    "(B) d_k = 32": (60, {"d_k": 32}),
    "(C) 2 layers": (36, {"layers": 2}),
    "(C) 4 layers": (50, {"layers": 4}),
    "(C) 8 layers": (80, {"layers": 8}),
    "(C) d_model = 256": (28, {"C": 256, "d_k": 32}),
    "(C) d_model = 1024": (168, {"C": 1024, "d_k": 128}),
    "(C) d_ff = 1024": (53, {"F": 1024}),
    "(C) d_ff = 4096": (90, {"F": 4096}),
    "big": (213, {"C": 1024, "F": 4096, "heads": 16}),
}
fits = {}  # the smallest and the largest vocabulary with which a row rounds to the printed number
for row, (millions, what) in TABLE.items():
    edges = [((millions + half) * 1e6 - count(0, **what)) / what.get("C", 512) for half in (-0.5, 0.5)]
    fits[row] = int(np.ceil(edges[0])), int(np.floor(edges[1]))
    print(f"{row:<20} {millions:4d} M   vocabulary {fits[row][0]:,} to {fits[row][1]:,}")

# %% [markdown]
# ### In the wild
#
# * The Annotated Transformer shows the paper's figure, which is post-norm, and its code is pre-norm.
# * PyTorch's `nn.Transformer` has no embeddings, no positions and no output matrix. It adds a layer norm after each
#   stack, which the paper does not have.
# * A framework with autograd adds up dM and dE by itself. It cannot know that two matrices were meant to be one. If a
#   model loses the tie when it is copied or loaded, there is no error, only 18.9 million more parameters.
#
# ## Exercise
#
# 1. Pre-norm, 30 minutes. Change the two layers to x + piece(Norm(x)), add one norm after each stack, and mend the
#    backward passes. It passes when `worst_gradient` does.
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
# 4. Your model agrees with the complex step to 15 digits along random directions, and does not learn. Name three
#    possible reasons.

# %% [markdown]
# ## Answers
#
# 1. (H, 5, 7), one matrix for each head. dM is (7, C).
# 2. No. It starts with dM, and the last share of dM comes from decoder layer 1, which backward visits last.
# 3. No. Nobody attends to it, so its weights, its dk and its dv are 0, and so is its row of dM.
# 4. For example: a mask that lets the decoder see the answer, targets that are not shifted, a learning rate that is far
#    too large or too small, gradients that are not set to 0 between steps, padding that counts in the loss.
#
# The exercise. Second: a tensor is found by halving, so eight forward passes are enough for up to 256 tensors.

# %%
lesson.finish(globals())
