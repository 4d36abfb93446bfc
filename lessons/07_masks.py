# %% [markdown]
# # Lesson 07: Masks, and how a model peeks at its answer
#
# * Question: how do you forbid a look, and how would you notice that the model looks all the same?
# * You derive: the masked softmax, its empty rows, the leak through a denominator, the loss that only a cheat reaches
# * Reading: 29 min, going deeper 0 min
# * Run: 40 s (fast: 4 s)
# * Needs: 03, 05, 06
# * Difficulty: 2 of 5
# * Paper: sections 3.1 and 3.2.3

# %%
import math
from functools import partial
from lab import BLUE, GREEN, GREY, ORANGE, begin, error, plt

import numpy as np
from matplotlib.colors import ListedColormap

lesson = begin("07_masks")

# %% [markdown]
# ## What we have
# Attention (lesson 05): T queries q_t, S keys k_s and values v_s, of width D; t numbers queries, s and m number keys.
#
#     e_ts = q_t·k_s / √D            scores                       p_ts = exp(e_ts) / Σ_m exp(e_tm)     weights
#     y_t  = Σ_s p_ts v_s            outputs
#
# Backward (lesson 06), where dx is the gradient of the loss with respect to x:
#
#     dv_s = Σ_t p_ts dy_t           dp_ts = dy_t·v_s             de_ts = p_ts (dp_ts − Σ_m p_tm dp_tm)
#     dq_t = Σ_s de_ts k_s / √D      dk_s  = Σ_t de_ts q_t / √D
#
# Every query looks at every key. Two kinds of key must not be looked at. Padding: sentences of one batch have
# different lengths, and the shorter ones are filled up with a token that means nothing. And the future: a model
# that is to say the next token must not read it. A mask says so: `allowed`, an array of booleans that fits (T, S).
# In this project True means "may look", always.
#
# ## Predict
# 1. Three keys, the third forbidden. One code sets its score to −inf before the softmax, another sets its weight to 0
#    after it. Do the first two keys get the same weights in both? (Answered in "Small numbers".)
# 2. A model reads sequences of 8 tokens, each drawn at random from 16, and is to say the next token at every position.
#    What is the lowest mean loss that is possible? And with a mask that lets each position see one token too many?
# 3. In another model the mask is multiplied onto the weights after the softmax. No forbidden value enters any output.
#    Can this model cheat? (2 and 3 are answered in "A model that peeks".)

# %% [markdown]
# ## Small numbers
# One query, three keys, scores 2, 1, 3, and the third key is forbidden. Two ways to say so:
#
#     score −inf, then softmax:    exp(2), exp(1), 0 = 7.389, 2.718, 0        / 10.107:    0.731, 0.269, 0
#     softmax, then weight 0:      exp = 7.389, 2.718, 20.086                 / 30.193:    0.245, 0.090, 0
#
# The second row sums to 0.335 and not to 1. Worse: let the forbidden score be 5 in place of 3. The first way gives
# the same weights as before. The second gives 0.047 and 0.017. The forbidden key was not read, yet it was heard:
# through the denominator.


