# %% [markdown]
# # Lesson 12: The whole machine
#
# * Question: what is new when the pieces stand together, and how do I know that all 63 million gradients are right?
# * You derive: both gradients of cross-attention; the memory's; the tied matrix's; the parameters of Table 3's rows
# * Reading: 34 min, going deeper 0 min
# * Run: 20 s (fast: 8 s)
# * Needs: 01 to 11
# * Difficulty: 4 of 5
# * Paper: sections 3.1, 3.2.3, 3.4 and 6.2, figure 1, table 3

# %%
import time
from lab import BLUE, GREY, ORANGE, begin, error, plt

import numpy as np

from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, TransformerConfig, named_config

lesson = begin("12_transformer")

# %% [markdown]
# ## Predict
#
# Every piece of figure 1 is derived by now. This lesson joins them: an encoder reads the source, a decoder writes the
# target and reads what the encoder made of the source. Write down a guess for each; all three are answered below.
#
# 1. The decoder has N layers, and each of them reads the encoder's output. Somebody's backward pass keeps what the
#    last layer says about that output and forgets the others. Which parameters get wrong gradients, and how wrong?
# 2. The paper's base model has 63,082,496 parameters. How many forward passes does it take to check all of their
#    gradients to a dozen digits?
# 3. The paper prints 65 million parameters for it, and says that source and target share a vocabulary of about 37,000
#    tokens. Counting gives 63.1 million. Where could the other two million be?

# %% [markdown]
# ## Small numbers
#
# All that is new fits into a machine whose every tensor is one number. e is its embedding, w its encoder:
#
#     m  = w e               source embedding e, then the encoder: m is the memory
#     y₀ = e                 target embedding: the same e
#     y₁ = y₀ + m            decoder layer 1 reads m
#     y₂ = y₁ + m y₁ / 4     decoder layer 2 reads m once more
#     L  = e y₂              output: the same e a third time
#
# With e = 2 and w = 3: m = 6, y₀ = 2, y₁ = 8, y₂ = 8 + 6 · 8 / 4 = 20, L = 40. Now backwards, last line first; as
# always, d of a thing is the derivative of L by it:
#
#     L  = e y₂              dy₂ = e = 2                      e gets y₂ = 20
#     y₂ = y₁ + m y₁ / 4     dy₁ = dy₂ (1 + m / 4) = 5        m gets dy₂ y₁ / 4 = 4
#     y₁ = y₀ + m            dy₀ = dy₁ = 5                    m gets dy₁ = 5
#     y₀ = e                                                  e gets dy₀ = 5
#     m  = w e               dm = 4 + 5 = 9                   e gets dm w = 27, and dw = dm e = 18
#
# e was used three times and gets the sum, de = 20 + 5 + 27 = 52. m was used twice and gets the sum, 9. Whoever keeps
# only layer 2's part has dm = 4, so dw = 8 where it should be 18, and de = 37 where it should be 52.


# %%
def machine(e, w):
    m = w * e
    y1 = e + m
    y2 = y1 + m * y1 / 4
    return e * y2


h = 1e-30  # the complex step of lesson 01: f'(x) = Im f(x + ih) / h
print(f"L = {machine(2, 3)}, dw = {machine(2, 3 + 1j * h).imag / h}, de = {machine(2 + 1j * h, 3).imag / h}")
lesson.quote("and dw = dm e = 18", machine(2, 3 + 1j * h).imag / h)
lesson.quote("de = 20 + 5 + 27 = 52", 20, 5, 27, machine(2 + 1j * h, 3).imag / h)
lesson.quote("so dw = 8 where it should be 18, and de = 37 where it should be 52", 4 * 2, 18, 20 + 5 + 4 * 3, 52)

# %% [markdown]
# ## The derivation
# ### Part 1: figure 1 as formulas
#
# B sequences in a batch, S tokens in a source, T in a target, C = d_model features, H heads of D = C / H features,
# F = d_ff, V tokens in the vocabulary, N layers in each stack. E (V, C) is the one matrix of embeddings, PE the table
# of positions. Attend(x, m) is multi-head attention with queries from x and keys and values from m; FFN is
# max(0, a W₁ + b₁) W₂ + b₂; Norm is LayerNorm, and every Norm, Attend and FFN has parameters of its own. E[source] is
# the row of E for each token. The small n above x and y counts layers; it is no power.
#
#     source    x⁰ = √C E[source] + PE                                      (B, S, C)
#               a  = Norm(xⁿ⁻¹ + Attend(xⁿ⁻¹, xⁿ⁻¹))
#               xⁿ = Norm(a + FFN(a))                     n = 1 ... N
#     memory    m  = xᴺ                                                     (B, S, C)
#     target    y⁰ = √C E[target] + PE                                      (B, T, C)
#               a  = Norm(yⁿ⁻¹ + Attend(yⁿ⁻¹, yⁿ⁻¹))      token t sees tokens up to t
#               c  = Norm(a + Attend(a, m))               all N layers read the same m
#               yⁿ = Norm(c + FFN(c))                     n = 1 ... N
#     logits    z  = yᴺ Eᵀ                                                  (B, T, V)
#
# Nobody attends to padding, token 0 (lesson 07). At position t the decoder has read the target's tokens 0 to t and is
# asked for token t + 1, so it reads all tokens but the last and is compared with all but the first. The loss L is
# lesson 03's: cross-entropy with label smoothing, the mean over the tokens asked for that are no padding. Dropout
# (lesson 11) is left out here.

# %% [markdown]
# ### Part 2: who gives Q, and who K and V
#
# One sequence, one head. With weights p (rows sum to 1), attention is
#
#     o_td = Σ_s p_ts v_sd        p_ts = softmax over s of q_t · k_s / √D
#
# The output has a row for each query t. After one more matrix, which works on each row alone, it is added to the
# decoder's a (part 1), which has a row for each target token: so the queries come from the decoder. p_ts multiplies
# v_s, so keys and values have one common index s, and to look into the source is to let s run over the source: K and V
# both come from the memory. With the head's three matrices, (C, D) each, and their biases left out:
#
#     q_td = Σ_c a_tc Wq_cd       k_sd = Σ_c m_sc Wk_cd       v_sd = Σ_c m_sc Wv_cd
#
# Lesson 06 has the way back from do (dL/do) to q, k and v, with the scores u_ts = q_t · k_s / √D:
#
#     dv_sd = Σ_t p_ts do_td      dp_ts = Σ_d do_td v_sd      du_ts = p_ts (dp_ts - Σ_j p_tj dp_tj)
#     dq_td = Σ_s du_ts k_sd / √D                             dk_sd = Σ_t du_ts q_td / √D