# %%
def softmax(e):
    p = np.exp(e - e.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


allowed = np.array([True, True, False])
for forbidden_score in (3.0, 5.0):
    e = np.array([2.0, 1.0, forbidden_score])
    before, after = softmax(np.where(allowed, e, -np.inf)), softmax(e) * allowed
    for name, p in [("-inf before", before), ("0 after", after)]:
        print(f"scores 2, 1, {forbidden_score:.0f}   {name:12}", *(f"{x:6.3f}" for x in p), f"   sum {p.sum():.3f}")
    if forbidden_score == 3.0:
        lesson.quote("0.731, 0.269, 0 softmax", *before)
        lesson.quote("0.245, 0.090, 0 The second row sums to 0.335 and not to 1.", *after, after.sum(), 1)
lesson.quote("The second gives 0.047 and 0.017.", *after[:2])

# %% [markdown]
# ## The derivation
# ### Part 1: forbidden means left out
# Let A_t be the set of keys that query t may look at. The masked softmax is the softmax over those alone:
#
#     p_ts = exp(e_ts) / Σ_{m in A_t} exp(e_tm)    for s in A_t             p_ts = 0    for all others
#
# A score of −inf is a way to write this with whole arrays, as exp(−inf) is exactly 0. What does backward look like?
# A forbidden score stands in no formula, so de_ts = 0. For s in A_t lesson 06 holds, with sums over A_t. But the sum
# Σ_m p_tm dp_tm may as well run over all keys, as the others add 0; and p_ts (...) is 0 for a forbidden s anyway:
#
#     de_ts = p_ts (dp_ts − Σ_m p_tm dp_tm)        for all s
#
# So backward needs no mask: the zeros in p are the mask. And what is out of A_t stays out of everything: y_t does not
# depend on k_s and v_s, so the loss at t sends nothing to dk_s or dv_s (in the sums over t above, its terms are 0).
#
# ### Part 2: a row in which nothing is allowed
# Then the denominator is 0, and p = 0/0. What should the mean over nobody be? We choose y_t = 0, with all p_ts = 0.
# Then de_ts = 0 by the line above, and the row is silent forward and backward. It does happen: put the padding in
# front, forbid the future as well (a causal mask, part 4), and the first query, itself padding, may look at nothing.
# One might think that NaN there does no harm, as no loss is asked at padding. It does: dv_s = Σ_t p_ts dy_t, and
# NaN · 0 = NaN.

# %%
rng = np.random.default_rng(0)
T, S, D = 3, 4, 5
q, k, v, dy = (rng.standard_normal(shape) for shape in [(T, D), (S, D), (S, D), (T, D)])
allowed = np.array([[False, False, False, False], [True, True, False, False], [True, True, True, False]])
dy[0] = 0.0  # the loss does not ask for the first row
with np.errstate(invalid="ignore"):  # NumPy would warn: -inf - -inf
    p = softmax(np.where(allowed, q @ k.T / math.sqrt(D), -np.inf))
print("weights of the empty row:", p[0])
print("NaN in the rows of y:    ", np.isnan(p @ v).any(axis=1))
print("NaN in the rows of dv:   ", np.isnan(p.T @ dy).any(axis=1))
lesson.check("one empty row that no loss asks for: share of dv that is NaN", np.isnan(p.T @ dy).mean(), at_least=1.0)

# %% [markdown]
# ### Part 3: multiplied after the softmax
# Let p be the softmax over all keys, and w_ts = p_ts for allowed keys, 0 for the others. How does an allowed weight
# depend on a forbidden score e_tm? By the Jacobian of the softmax (lesson 03), ∂p_ts/∂e_tm = p_ts (1[s = m] − p_tm),
# where 1[s = m] is 1 if s = m and else 0. Here s ≠ m:
#
#     ∂w_ts/∂e_tm = −p_ts p_tm        not 0
#
# Every forbidden key pulls the allowed weights of the row down, all by the same factor: with Z the sum of exp(e_tm)
# over all keys and Z_A that over the allowed ones,
#
#     w_ts = exp(e_ts) / Z = (Z_A / Z) · exp(e_ts) / Z_A = share_t · (the weight of part 1)        share_t = Z_A / Z
#
# So of all that is forbidden just one number a row gets into y_t, the share of the weights that the allowed keys
# keep. (To divide w by its sum, which is share_t, repairs it, unless all allowed weights have underflowed to 0.)
#
# ### Part 4: padding, causal, both
#
#     padding:    allowed[b, 0, 0, s] = (token s of sequence b is no padding)        (B, 1, 1, S)
#     causal:     allowed[0, 0, t, s] = (s ≤ t)                                      (1, 1, T, T)
#     both:       padding & causal: a look must be allowed by each                   (B, 1, T, T)
#
# An axis of length 1 is repeated as needed: the scores of a model have the shape (B, H, T, S), B sequences and H
# heads. Padding depends on the key alone, causal on the pair. With the padding at the end, a query at a padding
# position still has allowed keys; nobody asks for its output.

# %% [markdown]
# ### Part 5: how is it fair that the target is an input?
# A model that writes text says at each position which token comes next. To train it on x1 ... x5:
#
#     position t              1        2           3              4
#     input                   x1       x2          x3             x4
#     target                  x2       x3          x4             x5
#     causal mask, sees       x1       x1 x2       x1 x2 x3       x1 x2 x3 x4
#     one too many, sees      x1 x2    x1 x2 x3    x1 x2 x3 x4    x1 x2 x3 x4
#
# The target x3 of position 2 is an input, yes: that of position 3. The input is the target shifted right by one.
# (In the paper's decoder a begin token takes the first place, so that x1 is a target, too: section 3.1.) It is fair as
# long as position t sees no later input, and then one pass trains all positions at once, each as if the text
# ended there. With one look too many, position t sees its own answer, all but the last, whose answer is no input.
#
# In a model all other parts (embedding, feed-forward, norm, output) work on each position alone. Only attention
# carries anything from one position to another, so the mask is the only guard there is.

# %% [markdown]
# ### Part 6: the best loss
# Tokens are drawn independently, each of V equally likely. The loss of one prediction is −ln p_v for the token v that
# came (lesson 03). What an honest model reads has nothing to do with v, so whatever p it says, its mean loss over the
# V cases is
#
#     (1/V) Σ_v −ln p_v  ≥  −ln((1/V) Σ_v p_v)  ≥  −ln(1/V)  =  ln V
#
# first as −ln is convex: the mean of a convex function is at least the function of the mean (Jensen); then as
# Σ_v p_v ≤ 1. With V = 16 that is 2.7726 nats, and no training, no size and no trick gets below it. A model that sees
# one too many knows T − 1 of its T answers. Its best mean loss is (0 + ... + 0 + ln V) / T; for T = 8, 0.3466 nats.

# %% [markdown]
# ## From scratch


# %%
def masked_softmax(e, allowed):
    e = np.where(allowed, e, -np.inf)
    largest = e.real.max(axis=-1, keepdims=True)  # .real: the check below sends complex numbers through
    largest = np.where(np.isfinite(largest), largest, 0.0)  # an empty row: -inf - 0 is -inf, -inf - -inf is NaN
    p = np.exp(e - largest)
    total = p.sum(axis=-1, keepdims=True)
    return p / np.where(total == 0, 1.0, total)  # an empty row: 0 / 1


def masked_attention(q, k, v, allowed):
    p = masked_softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), allowed)  # (..., T, S)
    return p @ v, (q, k, v, p)


def masked_attention_backward(dy, cache):
    q, k, v, p = cache
    dp = dy @ v.swapaxes(-1, -2)
    de = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])  # no mask: p holds its zeros
    return de @ k, de.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dy


def padding(ids, pad=0):
    return (ids != pad)[:, None, None, :]  # (B, 1, 1, S)


def causal(T):
    t, s = np.arange(T)[:, None], np.arange(T)[None, :]
    return (s <= t)[None, None]  # (1, 1, T, T)


# %% [markdown]
# ## Checked
# First the meaning: the masked softmax is the softmax with the forbidden keys deleted. Then all gradients against the
# complex step, f'(x) = Im f(x + ih) / h with h = 1e-30 (lesson 01), on a batch with both masks and padding in front, so
# that there are empty rows. Then the library.


# %%
def complex_step(f, x, h=1e-30):
    derivative = np.empty_like(x)
    for entry in np.ndindex(x.shape):
        nudged = x.astype(complex)
        nudged[entry] += 1j * h
        derivative[entry] = f(nudged).imag / h
    return derivative


ids = np.array([[7, 3, 9, 5, 0], [0, 4, 4, 6, 2]])  # padding at the end, padding in front
B, T, H, D = 2, 5, 3, 4
allowed = padding(ids) & causal(T)
print("padding & causal, sequence 2 (rows: queries, columns: keys)\n", allowed[1, 0].astype(int))
q, k, v, dy = (rng.standard_normal((B, H, T, D)) for _ in range(4))
y, cache = masked_attention(q, k, v, allowed)
dq, dk, dv = masked_attention_backward(dy, cache)
p = cache[-1]
deleted = np.zeros_like(p)
for b, h, t in np.ndindex(B, H, T):
    keys = np.flatnonzero(allowed[b, 0, t])
    if len(keys):
        deleted[b, h, t, keys] = softmax(k[b, h, keys] @ q[b, h, t] / math.sqrt(D))
lesson.check("masked weights are those with the forbidden keys deleted", error(p, deleted), 1e-15)
true = [complex_step(lambda x: (dy * masked_attention(x, k, v, allowed)[0]).sum(), q)]
true.append(complex_step(lambda x: (dy * masked_attention(q, x, v, allowed)[0]).sum(), k))
true.append(complex_step(lambda x: (dy * masked_attention(q, k, x, allowed)[0]).sum(), v))
for name, got, expected in zip(("dq", "dk", "dv"), (dq, dk, dv), true, strict=True):
    lesson.check(f"{name} equals the complex step, empty row included", error(got, expected), 1e-14)
silent = np.abs(y[1, :, 0]).max() + np.abs(dq[1, :, 0]).max()
lesson.check("the empty row: output and gradient", silent, 0.0)
lesson.check("padding: gradient of its key and value", np.abs([dk[1, :, 0], dv[1, :, 0]]).max(), 0.0)

# %%
from minitransformer.functional import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)

same = (causal_mask(T) == causal(T)).all() and (padding_mask(ids) == padding(ids)).all()
lesson.check("causal_mask and padding_mask are the library's", float(same), at_least=1.0)
library_y, library_cache = scaled_dot_product_attention(q, k, v, allowed)
*library, _ = scaled_dot_product_attention_backward(dy, library_cache)  # the last is the gradient of a bias: None here
for name, got, expected in zip(("y", "dq", "dk", "dv"), (y, dq, dk, dv), (library_y, *library), strict=True):
    lesson.check(f"{name} equals the library's", error(got, expected), 1e-12)

# %% [markdown]
# ## A finite mask can be outbid
# Much code adds −1e4 or −1e9 to a forbidden score in place of −inf, often so that empty rows give no NaN. Is that
# the same? Take two keys; the first is allowed and has the score 0, the second is forbidden and has the score g.
# Added −1e4, its weight is exp(g − 1e4) / (1 + exp(g − 1e4)): as good as 0 while g is small, 1/2 at g = 1e4. So the
# mask holds only as long as no score is 1e4 better than another. And an empty row: all scores get the same −1e4, which
# the softmax does not see. The row looks as if there were no mask.


# %%
def weight_of_forbidden(g, mask, dtype):
    return softmax(np.array([0.0, g], dtype) + np.array([0.0, mask], dtype))[1]


print("weight of the forbidden key, whose score is g better     g = 10     9,990    10,000    10,010")
for mask, dtype in [(-1e4, "float64"), (-1e9, "float32"), (-np.inf, "float32")]:
    weights = [float(weight_of_forbidden(g, mask, dtype)) for g in (10.0, 9990.0, 10000.0, 10010.0)]
    print(f"  {mask:8.0e} in {dtype:38}", *(f"{w:9.1e}" for w in weights))