# %% [markdown]
# The new step is only to see who used what inside Attend. There a_tc is in row t of q and nowhere else (that a also
# stands in the sum a + Attend(a, m) is the residual's path, lesson 11). m_sc is in row s of k AND in row s of v: two
# paths, two terms. By the linear layer's rule (lesson 02), with da what Attend returns for a:
#
#     da_tc = Σ_d dq_td Wq_cd                                 da = dq Wqᵀ
#     dm_sc = Σ_d dk_sd Wk_cd + Σ_d dv_sd Wv_cd               dm = dk Wkᵀ + dv Wvᵀ
#
# Several heads: each adds its own columns d, so the same lines hold with all C columns side by side. Self-attention is
# the case a = m = x: then x has all three paths, and its gradient is da + dm. One function serves both.

# %% [markdown]
# ### Part 3: memory's gradient gathers from every decoder layer
#
# Layer n is a function of two things, yⁿ = fₙ(yⁿ⁻¹, m). Write ⟨a, b⟩ = Σ_j a_j b_j for two arrays of one shape, and
# δ for a small change. To first order a change of its inputs changes layer n's output by
#
#     δyⁿ = Jₙ δyⁿ⁻¹ + Mₙ δm        Jₙ = ∂fₙ/∂yⁿ⁻¹,  Mₙ = ∂fₙ/∂m, two Jacobian matrices
#
# and a matrix may change sides in ⟨ , ⟩ by being transposed: Σ_i a_i Σ_j J_ij b_j = Σ_j (Σ_i J_ij a_i) b_j, that is
# ⟨a, J b⟩ = ⟨Jᵀ a, b⟩. Hold all parameters fixed, and follow a change δm to the loss, from the last layer down. L sees
# it only through yᴺ, so δL = ⟨dyᴺ, δyᴺ⟩, as the gradient is what a change is multiplied by:
#
#     δL = ⟨dyᴺ, δyᴺ⟩ = ⟨dyᴺ, J_N δyᴺ⁻¹⟩ + ⟨dyᴺ, M_N δm⟩ = ⟨dyᴺ⁻¹, δyᴺ⁻¹⟩ + ⟨M_Nᵀ dyᴺ, δm⟩
#
# where dyᴺ⁻¹ = J_Nᵀ dyᴺ is what layer N's backward returns for its first input, and M_Nᵀ dyᴺ for its second. The first
# term has the form we began with, one layer lower. Treat it alike N times:
#
#     δL = ⟨dy⁰, δy⁰⟩ + Σₙ ⟨Mₙᵀ dyⁿ, δm⟩
#
# y⁰ is the target's embedding, which m does not touch: δy⁰ = 0. What multiplies δm is the gradient:
#
#     dm = Σₙ Mₙᵀ dyⁿ        the sum over ALL decoder layers of what each returns for the memory
#
# So the decoder must be walked through completely before the encoder's backward may start. Keeping only the last
# layer's term damages dm, and with it every gradient of the encoder, and of E through the source. The decoder's own
# gradients do not contain dm, and stay right.

# %% [markdown]
# ### Part 4: the tied matrix, and the order
#
# E stands in three places. Give them three names for a moment: L(E) = Λ(E₁, E₂, E₃) at E₁ = E₂ = E₃ = E. If E changes
# by δE, all three do, so δL = ⟨∂Λ/∂E₁, δE⟩ + ⟨∂Λ/∂E₂, δE⟩ + ⟨∂Λ/∂E₃, δE⟩, and the gradient is the sum of the three
# that untied matrices would have. With X_btv = 1 where token t of source b is v, else 0, and Y
# likewise for the target, the lookup is x⁰ = √C X E + PE (lesson 04). So, with dx⁰, dy⁰ and dz:
#
#     dE_vc = √C Σ_bt X_btv dx⁰_btc + √C Σ_bt Y_btv dy⁰_btc + Σ_bt dz_btv yᴺ_btc
#              source                  target                  output: z_btv = Σ_c yᴺ_btc E_vc
#
# The first two have rows of 0 for tokens that do not occur. The third has not: dz_btv, probability minus wanted
# probability, all divided by the number of tokens that count (lesson 03), is in general not 0 for any token v.
#
# Backward is forward read upwards. What is known at each line is all that the line needs:
#
#     1  dz from the loss                          (lesson 03)
#     2  output:                 dE += dzᵀ yᴺ,  dyᴺ = dz E
#     3  decoder layer N ... 1:  dyⁿ -> dyⁿ⁻¹, and Mₙᵀ dyⁿ is added to dm
#     4  target embedding:       dE += √C Yᵀ dy⁰
#     5  encoder layer N ... 1:  starts from dxᴺ = dm, which only now is complete
#     6  source embedding:       dE += √C Xᵀ dx⁰

# %% [markdown]
# ## From scratch
#
# Parameters are arrays in a dictionary `p`, gradients in `g` with the same keys; `at` is the prefix of a piece's keys.
# A forward returns its result and its cache, a backward takes the cache and adds to `g`. First the two pieces of
# lessons 02 and 10, then FFN, whose ReLU looks at the real part, so that complex steps pass. The keys are the library's
# names, so that the two can be compared.


# %%
def linear(x, p, at):  # y = x W + b
    return x @ p[at + ".W"] + p[at + ".b"]


def linear_backward(dy, x, p, g, at):  # dW = xᵀ dy, db = the sum of dy, dx = dy Wᵀ
    g[at + ".W"] += np.einsum("bti,bto->io", x, dy)
    g[at + ".b"] += dy.sum(axis=(0, 1))
    return dy @ p[at + ".W"].T