lesson.check("-1e4, g = 1e4: the forbidden key gets half", abs(weight_of_forbidden(1e4, -1e4, "float64") - 0.5), 1e-12)
with np.errstate(over="ignore", invalid="ignore"):  # NumPy would warn: 1e9 is too large for float16
    e = rng.standard_normal(3)
    lesson.check("empty row, -1e4: the weights of no mask at all", error(softmax(e - 1e4), softmax(e)), 1e-11)
    flat = softmax(e.astype("float32") + np.float32(-1e9))
    lesson.check("empty row, -1e9 in float32: all alike, as e - 1e9 rounds to -1e9", np.ptp(flat), 0.0)
    half = np.float16(-1e9)
    lesson.check("-1e9 in float16 is -inf", float(half == -np.inf), at_least=1.0)
    row = softmax(e.astype("float16") + half)
    lesson.check("... so the empty row is NaN again: entries", np.isnan(row).sum(), at_least=3)
lesson.claim(
    "-1e9 is as good as minus infinity",
    "half right",
    "the weights are 0 while no score is 1e9 better than another; an empty row attends to all it must not see, and "
    "in float16, whose largest number is 65,504, -1e9 is minus infinity and the empty row is NaN",
)

# %% [markdown]
# ## leak_test
# How to notice a leak? Not by reading the mask; by asking the model. Change one input, s, and see which outputs t
# change. An honest model's output t must not change in a single bit for s > t: exact zeros are multiplied and
# added, so not even rounding differs. `reach[t, s]` says whether s reaches t; a leak is a True above the diagonal. The
# test is as good from below: a False on or under the diagonal is a look that was forbidden by mistake.
#
# The same with gradients: put a random dy at output t alone, go backward, and see which dx_s are not 0. One backward
# pass shows all s at once.


# %%
def reach_of(f, x, other):
    """reach[t, s]: does output t of f (B, T, ...) change if input s, and no other, becomes that of `other`?"""
    y = f(x)
    reach = np.zeros((x.shape[1], x.shape[1]), bool)
    for s in range(x.shape[1]):
        changed = x.copy()
        changed[:, s] = other[:, s]
        reach[:, s] = (f(changed) != y).reshape(len(x), x.shape[1], -1).any(axis=(0, 2))
    return reach


def reach_of_gradient(forward, backward, x):
    """reach[t, s]: is d output_t / d input_s other than 0?"""
    reach = np.zeros((x.shape[1], x.shape[1]), bool)
    for t in range(x.shape[1]):
        y, cache = forward(x)
        dy = np.zeros_like(y)
        dy[:, t] = np.random.default_rng(t).standard_normal(y[:, t].shape)
        reach[t] = (backward(dy, cache) != 0).any(axis=(0, 2))
    return reach


def leak_test(reach):
    """How many inputs too many the most curious output sees: 0 for an honest model."""
    ahead = np.arange(len(reach))[None, :] - np.arange(len(reach))[:, None]  # s - t
    return int(np.where(reach, ahead, 0).max())


# %% [markdown]
# One attention layer, y = masked_attention(x W_q, x W_k, x) with random matrices, under eight masks. "Too many" is what
# `leak_test` says; "too few" counts the looks that should be allowed and are not.

# %%
T, D = 8, 4
x, other = rng.standard_normal((2, 1, T, D))
W_q, W_k = rng.standard_normal((2, D, D))
ones = np.ones((T, T), bool)


def with_mask(allowed):
    return lambda x: masked_attention(x @ W_q, x @ W_k, x, allowed)[0]


def scores(x):
    return (x @ W_q) @ (x @ W_k).swapaxes(-1, -2) / math.sqrt(D)


cases = {
    "np.tril(ones): right": with_mask(np.tril(ones)),
    "~np.triu(ones, 1): the same": with_mask(~np.triu(ones, 1)),
    "np.tril(ones, 1): one too many": with_mask(np.tril(ones, 1)),
    "~np.triu(ones): not even itself": with_mask(~np.triu(ones)),
    "True taken for 'ignore'": with_mask(~np.tril(ones)),
    "multiplied after the softmax": lambda x: softmax(scores(x)) * np.tril(ones) @ x,
    "-1e4 added, scores of order 1": lambda x: softmax(scores(x) + np.where(np.tril(ones), 0.0, -1e4)) @ x,
    "-1e4 added, scores of order 1e4": lambda x: softmax(1e4 * scores(x) + np.where(np.tril(ones), 0.0, -1e4)) @ x,
}
sees = {}
for name, f in cases.items():
    reach = reach_of(f, x, other)
    sees[name] = leak_test(reach), int((np.tril(ones) & ~reach).sum())
    print(f"  {name:34} too many {sees[name][0]}   too few {sees[name][1]:2d}")
lesson.check("leak_test: the right mask", sum(sees["np.tril(ones): right"]), 0)
lesson.check("leak_test: one too many", abs(sees["np.tril(ones, 1): one too many"][0] - 1), 0)
lesson.check("leak_test: multiplied after", sees["multiplied after the softmax"][0], at_least=T - 1)
lesson.check("leak_test: -1e4 with scores of order 1 passes", sees["-1e4 added, scores of order 1"][0], 0)
lesson.check("leak_test: -1e4 with scores of order 1e4 leaks", sees["-1e4 added, scores of order 1e4"][0], at_least=1)

# %% [markdown]
# What to see. "True taken for 'ignore'" sees the whole future and little else. "Not even itself" is no leak, and shows
# in "too few" alone: its first row is empty, and its second has one key, whose weight is 1 whatever the query.
# "Multiplied after" sees everything, to the last token. And the finite mask passes while the scores are of order 1:
# its leak lies in the size of the scores, not in the code. So test with large scores, too, or use −inf.
#
# ## A model that peeks
# Now we train. The library's GPT is a small language model: ids (B, T) in, logits (B, T, V) out, from which the softmax
# makes the p_v of part 6. Inside are layers of attention and feed-forward; what else is in it, later lessons open.
# Only its mask matters here, so we make the mask an argument. The data is noise: 16 symbols, drawn independently, 8
# at a time, never the same sequence twice (or a model could learn some by heart). There is nothing to learn.
# Part 6 says: an honest model ends at ln 16 = 2.7726 nats, one that sees one too many at 2.7726 / 8 = 0.3466.

# %%
from minitransformer.core import Layer
from minitransformer.data.text import TextBatch
from minitransformer.evaluation import mean_loss
from minitransformer.layers import Linear
from minitransformer.models import GPT, gpt_config
from minitransformer.models.gpt import GPTFeaturesCache
from minitransformer.training import TrainingSettings, cosine, train

SYMBOLS, T, C = 16, 8, 32
HONEST, ONE_TOO_MANY = np.tril(np.ones((T, T), bool)), np.tril(np.ones((T, T), bool), 1)
SIZES = {"d_model": C, "num_heads": 1, "d_ff": 4 * C, "dropout": 0.0, "max_len": T}


class Noise:
    """Sequences of symbols 1 ... 16 (0 is padding): T of them to read, and at each position the next one to say."""

    def batch(self, rng, size):
        tokens = rng.integers(1, SYMBOLS + 1, (size, T + 1))
        return TextBatch(tokens[:, :-1], tokens[:, 1:])  # shifted by one


class MaskedGPT(GPT):
    """The library's GPT, which makes the causal mask itself, with a mask of our choice in its place."""

    def __init__(self, allowed, num_layers, **options):
        super().__init__(gpt_config(SYMBOLS + 1, num_layers=num_layers, **SIZES), **options)
        self.allowed = allowed

    def features(self, ids, rng=None):
        x, cache_embedding = self.embedding.forward(ids, rng)
        y, cache_blocks = self.blocks.forward(x, self.allowed, rng=rng)
        return y, GPTFeaturesCache(cache_embedding, cache_blocks)


# %% [markdown]
# The third model multiplies after the softmax. Its attention layer is our own: x is mapped to queries, keys and
# values by one Linear (lesson 02), then part 3, then a Linear. Backward: dw = dy vᵀ, and w = p · allowed, so dp = dw
# where allowed and 0 elsewhere; from there on as ever. It is the right gradient of the wrong model.


# %%
class MultipliedAfter(Layer):
    def __init__(self, d_model, rng, dtype="float32"):
        self.qkv = Linear(d_model, 3 * d_model, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, rng=rng, dtype=dtype)

    def forward(self, x, allowed, rng=None):
        qkv, cache_qkv = self.qkv.forward(x)
        q, k, v = np.split(qkv, 3, axis=-1)
        p = softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
        y, cache_output = self.output.forward((p * allowed) @ v)
        return y, (cache_qkv, q, k, v, p, allowed, cache_output)

    def backward(self, dy, cache):
        cache_qkv, q, k, v, p, allowed, cache_output = cache
        dy = self.output.backward(dy, cache_output)
        dv = (p * allowed).swapaxes(-1, -2) @ dy
        dp = dy @ v.swapaxes(-1, -2) * allowed
        de = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
        return self.qkv.backward(np.concatenate([de @ k, de.swapaxes(-1, -2) @ q, dv], axis=-1), cache_qkv)


def make(name, num_layers=1, **options):
    model = MaskedGPT(ONE_TOO_MANY if name == "one too many" else HONEST, num_layers, **options)
    if name == "multiplied after":
        for i, block in enumerate(model.blocks.layers):
            block.self_attention.sublayer = MultipliedAfter(C, np.random.default_rng(i), **options)
    return model


# %% [markdown]
# Before training, the test, by change and by gradient, for models of one and of two layers. For the gradient we go
# through the blocks, from vectors to vectors, as ids have none. And the library's own: GPT, and the decoder of its
# encoder-decoder with a source beside it. (`check_layer` compares all gradients of a layer with the complex step.)

# %%
from minitransformer.gradcheck import check_layer
from minitransformer.models import Transformer, named_config

trial = MultipliedAfter(6, rng, "float64"), rng.standard_normal((2, 5, 6))
report = check_layer(*trial, context=(np.tril(np.ones((5, 5), bool)),))
lesson.check("the gradients of MultipliedAfter are right", report.worst.error, 1e-12)