def norm(x, p, at):  # y = γ x̂ + β, with x̂ = (x - mean) r and r = 1 / √(variance + 10⁻⁵)
    c = x - x.mean(axis=-1, keepdims=True)
    r = 1.0 / np.sqrt((c * c).mean(axis=-1, keepdims=True) + 1e-5)
    return p[at + ".gamma"] * c * r + p[at + ".beta"], (c * r, r)


def norm_backward(dy, cache, p, g, at):  # dx = r (dx̂ - mean(dx̂) - x̂ mean(dx̂ x̂)), with dx̂ = γ dy
    x_hat, r = cache
    g[at + ".gamma"] += (dy * x_hat).sum(axis=(0, 1))
    g[at + ".beta"] += dy.sum(axis=(0, 1))
    d = p[at + ".gamma"] * dy
    return r * (d - d.mean(axis=-1, keepdims=True) - x_hat * (d * x_hat).mean(axis=-1, keepdims=True))


def ffn(x, p, at):
    u = linear(x, p, at + ".expand")
    a = np.where(u.real > 0, u, 0)
    return linear(a, p, at + ".contract"), (x, u, a)


def ffn_backward(dy, cache, p, g, at):
    x, u, a = cache
    da = linear_backward(dy, a, p, g, at + ".contract")
    return linear_backward(np.where(u > 0, da, 0), x, p, g, at + ".expand")


# %% [markdown]
# Attention, as in part 2, for H heads. `split` turns (B, T, C) into (B, H, T, D), `merge` turns back (lesson 08); each
# is the other's backward. `s` are the scores, u above. A weight that is not allowed is multiplied by 0 after the
# exponential. (That is enough here. The library also leaves such scores out when it looks for the row's largest, and
# gives weights 0 to a row in which nothing is allowed; lesson 07.)

# %%
B, S, T, H, D, F, V, N = 4, 7, 5, 2, 3, 8, 11, 2
C = H * D


def split(x):
    return x.reshape(*x.shape[:2], H, -1).swapaxes(1, 2)


def merge(x):
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def attend(x, m, allowed, p, at):  # queries from x (B, T, C), keys and values from m (B, S, C)
    q, k, v = (split(linear(of, p, f"{at}.{name}")) for name, of in (("q", x), ("k", m), ("v", m)))
    s = q @ k.swapaxes(-1, -2) / D**0.5  # (B, H, T, S)
    weights = np.exp(s - s.real.max(axis=-1, keepdims=True)) * allowed
    weights = weights / weights.sum(axis=-1, keepdims=True)
    o = merge(weights @ v)
    return linear(o, p, at + ".output"), (x, m, q, k, v, weights, o)


def attend_backward(dy, cache, p, g, at):  # -> dx, dm
    x, m, q, k, v, weights, o = cache
    do = split(linear_backward(dy, o, p, g, at + ".output"))
    dv = weights.swapaxes(-1, -2) @ do
    dweights = do @ v.swapaxes(-1, -2)
    ds = weights * (dweights - (weights * dweights).sum(axis=-1, keepdims=True))
    dq, dk = ds @ k / D**0.5, ds.swapaxes(-1, -2) @ q / D**0.5
    dx = linear_backward(merge(dq), x, p, g, at + ".q")
    dm = linear_backward(merge(dk), m, p, g, at + ".k") + linear_backward(merge(dv), m, p, g, at + ".v")
    return dx, dm


# %% [markdown]
# The two layers. Each line `a = Norm(x + piece(x))` goes back in two steps: through Norm to the sum, and from the sum
# to x by two paths, past the piece (the gradient itself) and through it (lesson 11). In self-attention the piece has
# x as both of its inputs. In cross-attention only the first input has the path past it: m does not stand in the sum.


# %%
def encoder_layer(x, allowed, p, at):
    s, cache_s = attend(x, x, allowed, p, at + ".self_attention.sublayer")
    a, cache_sn = norm(x + s, p, at + ".self_attention.norm")
    f, cache_f = ffn(a, p, at + ".feed_forward.sublayer")
    y, cache_fn = norm(a + f, p, at + ".feed_forward.norm")
    return y, (cache_s, cache_sn, cache_f, cache_fn)


def encoder_layer_backward(dy, cache, p, g, at):
    cache_s, cache_sn, cache_f, cache_fn = cache
    dsum = norm_backward(dy, cache_fn, p, g, at + ".feed_forward.norm")
    da = dsum + ffn_backward(dsum, cache_f, p, g, at + ".feed_forward.sublayer")
    dsum = norm_backward(da, cache_sn, p, g, at + ".self_attention.norm")
    dx, dm = attend_backward(dsum, cache_s, p, g, at + ".self_attention.sublayer")
    return dsum + dx + dm


def decoder_layer(y, m, allowed, m_allowed, p, at, cross=attend):
    s, cache_s = attend(y, y, allowed, p, at + ".self_attention.sublayer")
    a, cache_sn = norm(y + s, p, at + ".self_attention.norm")
    r, cache_r = cross(a, m, m_allowed, p, at + ".cross_attention.sublayer")
    c, cache_rn = norm(a + r, p, at + ".cross_attention.norm")
    f, cache_f = ffn(c, p, at + ".feed_forward.sublayer")
    out, cache_fn = norm(c + f, p, at + ".feed_forward.norm")
    return out, (cache_s, cache_sn, cache_r, cache_rn, cache_f, cache_fn)


def decoder_layer_backward(dy, cache, p, g, at):  # -> dy of the layer below, and this layer's part of dm
    cache_s, cache_sn, cache_r, cache_rn, cache_f, cache_fn = cache
    dsum = norm_backward(dy, cache_fn, p, g, at + ".feed_forward.norm")
    dc = dsum + ffn_backward(dsum, cache_f, p, g, at + ".feed_forward.sublayer")
    dsum = norm_backward(dc, cache_rn, p, g, at + ".cross_attention.norm")
    da, dm = attend_backward(dsum, cache_r, p, g, at + ".cross_attention.sublayer")
    dsum = norm_backward(dsum + da, cache_sn, p, g, at + ".self_attention.norm")
    dx, dx_kv = attend_backward(dsum, cache_s, p, g, at + ".self_attention.sublayer")
    return dsum + dx + dx_kv, dm