noise = Noise().batch(rng, 1).ids
other = noise % SYMBOLS + 1  # another symbol at every position
vectors = rng.standard_normal((1, T, C))
reaches = {}
for name in ("honest", "one too many", "multiplied after"):
    for layers in (1, 2):
        model = make(name, layers, dtype="float64")
        reach = reaches[name, layers] = reach_of(model, noise, other)
        blocks, allowed = model.blocks, model.allowed
        by_gradient = reach_of_gradient(lambda x, f=blocks.forward, a=allowed: f(x, a), blocks.backward, vectors)
        print(f"  {name:18} layers {layers}   sees too many {leak_test(reach)}   by gradient {leak_test(by_gradient)}")
        lesson.check("entries in which the two ways differ", (by_gradient != reach).sum(), 0)
transformer = Transformer(named_config("tiny", SYMBOLS + 1))
models = {"GPT": GPT(gpt_config(SYMBOLS + 1, num_layers=2, **SIZES)), "decoder": lambda ids: transformer(noise, ids)}
for name, model in models.items():
    difference = (reach_of(model, noise, other) != HONEST).sum()
    lesson.check(f"the library's {name}: entries of reach that are not the triangle's", difference, 0)
lesson.check("honest: sees too many", leak_test(reaches["honest", 2]), 0)
lesson.check("one too many, in two layers: sees two too many", abs(leak_test(reaches["one too many", 2]) - 2), 0)
lesson.check("multiplied after: sees too many", leak_test(reaches["multiplied after", 1]), at_least=T - 1)

# %% [markdown]
# Note that a mask that leaks by one, in two layers, leaks by two. In the first layer position t takes in what stands at
# t + 1; in the second it looks at t + 1, which by then knows of t + 2. Now train all three, with one layer each.

# %%
steps = lesson.pick(full=2000, fast=120)
settings, schedule = TrainingSettings(steps, batch_size=64), partial(cosine, steps=steps, peak=1e-2, warmup=50)
fresh = Noise().batch(np.random.default_rng(99), 4000)
floor, leaky_floor = math.log(SYMBOLS), math.log(SYMBOLS) / T
history, models, final = {}, {}, {}
print(f"nats per token; ln 16 = {floor:.4f}, ln 16 / 8 = {leaky_floor:.4f}")
for name in ("honest", "one too many", "multiplied after"):
    models[name] = make(name)
    history[name] = train(models[name], Noise(), schedule=schedule, settings=settings).losses
    final[name] = mean_loss(models[name], [fresh])
    print(f"  {name:18} first step {history[name][0]:.4f}   at the end, on fresh noise {final[name]:.4f}")

cheat = models["one too many"]
losses = [mean_loss(cheat, [TextBatch(fresh.ids, np.where(np.arange(T) == t, fresh.targets, 0))]) for t in range(T)]
print("  one too many, by position:", *(f"{loss:.3f}" for loss in losses))
cheat.allowed = HONEST
caught = mean_loss(cheat, [fresh])
print(f"  the same weights under the right mask: {caught:.2f}")

# %% [markdown]
# The honest model ends at 2.773 nats: it has found out that there is nothing to find. The one that sees one too many
# ends at 0.347, which is ln 16 / 8 to three digits: each answer known but the last, as the line by position shows. Its
# training curve is a dream. Nothing crashes, and all three begin alike, near ln 16. Put the same weights under the
# right mask, as must be to write a text (the future is not there yet), and the cheat does worse than guessing.
#
# And the third, which reads no forbidden value, ends at 0.348. It has found the denominator.

# %%
floors = {"honest": (floor, 0.1), "one too many": (leaky_floor, 0.3), "multiplied after": (leaky_floor, 2.2)}
for name, (end, fast) in floors.items():
    lesson.check(f"{name}: loss less its floor", abs(final[name] - end), lesson.pick(full=0.02, fast=fast))
lesson.check("no honest loss below ln 16 (but for the sample's chance)", final["honest"], at_least=floor - 0.01)
lesson.check("the cheat's last position", losses[-1], at_least=floor - 0.02)
lesson.check("the cheat under the right mask, nats", caught, at_least=lesson.pick(full=floor + 0.5, fast=0.0))
lesson.check("losses at the first step, apart from ln 16", max(abs(h[0] - floor) for h in history.values()), 0.3)
lesson.quote("an honest model ends at ln 16 = 2.7726 nats", 16, floor)
lesson.quote("one that sees one too many at 2.7726 / 8 = 0.3466", floor, T, leaky_floor)
lesson.quote("The honest model ends at 2.773 nats", final["honest"], within=0.002, full_only=True)
lesson.quote("ends at 0.347, which", final["one too many"], within=0.01, full_only=True)
lesson.quote("ends at 0.348", final["multiplied after"], within=0.05, full_only=True)
lesson.claim(
    "a mask may as well be multiplied onto the weights after the softmax",
    "wrong",
    f"the forbidden scores stay in the denominator: on noise, where {floor:.3f} nats is the best honest loss, such a "
    f"model ends at {final['multiplied after']:.3f}",
)

# %% [markdown]
# How can one number carry an answer? Part 3: with one layer and one head, all that the future can change in y_t is the
# share that the allowed keys keep. Let us look at that share at position 4, and sort it by the token to be said.

# %%
x, _ = models["multiplied after"].embedding.forward(fresh.ids)
_, cache = models["multiplied after"].blocks.forward(x, HONEST)
*_, p, allowed, _ = cache.layers[0].self_attention.sublayer
share, answer = (p * allowed).sum(axis=-1)[:, 3], fresh.targets[:, 3]
by_answer = sorted((share[answer == v] for v in range(1, SYMBOLS + 1)), key=np.median)
log_share, own = np.log(share), fresh.ids[:, 3]


def explained_by(label):
    """The part of the variance of ln share that is gone when the mean of each group of `label` is taken off."""
    within = sum(np.square(g - g.mean()).sum() for g in (log_share[label == i] for i in np.unique(label)))
    return 1.0 - within / np.square(log_share - log_share.mean()).sum()


explained, with_own = explained_by(answer), explained_by(answer * 100 + own)
print(f"median share for each of the 16 answers: {' '.join(f'{np.median(g):.3f}' for g in by_answer)}")
print(f"part of the variance of ln share explained by the answer: {explained:.3f}, and the own token: {with_own:.3f}")
print(f"mean weight of the next token {p[:, 3, 4].mean():.3f}, of all after it {p[:, 3, 5:].sum(axis=-1).mean():.3f}")

# %% [markdown]
# ## The picture

# %%
figure = plt.figure(figsize=(7.2, 3.8))
grid = figure.add_gridspec(3, 3, width_ratios=[2.2, 0.75, 1.6])
curves, levels = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[:, 2])
COLOURS = {"honest": BLUE, "one too many": ORANGE, "multiplied after": GREEN}
for name, losses_of in history.items():
    smooth = np.convolve(losses_of, np.ones(10) / 10, mode="valid")
    curves.plot(np.arange(len(smooth)) + 10, smooth, color=COLOURS[name], label=name, linewidth=1.2)
for y, style, label in [(floor, "--", "ln 16: the best without a leak"), (leaky_floor, ":", "ln 16 / 8")]:
    curves.axhline(y, color=GREY, linestyle=style, linewidth=0.8, label=label)
curves.set_ylim(0.0, 3.2)
curves.set_xlabel("training step (mean of the last 10)")
curves.set_ylabel("loss on noise (nats per token)")
figure.legend(*curves.get_legend_handles_labels(), loc="outside lower left", ncols=5, fontsize=8)
for row, name in enumerate(COLOURS):
    axes = figure.add_subplot(grid[row, 1])
    reach = reaches[name, 1]
    kind = np.where(reach & ~HONEST, 2, reach.astype(int))
    axes.pcolormesh(
        kind, cmap=ListedColormap(["#eeeeee", BLUE, ORANGE]), vmin=0, vmax=2, edgecolors="white", linewidth=0.5
    )
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(name, fontsize=8)
    axes.set_ylabel("output", fontsize=8)
axes.set_xlabel("input\n(orange: a leak)", fontsize=8)
for i, group in enumerate(by_answer):
    levels.plot(np.full(60, i + 1), group[:60], ".", color=GREEN, markersize=2)
levels.set_yscale("log")
levels.set_xlabel("answer (one of 16, sorted)")
levels.set_ylabel("share of the weights that is kept")
levels.set_title(f"multiplied after: the answer explains\n{explained:.0%} of the variance of ln share", fontsize=8)
leaking = [name for name, losses_of in history.items() if np.mean(losses_of[-10:]) < floor - 0.1]
figure.suptitle(f"Three masks, trained on noise; below ln 16 at the end: {', '.join(leaking) or 'none'}", fontsize=10.5)
lesson.save(figure)

# %% [markdown]
# You should see, on the left, two curves fall from ln 16 to ln 16 / 8, one at once and one within some 1,200 steps,
# and the honest one stay where it is. In the middle: which input reaches which output, as measured; orange is a leak.
# On the right each dot is one sequence, at position 4: sixteen steps, one for each answer. If all three curves fall,
# the noise is not fresh (a model learns a fixed set by heart), or your honest mask leaks. If the orange one stays
# above, check that the target is the input shifted by one.
#
# ## The surprise
# The third model was meant as a footnote. It never reads a forbidden value, it has one layer and one head, and through
# the denominator passes one number a position. We expected a loss a little below ln 16. It ends on the floor of the
# full leak: the model has made the share into an alphabet. The next token pulls the kept share down to its own one
# of 16 levels, from 0.002 to 0.78, each on average 1.5 times the one before. The answer explains 98 % of the variance
# of the logarithm of the share; with the query's own token, which the model knows, it is more than 99 %. Tokens after
# the next get so little weight that they do not disturb. One real number is plenty of room for a leak.
#
# (Near step 100 the green curve rests at about 2.2. There the share has two levels only and says one bit, in which half
# of the alphabet, more or less, the answer is: seven positions at ln 8, the last at ln 16, together
# (7 ln 8 + ln 16) / 8 = 2.17.)
#
# And no gradient check could have found it: all gradients of that layer are right to the last digits. They are the
# right gradients of a model that cheats. Nor could the initial loss, nor the training curve, which looked splendid.