# %% [markdown]
# The whole machine, in the order of part 1, and back in the order of part 4. A lookup is written as the product with
# one-hot rows, so that a token which comes twice gets both gradients. PE is lesson 09's table: sin and cos of
# t / 10000^(2i / C) in the features 2i and 2i + 1. `gather` makes dm of the layers' parts, lowest layer first; it and
# `cross`, the function that cross-attention calls, are there so that we can make mistakes on purpose.

# %%
SMOOTHING, E = 0.1, "source_embedding.tokens.E"
angles = np.arange(max(S, T))[:, None] / 10000.0 ** (np.arange(0, C, 2) / C)  # (positions, C / 2)
PE = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(-1, C)


def forward(p, source, target, cross=attend):
    X, Y = np.eye(V)[source], np.eye(V)[target]
    see_source = (source != 0)[:, None, None, :]  # (B, 1, 1, S), True = may attend
    see_target = (target != 0)[:, None, None, :] & np.tri(target.shape[1], dtype=bool)
    m, y, enc, dec = C**0.5 * X @ p[E] + PE[: source.shape[1]], C**0.5 * Y @ p[E] + PE[: target.shape[1]], [], []
    for n in range(N):
        m, cache = encoder_layer(m, see_source, p, f"encoder.layers.{n}")
        enc.append(cache)
    for n in range(N):
        y, cache = decoder_layer(y, m, see_target, see_source, p, f"decoder.layers.{n}", cross)
        dec.append(cache)
    return y @ p[E].T, (X, Y, enc, dec, y)


def loss(z, answer):
    z = z - z.real.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    wanted = (1 - SMOOTHING) * np.eye(V)[answer] + SMOOTHING / V
    share = ((answer != 0) / (answer != 0).sum())[..., None]
    return -(share * wanted * log_p).sum(), share * (np.exp(log_p) - wanted)  # L and dz


def backward(dz, p, cache, gather=sum):
    X, Y, enc, dec, y = cache
    g = {name: np.zeros_like(value) for name, value in p.items()}
    use = {"output": np.einsum("btv,btc->vc", dz, y)}
    dy, parts = dz @ p[E], [None] * N
    for n in reversed(range(N)):
        dy, parts[n] = decoder_layer_backward(dy, dec[n], p, g, f"decoder.layers.{n}")
    use["target"] = C**0.5 * np.einsum("btv,btc->vc", Y, dy)
    dx = gather(parts)  # dm
    for n in reversed(range(N)):
        dx = encoder_layer_backward(dx, enc[n], p, g, f"encoder.layers.{n}")
    use["source"] = C**0.5 * np.einsum("btv,btc->vc", X, dx)
    g[E] = sum(use.values())
    return g, use, parts


# %% [markdown]
# ## Checked
#
# A small model with all sizes different, random order-one parameters, padding in source and target, repeated tokens.
# `shapes` is the complete list of what it learns; a formula for how many numbers that is comes with Table 3.
# Then every single parameter, one complex step each: as many forward passes as there are parameters.


# %%
def shapes(N, C, F, V):
    sizes = {E: (V, C)}
    for stack, pieces in (("encoder", ("self_attention",)), ("decoder", ("self_attention", "cross_attention"))):
        for at in (f"{stack}.layers.{n}.{piece}" for n in range(N) for piece in (*pieces, "feed_forward")):
            sizes |= {f"{at}.norm.gamma": (C,), f"{at}.norm.beta": (C,)}
            maps = dict.fromkeys(("q", "k", "v", "output"), (C, C))
            for name, (fan_in, fan_out) in ({"expand": (C, F), "contract": (F, C)} if "feed" in at else maps).items():
                sizes |= {f"{at}.sublayer.{name}.W": (fan_in, fan_out), f"{at}.sublayer.{name}.b": (fan_out,)}
    return sizes


rng = np.random.default_rng(12)
p = {name: 0.5 * rng.standard_normal(size) + name.endswith("gamma") for name, size in shapes(N, C, F, V).items()}
source, target = rng.integers(3, V, (B, S)), rng.integers(3, V, (B, T + 1))
source[0, 4:] = target[1, 3:] = 0
read, answer = target[:, :-1], target[:, 1:]
z, cache = forward(p, source, read)
L, dz = loss(z, answer)
g, use, parts = backward(dz, p, cache)


def by_complex_step(name):
    derivative = np.empty(p[name].shape)
    for index in np.ndindex(derivative.shape):
        nudged = p[name].astype(complex)
        nudged[index] += 1j * h
        derivative[index] = loss(forward({**p, name: nudged}, source, read)[0], answer)[0].imag / h
    return derivative


true = {name: by_complex_step(name) for name in p}
largest = max(np.abs(t).max() for t in true.values())  # the scale where a tensor's gradient is 0 (a key's bias)
worst = max(np.abs(g[n] - t).max() / max(np.abs(t).max(), largest / 1000) for n, t in true.items())
size = sum(value.size for value in p.values())
print(f"{size} parameters in {len(p)} tensors, L = {L:.4f}")
lesson.check("every gradient of every parameter, worst relative error", worst, 1e-12)
lesson.check("a padded source token's share of dm", np.abs(sum(parts)[0, 4:]).max(), 0.0)

# %% [markdown]
# The library keeps W_q, W_k and W_v side by side in one matrix, as one large product is faster than three small ones.
# `packed` puts ours side by side. Same weights, same ids: same logits, same gradients.


# %%
def packed(name, ours):
    at, letters, end = name.rsplit(".", 2)  # as "....sublayer", "qkv" or "kv", "W" or "b"
    return ours[name] if name in ours else np.concatenate([ours[f"{at}.{x}.{end}"] for x in letters], axis=-1)