# %%
medians = np.array([np.median(group) for group in by_answer])
step_up = (medians[-1] / medians[0]) ** (1 / 15)
lesson.quote("one of 16 levels, from 0.002 to 0.78,", SYMBOLS, medians[0], medians[-1], within=0.15, full_only=True)
lesson.quote("each on average 1.5 times the one before", step_up, within=0.05, full_only=True)
lesson.quote("The answer explains 98 % of the variance", 100 * explained, within=0.02, full_only=True)
lesson.check("explained with the own token", with_own, at_least=lesson.pick(full=0.99, fast=0.5))
lesson.check("mean weight of tokens after the next", p[:, 3, 5:].sum(axis=-1).mean(), lesson.pick(full=0.05, fast=0.5))
one_bit = (7 * math.log(8) + math.log(16)) / 8
lesson.quote("(7 ln 8 + ln 16) / 8 = 2.17", 7, 8, 16, 8, one_bit)
green = np.convolve(history["multiplied after"], np.ones(10) / 10, mode="valid")
lesson.check("multiplied after: loss of the steps 90 to 120 less one bit's", abs(green[90:110].mean() - one_bit), 0.15)
young = make("multiplied after")
schedule = partial(cosine, steps=100, peak=1e-2, warmup=50)
train(young, Noise(), schedule=schedule, settings=TrainingSettings(steps=100, batch_size=64))
x, _ = young.embedding.forward(fresh.ids)
*_, p_young, _, _ = young.blocks.forward(x, HONEST)[1].layers[0].self_attention.sublayer
kept = (p_young * HONEST).sum(axis=-1)[:, 3]
two = sorted(np.median(kept[answer == v]) for v in range(1, SYMBOLS + 1))
steps_up = np.divide(two[1:], two[:-1])
low = np.argmax(steps_up) + 1
lesson.check("after 100 steps, medians of the share: largest step between neighbours", steps_up.max(), at_least=10)
lesson.check("... has about half of the 16 below it: off by", abs(low - 8), 2)
lesson.check("... and on either side the largest over the smallest", max(two[low - 1] / two[0], two[-1] / two[low]), 15)
lesson.quote("one within some 1,200 steps", np.argmax(green < leaky_floor + 0.05) + 10, within=0.25, full_only=True)

# %% [markdown]
# ## Exercise
# 1. Write `reach_of` for a model that you use (20 minutes; dropout off). Passes: the reach of the honest model is the
#    full lower triangle. Then break the mask in one head of one layer only, and see that the test still finds it.
# 2. Divide the weights of "multiplied after" by their sum (15 minutes). On paper it is part 1 again. Passes: when
#    later inputs change, an output changes by less than 1e-14, for scores of order 1. Yet `leak_test` still finds it
#    changed: Z cancels on paper, not in the last bit. And find a forbidden score that makes an allowed row NaN.
# 3. Write causal attention as a layer with its backward, the mask made inside (20 minutes). Passes:
#    `minitransformer gradcheck my.py:MyCausal`, and `leak_test` of its reach is 0. Either can pass without the other.
#
# Checked exercises on this lesson: `minitransformer start 07`.

# %% [markdown]
# ## Questions
# 1. Where is the mask in backward?
# 2. A value vector at a padding position is inf or NaN, its weight exactly 0. What is in the output?
# 3. Sequences for a causal language model are padded at the end. Why does it need no padding mask?
# 4. What loss on noise has a next-token model without any mask, with V symbols and T positions?
# 5. A mask lets position t see only s < t. What loss on noise? What will you see in training on real text?
#
# ## In the wild
# * What does True mean? PyTorch has both: in nn.MultiheadAttention a boolean attn_mask or key_padding_mask is True
#   where a key is ignored; in F.scaled_dot_product_attention True takes part. Keras' attention_mask: 1 attends. Hugging
#   Face's attention_mask: 1 is a token, 0 is padding. An older TensorFlow tutorial: 1 is padding, times −1e9, added.
#   A mask the wrong way round is the row "True taken for 'ignore'" above; it runs without a word.
# * Fully masked rows in PyTorch 2.13, tried by us: F.scaled_dot_product_attention gives 0, and so does
#   nn.MultiheadAttention with need_weights=False; with need_weights=True, its default, it gives NaN.
# * Finite masks: the first BERT code adds −10,000, the first GPT-2 code subtracts 1e10, The Annotated Transformer
#   fills in −1e9. Filled into a float16 tensor, −1e9 is an error in PyTorch ("without overflow").
# * nanoGPT fills in −inf and needs no care for empty rows: under a causal mask alone every query sees itself.

# %%
lesson.finish()

# %% [markdown]
# ## Answers
# 1. In the zeros of p. Every path through a forbidden pair has p_ts as a factor.
# 2. NaN, as 0 · inf and 0 · NaN are NaN. A mask guards against what a value says, not against what is no number at
#    all. (With rows deleted, as in the check, it would not be read.)
# 3. Nothing real stands behind the padding, and the causal mask keeps all before it from seeing it. Outputs at padding
#    positions are not asked for: their targets are padding, too, and do not count in the loss.
# 4. It sees every answer but the last: ln V / T, as with one look too many. That is why BERT, which wants to look both
#    ways, does not predict the next token but hides some tokens in the input itself.
# 5. ln V: no leak, and noise has no use for its own token. The first row is empty: NaN in the first step, or 0 here. On
#    real text little is seen: a residual connection, if there is one, hands each position its own token past the
#    attention, and the loss is a little worse. Only the "too few" of the test says so.