config = TransformerConfig(V, d_model=C, num_heads=H, d_ff=F, num_layers=N)
library = Transformer(config, dtype=np.float64)
library.load_state_dict({name: packed(name, p) for name, _ in library.named_parameters()})
library_z, library_cache = library.forward(source, read)
library_L, loss_cache = cross_entropy(library_z, answer, SMOOTHING)
library.backward(cross_entropy_backward(1.0, loss_cache), library_cache)
lesson.check("logits equal to the library's", error(z, library_z), 1e-12)
lesson.check("loss equal to the library's", error(L, library_L), 1e-12)
worst = max(np.abs(packed(name, g) - q.grad).max() for name, q in library.named_parameters())
lesson.check("all gradients equal to the library's", worst / largest, 1e-12)

# %% [markdown]
# Now the three mistakes. First, memory's gradient: keep the last layer's part, or let each layer overwrite the one
# before (backward runs from the last to the first, so the first remains). The loss is the same number as before: no
# forward pass can notice. Here dm from the last layer alone is off by 52 % of the right dm's length, and from the
# first alone by 91 %. What is wrong then is E and every tensor of the encoder (but its key biases, whose gradient is
# 0), and none of the decoder. That answers guess 1.
#
# Second, the tied matrix: forget one of its three uses.
#
# Third, "queries and keys from the encoder, values from the decoder" or the like. Part 2 says the shapes forbid it;
# they do, unless S = T. Then it runs, and the values, which no causal mask covers, carry the future: change the last
# target token, and see whether the logits of the tokens before it move.

# %%
dm = sum(parts)
shares = {"the last": lambda d: d[-1], "the first": lambda d: d[0]}
off = {}
for which, gather in shares.items():
    wrong, _, _ = backward(dz, p, cache, gather)
    off[which] = np.linalg.norm(gather(parts) - dm) / np.linalg.norm(dm)
    bad = [n for n in p if np.abs(wrong[n] - g[n]).max() > 1e-9 * largest]
    print(f"dm from {which} layer alone: dm off by {off[which]:.0%}, {len(bad)} tensors wrong")
    lesson.check("tensors of the decoder that are wrong", sum(n.startswith("decoder") for n in bad), 0)
lesson.quote("from the last layer alone is off by 52 %", 100 * off["the last"])
lesson.quote("first alone by 91 %", 100 * off["the first"])
for name, part in use.items():
    print(f"E without its use as {name}: off by {np.linalg.norm(part) / np.linalg.norm(g[E]):.0%}")


def swapped(a, m, m_allowed, p, at):  # queries and keys from the encoder, values from the decoder
    q, k, v = (split(linear(of, p, f"{at}.{name}")) for name, of in (("q", m), ("k", m), ("v", a)))
    weights = np.exp(q @ k.swapaxes(-1, -2) / D**0.5) * m_allowed
    return linear(merge(weights / weights.sum(axis=-1, keepdims=True) @ v), p, at + ".output"), None


later = read.copy()
later[:, -1] = 3 + (later[:, -1] - 2) % (V - 3)  # another token at the end
moved = {}
for cross in (attend, swapped):
    before, after = (forward(p, source[:, :T], ids, cross)[0][:, :-1] for ids in (read, later))
    moved[cross] = np.abs(after - before).max()
lesson.check("logits before a changed token move by", moved[attend], 1e-12)
lesson.check("and with queries and keys from the encoder by", moved[swapped], at_least=0.1)

# %% [markdown]
# ## All gradients in one number
# ### Part 5: the derivative along one direction
#
# Let θ be all parameters as one long vector of n numbers, ∇L the true gradient, g the one that backward computes, and
# v any vector of n numbers. Walk from θ in the direction v: φ(t) = L(θ + t v). By the chain rule its slope is
#
#     φ'(0) = Σ_j ∂L/∂θ_j v_j = ⟨∇L, v⟩         and by the complex step     φ'(0) = Im L(θ + i h v) / h
#
# because by Taylor φ(ih) = φ(0) + ih φ'(0) - h² φ''(0)/2 - ..., where the next imaginary term is of order h³: 10⁻⁹⁰
# beside 10⁻³⁰. So one forward pass, in which ALL parameters are complex at once, gives ⟨∇L, v⟩. It has to equal ⟨g, v⟩,
# which takes one backward pass and a dot product.
#
# Why is one number enough? Write g = ∇L + e, with e the errors of all n entries. The two numbers differ by ⟨e, v⟩.
# Draw the entries of v independently from the normal distribution with mean 0 and variance 1. Then e_j v_j is normal
# with variance e_j²; variances of independent numbers add; and a sum of independent normal numbers is normal:
#
#     ⟨e, v⟩ = Σ_j e_j v_j = ‖e‖ ξ        ‖e‖ = √(Σ_j e_j²),  ξ normal with mean 0 and variance 1
#
# The errors hide only if ξ happens to be near 0, that is, if v happens to be nearly orthogonal to e. The density of ξ
# is nowhere above 1/√(2π), so the chance of |ξ| < ε is below 2ε/√(2π), about 0.8 ε. Say the two numbers agree to 10⁻¹²
# of ‖g‖. Errors as large as 10⁻⁹ of ‖g‖ would then need |ξ| < 10⁻³: a chance below 1 in 1,000. A second direction
# squares it.

# %% [markdown]
# ### Part 6: the base model
#
# The library's base model, in float64, on two short pairs of sentences. Biases, γ and β get random values first, as 0
# and 1 hide mistakes. The decoder's backward is written out, to keep each layer's part of dm. Then each parameter is
# replaced by θ + i h v, tensor by tensor, while ⟨g, v⟩ is summed up. `minitransformer gradcheck base` does the same
# with dropout, along three directions. (Fast mode takes the tiny model here.) So the answer to guess 2 is: one.

# %%
kind, words = lesson.pick(full=("base", 37000), fast=("tiny", 370))
model = Transformer(named_config(kind, words), dtype=np.float64)
for name, q in model.named_parameters():
    if name.endswith((".b", ".beta", ".gamma")):
        q.data += 0.3 * rng.standard_normal(q.data.shape)
source, target = rng.integers(3, words, (2, 7)), rng.integers(3, words, (2, 6))
source[0, 5:] = target[1, 4:] = 0


def model_loss():
    logits, cache = model.forward(source, target[:, :-1])
    return *cross_entropy(logits, target[:, 1:], SMOOTHING), cache


L, loss_cache, cache = model_loss()
dy = model.output.backward(cross_entropy_backward(1.0, loss_cache), cache.output)
encode, decode = cache.features
parts = []
for layer in reversed(model.decoder.layers):
    dy, part = layer.backward(dy, decode.decoder.layers.pop())
    parts.insert(0, part)  # so that parts[0] is layer 1's
model.target_embedding.backward(dy, decode.embedding)
model.encode_backward(sum(parts), encode)

slope, square, zeros, zeros_in_ffn, entries = 0.0, 0.0, 0, 0, model.num_parameters()
direction = np.random.default_rng(5)
for name, q in model.named_parameters():
    v = direction.standard_normal(q.data.shape)
    slope += np.vdot(q.grad, v)
    square += np.vdot(q.grad, q.grad)
    zeros += np.count_nonzero(q.grad == 0)
    zeros_in_ffn += np.count_nonzero(q.grad == 0) if "feed_forward.sublayer" in name else 0
    q.data = q.data + 1j * h * v
began = time.perf_counter()
truth = model_loss()[0].imag / h
seconds = time.perf_counter() - began
length = square**0.5  # ‖g‖
print(f"{kind}: {entries:,} parameters, L = {L:.3f}, one complex forward {seconds:.2f} s")
print(f"  by one backward {slope:.14f}\n  by one forward  {truth:.14f}")
print(f"  entry by entry it would take {entries * seconds / 86400:,.1f} days")
lesson.check("all gradients along a random direction, over ‖g‖", abs(slope - truth) / length, 1e-12)
lesson.quote("base model has 63,082,496 parameters", entries, full_only=True)

# %% [markdown]
# How sharp is that? Take one entry alone, a bias of the first encoder layer, and imagine that backward had returned 0
# for it and been right everywhere else. The two numbers would differ by g_j v_j: for the bias in the middle by size
# and v_j = 1 that is printed below. It is far above the bound. One wrong number among 63 million is seen.
#
# What the test does not see:
#
# * an entry whose gradient is tiny beside ‖g‖: even an error of 100 % in it may drown in rounding. A direction of its
#   own for each tensor mends that, and also tells where an error is;
# * what this batch does not touch. A hidden unit of an FFN that no token switches on (ReLU) has gradient 0 in all of
#   its weights. There the test proves that the zeros are right, and nothing else;
# * the forward pass: backward is proven to belong to THIS forward, with all the mistakes that it may have.

# %%
bias = dict(model.named_parameters())["encoder.layers.0.feed_forward.sublayer.contract.b"]
dm = sum(parts)
lengths = [np.linalg.norm(part) / np.linalg.norm(dm) for part in parts]
cosines = [np.vdot(part, dm) / np.linalg.norm(part) / np.linalg.norm(dm) for part in parts]
lesson.check("left out, one bias changes that number by", np.median(np.abs(bias.grad)) / length, at_least=1e-9)
print("  length of each decoder layer's part of dm, over dm's: " + " ".join(f"{x:.3f}" for x in lengths))
print("  cosine of the angle between each part and dm:         " + " ".join(f"{x:.3f}" for x in cosines))
print(f"  entries whose gradient is exactly 0: {zeros:,}, of which {zeros_in_ffn:,} are in an FFN")
lesson.check("share of these zeros that are in an FFN", zeros_in_ffn / zeros, at_least=0.99)
lesson.quote("0.83 times as long as the whole, the first layer's 0.045 times", lengths[-1], lengths[0], full_only=True)
lesson.quote("and yet the cosine of the angle between it and dm is 0.85", cosines[-1], full_only=True)
lesson.quote("its cosine is 0.05", cosines[0], full_only=True)
lesson.quote("8.8 million of the 63.1 million", zeros / 1e6, entries / 1e6, full_only=True)

# %% [markdown]
# ## Table 3, a detective story
#
# The last column of the paper's Table 3 gives parameters in millions. First count, piece by piece, with d_k features
# of each head's queries and keys and d_v of its values (both C / H = 64 in base), and with every bias:
#
#     Attend   Q and K: 2 (C H d_k + H d_k)     values: C H d_v + H d_v     output: H d_v C + C
#     FFN      C F + F + F C + C
#     Norm     2 C
#     total    V C + N (3 Attend + 2 FFN + 5 Norm)
#
# An encoder layer has 1 Attend, 1 FFN, 2 Norms; a decoder layer 2, 1 and 3: together 3, 2 and 5. Sinusoidal positions
# have no parameters, and the tied E counts once. In base H d_k = H d_v = C = 512, so Attend = 4 · 512² + 4 · 512
# = 1,050,624, FFN = 2 · 512 · 2048 + 2048 + 512 = 2,099,712 and Norm = 1,024. With N = 6 that is 44,138,496 without
# E, and with 37,000 rows of 512 it is 63,082,496.
#
# The two rows (B), where only d_k changes, the library cannot build (its d_k is always C / H). They are counted by the
# formula; in all other rows formula and library are compared.


# %%
def count(V, N=6, C=512, F=2048, H=8, d_k=64, d_v=64, biases=1):  # biases=0: none in Attend
    attend = 2 * (C + biases) * H * d_k + (C + biases) * H * d_v + (H * d_v + biases) * C
    return V * C + N * (3 * attend + 2 * (C * F + F + F * C + C) + 5 * 2 * C)


TABLE = {  # the row: (millions of parameters as printed, what differs from base)
    "base": (65, {}),
    "(B) d_k = 16": (58, {"d_k": 16}),
    "(B) d_k = 32": (60, {"d_k": 32}),
    "(C) N = 2": (36, {"N": 2}),
    "(C) N = 4": (50, {"N": 4}),
    "(C) N = 8": (80, {"N": 8}),
    "(C) d_model = 256": (28, {"C": 256, "d_k": 32, "d_v": 32}),
    "(C) d_model = 1024": (168, {"C": 1024, "d_k": 128, "d_v": 128}),
    "(C) d_ff = 1024": (53, {"F": 1024}),
    "(C) d_ff = 4096": (90, {"F": 4096}),
    "big": (213, {"C": 1024, "F": 4096, "H": 16}),
}


def library_count(V, N=6, C=512, F=2048, H=8, **_):
    return Transformer(TransformerConfig(V, C, H, F, N), seed=None).num_parameters()


lesson.check("formula against the model from scratch", count(V, N, C, F, H, D, D) - size, 0)
differences = [count(37000, **w) - library_count(37000, **w) for row, (_, w) in TABLE.items() if row[:3] != "(B)"]
lesson.check(f"formula against the library in {len(differences)} rows", np.abs(differences).max(), 0)
lesson.quote(
    "that is 44,138,496 without E, and with 37,000 rows of 512 it is 63,082,496", count(0), 37000, 512, count(37000)
)

# %% [markdown]
# Clue 1. A printed 65 means 64.5 to 65.5 million. Solve that for V: each row names an interval of vocabularies,
#
#     (printed - 0.5) 10⁶ ≤ V C + (the rest) < (printed + 0.5) 10⁶
#
# 37,000 is in none of the eleven. Yet the ten rows from base to d_ff = 4096 have an interval in common: each V from
# 40,932 to 41,160 explains all ten. Without biases in Attend it is 41,004 to 41,208. If the authors rounded down,
# 41,908 to 41,991; if up, 40,038 to 40,184. Never 37,000.
#
# Clue 2. Is it the vocabulary? Let the gap of a row be what is missing with V = 37,000, and let every suspect try to
# explain the gaps of all ten rows with one number of its own: a fixed number of parameters; a number per layer; a
# number per layer and feature; a number per pair of features, C²; or a number of rows of width C. Only the last can:
# 3,932 to 4,160 more rows of C numbers, in deep models as in shallow ones.
#
# Clue 3. The big model is counted at 214.2 million with V = 37,000. It is the one row printed SMALLER than that, and
# asks for a V from 35,296 to 36,272. With the others' vocabulary it would have 218 million.


# %%
def intervals(below=0.5, above=0.5, biases=1):  # {row: (smallest V, largest V)} that the printed number allows
    limits = {}
    for row, (millions, what) in TABLE.items():
        rest, width = count(0, **what, biases=biases), what.get("C", 512)
        limits[row] = [(edge * 1e6 - rest) / width for edge in (millions - below, millions + above)]
    return {row: (int(np.ceil(low)), int(np.floor(high))) for row, (low, high) in limits.items()}


def common(limits):  # of the ten rows that are not big
    ten = [limits[row] for row in TABLE if row != "big"]
    return max(low for low, _ in ten), min(high for _, high in ten)


limits = intervals()
print(f"{'row':<20} {'printed':>8} {'counted, V = 37,000':>20} {'V from':>8} {'to':>7}")
for row, (millions, what) in TABLE.items():
    print(f"{row:<20} {millions:>8} {count(37000, **what) / 1e6:>20.3f} {limits[row][0]:>8,} {limits[row][1]:>7,}")
lesson.check("rows that 37,000 explains", sum(low <= 37000 <= high for low, high in limits.values()), 0)
lesson.check("rows that 41,000 explains", sum(low <= 41000 <= high for low, high in limits.values()), at_least=10)
lesson.quote("each V from 40,932 to 41,160 explains", *common(limits))
lesson.quote("Without biases in Attend it is 41,004 to 41,208", *common(intervals(biases=0)))
lesson.quote("41,908 to 41,991; if up, 40,038 to 40,184", *common(intervals(0, 1)), *common(intervals(1, 0)))
ranges = [intervals(below, above, biases) for below, above in ((0.5, 0.5), (0, 1), (1, 0)) for biases in (0, 1)]
agree = sum(limit["big"][1] >= common(limit)[0] for limit in ranges)
lesson.check("ways to round and count in which big agrees with the ten", agree, 0)
big = TABLE["big"][1]
lesson.quote("at 214.2 million with V = 37,000", count(37000, **big) / 1e6, 37000)
lesson.quote("asks for a V from 35,296 to 36,272", *limits["big"])
lesson.quote("it would have 218 million", count(41000, **big) / 1e6)
suspects = {"in all": (0, 0), "per layer": (1, 0), "per layer and feature": (1, 1), "per C²": (0, 2), "per C": (0, 1)}
fits = []
for suspect, (of_N, of_C) in suspects.items():  # the gap must be the suspect's number times N^of_N C^of_C
    needs = {}
    for row, (millions, what) in TABLE.items():
        gap = np.array([millions - 0.5, millions + 0.5]) * 1e6 - count(37000, **what)
        needs[row] = gap / what.get("N", 6) ** of_N / what.get("C", 512) ** of_C
    low, high = common(needs)
    fits += [suspect] if low <= high else []
    verdict = "possible" if low <= high else "impossible"
    print(f"  more numbers {suspect:<22} at least {low:>11,.1f} and at most {high:>11,.1f}: {verdict}")
lesson.check("suspects other than rows of C that explain ten rows", len(set(fits) - {"per C"}), 0)
lesson.quote("3,932 to 4,160 more rows of C numbers", common(limits)[0] - 37000, common(limits)[1] - 37000)

# %% [markdown]
# The verdict: ten rows are consistent with each other, and with a matrix of about 41,000 rows where the text says
# "about 37000 tokens". The printed numbers cannot tell whether it was the vocabulary that was larger, or whether some
# other table of rows of width C was counted as well. (A table of 4,096 rows would do: 37,000 + 4,096 = 41,096. That
# is arithmetic and no evidence.) The big model fits neither: no single vocabulary explains the whole table, however one
# rounds. So a program that prints exactly 65 million for base has no claim to be more right. That is all that can be
# said to guess 3.

# %% [markdown]
# ## The picture

# %%
figure, axes = plt.subplots(figsize=(6.4, 3.9))
rows = list(TABLE)
for i, row in enumerate(rows):
    low, high = limits[row]
    axes.barh(i, (high - low) / 1000, left=low / 1000, height=0.6, color=ORANGE if row == "big" else BLUE)
first, last = common(limits)
axes.axvspan(first / 1000, last / 1000, color=GREY, alpha=0.35, lw=0)
axes.axvline(37, color="black", ls="--", lw=1)
axes.text(37.12, 8.6, "the text's\n37,000", va="center")
agreeing = sum(low <= first and last <= high for low, high in limits.values())
axes.text(41.3, 10, f"{first:,} to {last:,}\nfits {agreeing} rows", va="center")
axes.set_yticks(range(len(rows)), [f"{row}: {TABLE[row][0]}M" for row in rows])
axes.invert_yaxis()
axes.set_xlim(34.7, 43.9)
axes.set_xlabel("vocabulary size (thousands) that gives the printed parameters")
axes.set_ylabel("row of Table 3: parameters")
axes.set_title(f"{agreeing} of {len(rows)} rows of Table 3 agree\non a vocabulary of {first:,} to {last:,}")
lesson.save(figure)

# %% [markdown]
# You should see ten blue bars that all cross one narrow grey band at 41,000, with the dashed line at 37,000 to the left
# of every one, and the orange bar of the big model to the left of that. If rows (C) N = 2 and N = 8 lie far apart, the
# count per layer is wrong (a decoder layer has two Attends, and three Norms). If only d_model = 256 and 1024 stand
# aside, d_k and d_v were left at 64: the number of heads is 8 in both, so d_k = C / 8.
#
# ## The surprise
#
# Two numbers of the base model, both at its initial weights.
#
# The last decoder layer's part of dm is 0.83 times as long as the whole, the first layer's 0.045 times, and they grow
# steadily in between: with Norm behind every sum the gradient shrinks on its way down (lesson 11). So a backward that
# forgets all layers but the last is wrong in every weight of the encoder, and yet the cosine of the angle between it
# and dm is 0.85: a step of m against it goes downhill. A model may well learn that way, a little worse, and no loss
# curve shows why. (The first layer's part alone is short, and nearly at a right angle to dm: its cosine is 0.05.)
#
# And "all gradients checked in one forward" holds a trap. 8.8 million of the 63.1 million true gradients are exactly
# 0 on these two pairs of sentences: weights of hidden units that are off (ReLU) for each of the few tokens that count.
# The check is right about them, but has not tested them. It is the same code that computes the other columns, which
# is why we may trust it; in a program with a branch for the rare case we might not.

# %% [markdown]
# ## Exercise
#
# 1. Pre-norm (30 minutes). Rewrite `encoder_layer` and `decoder_layer` with x + piece(Norm(x)) in place of
#    Norm(x + piece(x)), and with one more Norm behind each stack; then mend the backwards. It passes if the complex
#    step agrees in every parameter, and if the library with `norm="pre"` agrees (its last norms are `encoder.norm` and
#    `decoder.norm`).
# 2. Find the culprit (20 minutes). Let a friend multiply the gradient of one tensor of the base model by 1.001, after
#    backward. Find which by directions that are 0 in half of the tensors. It passes if 8 forward passes were enough.
#
# ## Questions
#
# 1. Source of 7 tokens, target of 5, d_model 6, 2 heads, one sentence: what are the shapes of the weights of
#    cross-attention, of dq, of dk before the heads are merged, and of dm?
# 2. May the decoder's backward and the encoder's run at the same time?
# 3. Does the padding token's row of E get any gradient from the source embedding?
# 4. You untie the base model's three matrices. How many parameters has it now, and what is their gradient, if all
#    three start with the same values?
# 5. Your model passes the test along random directions to 10⁻¹⁵, and does not learn. Name three possible reasons.

# %% [markdown]
# ## In the wild
#
# * The Annotated Transformer has Norm in front of each piece (pre-norm) under the paper's figure of post-norm, and by
#   default three matrices of embeddings in place of one.
# * The paper's authors' own code (Tensor2Tensor) has no biases in Attend, and its later settings are pre-norm.
# * PyTorch's `nn.Transformer` has neither embeddings nor positions nor the last matrix, and it puts one more LayerNorm
#   behind each stack, with post-norm, too: 4 C parameters more than the paper's formula, and other numbers coming out.
#   Here that is `final_norm=True`.
# * In published NumPy Transformers with hand-written backwards one finds queries and keys from the encoder with values
#   from the decoder, as `swapped` above; a decoder that never adds the residual's gradient; and cross-attention's two
#   gradients returned in the wrong order. Where all shapes are equal none of this raises an error.
# * Frameworks with autograd add up dm and dE by themselves. What they cannot know is that two matrices were meant to be
#   one: a tie that is lost when a model is copied or loaded costs no error message, only 18.9 million parameters.

# %%
ten_rows = f"ten rows of Table 3 agree on a vocabulary of {first:,} to {last:,}, where the text says about 37,000"
untied = count(37000) + 2 * 37000 * 512
lesson.quote("63,082,496 + 2 · 37,000 · 512 = 100,970,496", count(37000), 2, 37000, 512, untied)
lesson.quote("only 18.9 million parameters", 37000 * 512 / 1e6)
lesson.claim("the base model has 65 million parameters", "half right", f"{count(37000):,} with V = 37,000; {ten_rows}")
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. (1, 2, 5, 7), one weight for each head, query and key. dq is (1, 2, 5, 3), dk is (1, 2, 7, 3), dm is (1, 7, 6).
# 2. No: the encoder's begins with dm, whose last term comes from decoder layer 1, the last one that backward visits.
#    (Within the decoder all the parts Mₙᵀ dyⁿ could wait and be added at the end: a sum has no order.)
# 3. No. Nobody attends to padding, so p_ts = 0 there, so its dk, dv and with them its rows of dm are 0; the same holds
#    for self-attention in each encoder layer, and Norm and FFN work on each row alone. It does get gradient as a
#    row of the output matrix, since padding is a token that the softmax could choose.
# 4. 63,082,496 + 2 · 37,000 · 512 = 100,970,496. Each has one of the three terms of part 4; their sum is the tied
#    matrix's gradient. After one step of training they are three different matrices.
# 5. For example: a mask that lets the decoder see the answer, or hides the source; targets that are not shifted; a
#    learning rate of the wrong size; gradients that are not set to 0 between steps; an optimiser that does not get all
#    parameters. The test speaks about backward alone.
