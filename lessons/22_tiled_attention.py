# %% [markdown]
# # Lesson 22: Attention without the T × T array
#
# [![The Transformer, with self-attention lit](../plots/22_tiled_attention_map.png)](../plots/00_reverse_whole.png)
#
# **A row divides by a sum over all keys. How can it read them a few at a time, and forget them?**
#
# 12 min, with a pencil 35, going deeper 10 · runs in 8 s (fast: 8 s) · needs 03, 05, 06, 07 · difficulty 3 of 5 ·
# paper: Dao et al. 2022, FlashAttention, section 3
#
# ## Eight times the text
#
# Ines has trained a small GPT on pieces of 256 characters, and now she wants it to read a whole page, 2,048 characters
# at once. The text is eight times as long, so she frees eight times as much memory and starts the run. It dies in its
# first step.
#
# Each head of each layer makes scores and weights of T × T numbers. In float32 the weights of one head take 0.26 MB at
# 256 characters and 16.8 MB at 2,048, which is 64 times as much. With 6 layers of 8 heads and 16 pieces in a batch they
# need 12.9 GB, while the answers of the heads, o, need 0.4 GB with D = 64.
#
# Could a row read a few keys at a time, write down what it found, forget them and go on? There are two obstacles. The
# softmax divides by a sum over *all* keys, so no weight is known until the last key has been read. And on the way back,
# as lesson 06 showed, the gradient of each score needs the average price of its whole row.

# %% Imports
import tracemalloc
from functools import partial, reduce

from support.lab import BLUE, GREEN, GREY, ORANGE, begin, error, plt, running_example
from support.pictures import mix

import numpy as np

from minitransformer import functional
from minitransformer.gradcheck import complex_step

lesson = begin("22_tiled_attention")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (03) A softmax may subtract any number from all scores of a row. Why does code choose the largest one?
# 2. (05) A row sees four keys. Now each key, with its value, is written a second time after the first four. What
#    happens to the weights, and what happens to the row's answer?
# 3. (06) The score of one key needs its gradient, ds_j = p_j (dp_j − p·dp). What does it need to know about the other
#    keys?
#
# (The answers are at the end.)

# %% [markdown]
# ## A row in two halves
#
# Take the position that reads «p» and writes «o», in head 0 of the running example: row p→o. Its four scores are
#
#     token     s        t        o        p
#     score   −0.703    0.893    1.844    0.664
#
# Let one reader see only «s» and «t», and another only «o» and «p». Each does attention as if there were no other keys,
# and hands in a report of three things: the largest score, the sum it divided by, and its answer.
#
#     m     = max_j s_j
#     total = Σ_j exp(s_j − m)
#     o     = Σ_j exp(s_j − m) v_j / total
#
# The left reader reports m = 0.893 and total = 1.203, the right one m = 1.844 and total = 1.307, and then the keys are
# gone. The row's true answer is a weighted mean of the two answers. The totals are nearly equal. Is the right half's
# share nearly one half?

# %%
guess = ...  # the share of the right half in o, between 0 and 1

# %% [markdown]
# ## Merging two reports
#
# The true total subtracts the largest score of all, m = max(m_left, m_right), while the left reader has subtracted
# m_left. For each key of the left half,
#
#     exp(s_j − m) = exp(s_j − m_left) exp(m_left − m)          as s_j − m = (s_j − m_left) + (m_left − m)
#
# The last factor is the same for all of them, so one multiplication brings everything the left reader has added up to
# the new scale:
#
#     Σ_left exp(s_j − m) = exp(m_left − m) total_left
#
# In our row the factor is exp(0.893 − 1.844) = 0.386, and for the right half, which has the largest score itself, it is
# exp(0) = 1. Such a factor is never above 1, so nothing can overflow.
#
# **Your line.** Before you read on, write the total of the whole row, from the two reports.

# %%
q, k, v, do = (example[f"cross.{name}"][0] for name in ("q", "k", "v", "do"))
scores = example["cross.s"][0, 1]  # row p→o
m_left, m_right = scores[:2].max(), scores[2:].max()
total_left, total_right = np.exp(scores[:2] - m_left).sum(), np.exp(scores[2:] - m_right).sum()
m = max(m_left, m_right)
total = ...  # your line: from m, m_left, m_right, total_left and total_right
lesson.judge("total", total)

# %% [markdown]
# Each half adds its own sum, brought to the scale of m:
#
#     total = exp(m_left − m) total_left + exp(m_right − m) total_right
#
# That is 0.46 + 1.31 = 1.77. For the answer, first undo the division that each reader did: the left numerator is
# total_left o_left, and it needs the same factor. Then add the numerators, and divide by the new total:
#
#     o = (exp(m_left − m) total_left o_left + exp(m_right − m) total_right o_right) / total
#
# So o is a mean of two means, each weighted by its total, once both totals are on the same scale. The right half has
# the share 1.31 / 1.77.

# %% Ours
shares = np.exp([m_left - m, m_right - m]) * [total_left, total_right]
shares = shares / shares.sum()
lesson.compare("share of the right half", guess, shares[1])

# %% [markdown]
# That is the 56 % of «o» and the 17 % of «p» from lesson 05, found without the weight of any single key. And a merge
# gives another report, which can be merged with the next. **A row may forget its keys if it remembers three things: the
# largest score, the total, and the answer so far.**
#
# ![Left: one tile exists at a time. Right: one row reads its keys, tile by tile](../plots/22_tiled_attention.png)
#
# A block of queries that meets a block of keys is called a tile. On the left, only the dark tile of all the scores
# exists: the pale ones are done and forgotten, and the dotted ones are still to come. On the right, one row reads 128
# keys in 16 tiles. You should see the largest score climb three times, then stay. At each climb the total so far is
# scaled down before the tile adds its own terms, and at the last one you see it fall.

# %% [markdown]
# ## A report and its merge, in code
#
# `attend` is lesson 05, except that it returns a report instead of o, and `merge_states` is the two formulas. `reduce`,
# from Python's own library, merges reports one by one, so each tile of scores is gone before the next comes. In the end
# a row keeps o and one number, which is all the way back needs to know about m and total: logsum = m + ln total = ln
# Σ_i exp(s_i), the logarithm of its whole denominator.


# %%
def attend(q, k, v):
    """Queries q (T, D) at a few keys -> largest score m (T, 1), total (T, 1), o (T, D)."""
    s = q @ k.T / q.shape[-1] ** 0.5
    m = s.real.max(axis=-1, keepdims=True)  # .real for the complex step
    weights = np.exp(s - m)
    total = weights.sum(axis=-1, keepdims=True)
    return m, total, weights @ v / total


def merge_states(left, right):
    """Two reports (m, total, o) on different keys -> the report on all of them."""
    (m_left, total_left, o_left), (m_right, total_right, o_right) = left, right
    m = np.maximum(m_left, m_right)
    total_left, total_right = np.exp(m_left - m) * total_left, np.exp(m_right - m) * total_right
    total = total_left + total_right
    return m, total, (total_left * o_left + total_right * o_right) / total


def tiles(length, size):
    return [slice(start, start + size) for start in range(0, length, size)]


def tiled_attention(q, k, v, size):
    """o (T, D), and the logsum of each row (T, 1). No array has T × S entries."""
    kind = np.result_type(q, k, v)
    o, logsum = np.empty((len(q), v.shape[-1]), kind), np.empty((len(q), 1), kind)
    for rows in tiles(len(q), size):
        reports = (attend(q[rows], k[keys], v[keys]) for keys in tiles(len(k), size))
        m, total, o[rows] = reduce(merge_states, reports)
        logsum[rows] = m + np.log(total)
    return o, logsum


o, logsum = tiled_attention(q, k, v, 2)
lesson.check("o from tiles of 2, against lesson 05's", error(o, example["cross.o"][0]), 1e-14)

# %% [markdown]
# ## Backward: one number for each row
#
# The way back needs the weights, and we haven't kept them. But now that the whole denominator is known, each weight can
# be recomputed when its tile comes by:
#
#     p_tj = exp(s_tj) / Σ_i exp(s_ti) = exp(s_tj − logsum_t)
#
# Now go through the five lines of lesson 06. dv, dq and dk are sums to which each tile adds its share, and the price
# dp_tj = do_t·v_j belongs to a single pair. But ds_tj = p_tj (dp_tj − p·dp) contains the average price of the row, a
# sum over all keys:
#
#     p·dp = Σ_i p_ti dp_ti
#
# A tile knows only a few of these terms. If it takes the average over its own keys, the gradient is wrong.
#
# **Your line.** But the row has kept its answer, and do has come in from above. Write the average price of all rows
# from these two arrays, (T, D).

# %%
price = ...  # your line: the average price p·dp of each row, (T, 1)
lesson.judge("price", price)

# %% [markdown]
# Substitute the price, and swap the order of the sums:
#
#     p·dp = Σ_i p_ti Σ_d do_td v_id                 dp_ti = do_t·v_i
#          = Σ_d do_td Σ_i p_ti v_id                 the order of finite sums is free
#          = Σ_d do_td o_td                          the inner sum is the answer o_td, which was kept
#          = do_t·o_t
#
# The average price of what a row looks at is the price of what it got. One number for each row, computed before the
# first tile, stands in for all the keys that a tile can't see.


# %% Ours
def tiled_backward(do, q, k, v, o, logsum, size):
    """dq, dk and dv, of the shapes of q, k and v. Each weight is computed a second time."""
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    root = q.shape[-1] ** 0.5
    price = (do * o).sum(axis=-1, keepdims=True)  # p·dp
    for rows in tiles(len(q), size):
        for keys in tiles(len(k), size):
            p = np.exp(q[rows] @ k[keys].T / root - logsum[rows])
            ds = p * (do[rows] @ v[keys].T - price[rows])
            dv[keys] += p.T @ do[rows]
            dq[rows] += ds @ k[keys] / root
            dk[keys] += ds.T @ q[rows] / root
    return dq, dk, dv


dq, dk, dv = tiled_backward(do, q, k, v, o, logsum, 2)

rng = np.random.default_rng(22)
arrays = {"q": rng.standard_normal((7, 4)), "k": rng.standard_normal((10, 4)), "v": rng.standard_normal((10, 4))}
upstream = rng.standard_normal((7, 4))


def loss(name, x):
    return (upstream * tiled_attention(**{**arrays, name: x}, size=3)[0]).sum()


def in_library(forward, backward, **options):
    """The library's o, dq, dk and dv, for one sequence and one head."""
    o, cache = forward(*(x[None, None] for x in arrays.values()), **options)
    return [x[0, 0] for x in (o, *backward(upstream[None, None], cache)[:3])]


answer, logs = tiled_attention(**arrays, size=3)
found = tiled_backward(upstream, **arrays, o=answer, logsum=logs, size=3)
for name, gradient in zip("qkv", found, strict=True):
    true = complex_step(partial(loss, name), arrays[name])
    lesson.check(f"d{name} in tiles, against the complex step", error(gradient, true), 1e-13)
library = functional.scaled_dot_product_attention, functional.scaled_dot_product_attention_backward
whole = in_library(*library)
worst = max(error(x, y) for x, y in zip((answer, *found), whole, strict=True))
lesson.check("o, dq, dk and dv, against the library's attention without tiles", worst, 1e-13)
in_tiles = in_library(functional.tiled_attention, functional.tiled_attention_backward, tile=(3, 4))
worst = max(error(x, y) for x, y in zip((answer, *found), in_tiles, strict=True))
lesson.check("... and against its attention with tiles", worst, 1e-13)

# %% [markdown]
# ## A page of 2,048 characters, measured
#
# Back to the page of 2,048 characters, with one head of D = 64 in float32, forward and backward. The five lines of
# lesson 06 need 52.4 MB at their peak, when three arrays of T × T numbers are alive at the same time. How much is it in
# tiles of 128? Estimate it: o, dq, dk and dv have 2,048 × 64 numbers each.

# %%
guess_peak = ...  # MB, where all at once takes 52.4 MB


# %%
def all_at_once(do, q, k, v):
    """Lessons 05 and 06."""
    root = q.shape[-1] ** 0.5
    s = q @ k.T / root
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    del s
    dp = do @ v.T
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return p @ v, ds @ k / root, ds.T @ q / root, p.T @ do


def in_tiles_of_128(do, q, k, v):
    o, logsum = tiled_attention(q, k, v, 128)
    return o, *tiled_backward(do, q, k, v, o, logsum, 128)


def peak(function, arrays):
    """What the function returns, and how many MB it needed at one time besides its arguments."""
    tracemalloc.start()
    results = function(*arrays)
    needed = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return results, needed / 1e6


LENGTHS = [256, 512, 1024, 2048]
memory = {}
for length in LENGTHS:
    page = [rng.standard_normal((length, 64)).astype(np.float32) for _ in range(4)]  # do, q, k, v
    once, memory[length, "whole"] = peak(all_at_once, page)
    tiled, memory[length, "tiles"] = peak(in_tiles_of_128, page)
    print(f"T = {length:5}: all at once {memory[length, 'whole']:5.1f} MB, in tiles {memory[length, 'tiles']:.1f} MB")
lesson.compare("MB in tiles of 128, at T = 2,048", guess_peak, memory[2048, "tiles"])
worst = max(error(x, y) for x, y in zip(tiled, once, strict=True))
lesson.check("at T = 2,048 the two agree, in float32", worst, 1e-5)

# %% [markdown]
# ![Peak memory of one head, forward and backward](../plots/22_tiled_attention_memory.png)
#
# On the page the tiles need 20 times less memory. Twice the text, 2,048 characters instead of 1,024, multiplies the
# upper line by 3.9 and the lower one by 1.9. Nothing has been approximated: the gradients are the same.
#
# It costs arithmetic: lesson 06 counted six matrix products, and here a seventh recomputes the scores. On a graphics
# processor, Dao and his co-authors report, it still saves time, because the large memory there is slower than the
# arithmetic, and a tile never leaves the small memory beside it.
#
# > **2018.** Maxim Milakov and Natalia Gimelshein of NVIDIA showed how a softmax can find its largest score and its
# > total in one pass, by rescaling. In 2021 Markus Rabe and Charles Staats of Google used this for attention whose
# > memory doesn't grow with T². In 2022 Tri Dao and his co-authors counted what a graphics processor reads and writes,
# > and built FlashAttention on that count. PyTorch has had it built in since 2023.
#
# ## How often does a row rescale?
#
# Whenever a tile brings a new largest score, the row has to scale down its total. How often does that happen? Take
# 2,048 random keys in 64 tiles of 32: after the first tile there are 63 chances.

# %%
guess_moves = ...  # how often a row's largest score changes, on average over the rows


# %%
def largest_so_far(s, size):
    """s (T, S) -> (T, S / size): the largest score of each row after each tile."""
    of_each = s.reshape(len(s), -1, size).max(axis=-1)
    return np.maximum.accumulate(of_each, axis=-1)


q_page, k_page, v_page = page[1:]
running = largest_so_far(q_page @ k_page.T / 8, 32)
moves = (np.diff(running, axis=-1) > 0).sum(axis=-1)
expected = sum(1 / i for i in range(2, 65))
lesson.compare("changes of a row's largest score, of 63", guess_moves, moves.mean())
lesson.check("against 1/2 + 1/3 + ... + 1/64", abs(moves.mean() - expected), 0.2)

# %% [markdown]
# It is fewer than four times. The keys come in no particular order, so the largest score of the first i tiles is
# equally likely to be in any of them, and the i-th tile brings a new one with probability 1/i. The sum of 1/i from 2 to
# 64 is 3.74, and with a thousand times as many tiles it would be only 10.6.
#
# **In papers:** rescaling as tiles arrive is *online softmax*, logsum the *log-sum-exp* (LSE), a report an *attention
# state*, computing the weights again *recomputation*, and do_t·o_t the D_i of FlashAttention (Dao et al. 2022).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with the next lesson. What each kind of attention costs, and what it can't do, is
# in docs/attention.md.
#
# ### Attention over answers
#
# A report can be even shorter. Its logsum is enough instead of m and total, because exp(logsum) is the denominator
# itself, with nothing subtracted from any score. Then the share of the left half in a merge is
#
#     exp(m_left − m) total_left / total = exp(logsum_left) / (exp(logsum_left) + exp(logsum_right))
#
# That is a softmax over the two reports, and the same holds for any number of them. So the tiles may be read in any
# order, on different processors, and combined at the end as a mean of their o under the softmax of their logsums:
# attention once again, with answers as the values. Machines that share a very long text work like this. In Ring
# Attention (Liu et al. 2023) each machine keeps its queries, the keys and values travel around from machine to machine,
# and each arrival is merged.

# %%
reports = [attend(arrays["q"], arrays["k"][keys], arrays["v"][keys]) for keys in tiles(10, 3)]
logsums_of_tiles = np.stack([m + np.log(total) for m, total, _ in reports])  # (4, T, 1)
shares_of_tiles = np.exp(logsums_of_tiles - logs)
summed = (shares_of_tiles * np.stack([o for _, _, o in reports])).sum(axis=0)
lesson.check("the shares of the tiles sum to 1", error(shares_of_tiles.sum(axis=0), 1.0), 1e-14)
lesson.check("their mean of the answers is attention", error(summed, answer), 1e-14)
other_order = [reports[i] for i in (2, 0, 3, 1)]
lesson.check("tiles in another order", error(reduce(merge_states, other_order)[2], answer), 1e-14)
pairs = merge_states(merge_states(*other_order[:2]), merge_states(*other_order[2:]))
lesson.check("... and merged in pairs", error(pairs[2], answer), 1e-14)

# %% [markdown]
# ### A tile in which nothing is allowed
#
# With a causal mask (lesson 07), all pairs of a tile above the diagonal are forbidden, so the tile doesn't need to be
# visited. At T = 2,048 in tiles of 128, 136 of the 256 tiles remain, which saves nearly half the time. A tile on the
# diagonal is masked as usual, with scores of −∞.
#
# But a tile may be allowed for one row and forbidden for another, as with padding or a window. For a row that may see
# none of its keys, the largest score is −∞, and −∞ − (−∞) isn't a number. The NaN then survives every merge, even if
# all later tiles are fine. The remedy is to subtract 0 where the largest score is −∞: such a report has a total of 0,
# and an answer of 0. A merge needs the same remedy, because with a window the first two tiles are often both empty, and
# the larger of their two largest scores is also −∞.


# %%
def finite(m):
    """What to subtract: m, or 0 where there is no key."""
    return np.where(np.isfinite(m), m, 0.0)


def attend_allowed(q, k, v, allowed, safe):
    s = np.where(allowed, q @ k.T / q.shape[-1] ** 0.5, -np.inf)
    m = s.max(axis=-1, keepdims=True)
    weights = np.exp(s - (finite(m) if safe else m))
    total = weights.sum(axis=-1, keepdims=True)
    return m, total, weights @ v / np.where(total > 0, total, 1.0)


def merge_allowed(left, right):
    (m_left, total_left, o_left), (m_right, total_right, o_right) = left, right
    m = np.maximum(m_left, m_right)
    total_left, total_right = np.exp(m_left - finite(m)) * total_left, np.exp(m_right - finite(m)) * total_right
    total = total_left + total_right
    return m, total, (total_left * o_left + total_right * o_right) / np.where(total > 0, total, 1.0)


allowed = np.ones((7, 10), dtype=bool)
allowed[2, :7] = False  # row 2 may not see the first two tiles of 3 keys, nor key 6
with_mask = {}
with np.errstate(invalid="ignore"):
    for safe in (False, True):
        masked = [
            attend_allowed(arrays["q"], arrays["k"][keys], arrays["v"][keys], allowed[:, keys], safe)
            for keys in tiles(10, 3)
        ]
        with_mask[safe] = reduce(merge_allowed if safe else merge_states, masked)[2]
print("rows that are NaN:", np.flatnonzero(np.isnan(with_mask[False]).any(axis=-1)))
right = functional.scaled_dot_product_attention(*(x[None, None] for x in arrays.values()), allowed)[0][0, 0]
lesson.check("with the remedy, against the library's", error(with_mask[True], right), 1e-14)

# %% [markdown]
# ### Mistakes that one tile cannot show
#
# If all keys are in one tile, there is nothing to merge, and a tile's own average price is the row's. So here is a
# merge that forgets to bring the totals to the same scale, and a backward pass that takes the average of each tile,
# each on 10 keys: in one tile of 16, and in tiles of 3.


# %%
def careless_merge(left, right):
    return right[0], left[1] + right[1], (left[1] * left[2] + right[1] * right[2]) / (left[1] + right[1])


def careless_dk(size):
    dk = np.zeros_like(arrays["k"])
    for keys in tiles(10, size):
        p = np.exp(arrays["q"] @ arrays["k"][keys].T / 2 - logs)
        dp = upstream @ arrays["v"][keys].T
        average = (p * dp).sum(axis=-1, keepdims=True) / p.sum(axis=-1, keepdims=True)
        dk[keys] = (p * (dp - average)).T @ arrays["q"] / 2
    return dk


errors = {}
for size in (16, 3):
    parts = [attend(arrays["q"], arrays["k"][keys], arrays["v"][keys]) for keys in tiles(10, size)]
    errors[size] = error(reduce(careless_merge, parts)[2], answer), error(careless_dk(size), found[1])
    print(f"tiles of {size:2}: error of o {errors[size][0]:.1g}, of dk {errors[size][1]:.1g}")

# %% [markdown]
# In one tile both are right to the last digits. The default of our library is 512 keys, with which a short test would
# see a single tile. So its tests choose small tiles, and lengths that they don't divide.
#
# ### The same bargain for a whole layer
#
# A tile computes its weights a second time, so that nobody has to keep them. Why stop there? Until the way back, a
# layer of a GPT keeps what each of its matrix products has read, the weights, and the wide inner array, and a model has
# many layers. Keep only the input x, and forget the rest. When dy arrives, compute forward from x again, then backward,
# and then forget again (Chen et al. 2016; most libraries call it checkpointing).
#
# So the inputs of all layers are kept, but the other arrays of only one layer at a time. It costs one more forward
# pass. Backward takes about twice as long as forward, so a step of three parts becomes one of four, a third more. In a
# tile it was the seventh product beside six.
#
# What has to be the same the second time? Everything that forward reads: x, the masks, the weights, which no optimizer
# may move in between, and, easy to forget, the dice. With dropout, the second forward must draw the zeros of the first,
# or dx is the exact gradient of a different function, whose loss nobody has computed. No shape is wrong, and training
# may still look healthy. So a layer also keeps the state of its random generator, a few numbers, and starts from there
# the second time. And whatever a layer counts, such as how busy its experts are, must be counted only once.
#
# Then nothing is approximated, or even rounded differently: all gradients are the same to the last bit. In our library
# this is `Recomputed`, which wraps any layer, and `minitransformer train text --recompute`; what it saves is
# measured in docs/benchmarks.md. And if nobody will ask for a gradient? Then not even x has to be kept: a model that
# only reads holds the arrays of one layer, however deep it is.

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. Show that merging is associative: three reports give the same m, total and o, whichever two are
#    merged first. Which report changes nothing when it is merged with another?
# 2. Pencil, 10 minutes. Dropout sets some weights to 0 after the softmax, and divides the others by the share that is
#    kept. Show that p·dp = do·o still holds, if dp is the gradient of the weights before dropout.
# 3. Keyboard, 20 and 30 minutes. Write the merge, and the backward pass of a tile.
#
# Exercises with a checker: `minitransformer start 22`.
#
# ## Questions
#
# 1. Why does `attend` divide by its total, if `merge_states` multiplies by it again?
# 2. A row's keys come with ever larger scores, or with ever smaller ones. How often does the row rescale? Does o depend
#    on the order?
# 3. In `tiled_backward` the loop over rows is outside, and the loop over keys inside. What changes if they are swapped?
# 4. "FlashAttention makes attention linear in T." What is linear, and what isn't?
# 5. A model writes one token at a time, with a cache of keys and values. Do tiles save memory there?
# 6. *Somewhere else.* A billion readings lie on many machines, and you want their mean and variance in one pass. What
#    does each machine report, and how do two reports merge?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Any number cancels in the division. With the largest, each exponential is at most 1, so none overflows, and one of
#    them is exactly 1, so the sum is never 0.
# 2. Each weight is halved, since the denominator doubles. o stays as it is: a mean doesn't notice that everything was
#    counted twice. So what matters in a merge is how the totals compare.
# 3. Two numbers: the denominator in p_j, and the average p·dp. This lesson keeps both for each row.
#
# ### Questions
#
# 1. So that each report is an answer, which means something by itself. Most implementations merge numerators and divide
#    once, at the end, which saves divisions.
# 2. At every tile, or never. o is the same up to rounding.
# 3. Only the order of the sums changes. Then dk and dv are finished tile by tile, and dq grows from
#    tile to tile. It matters on many processors, because two of them must not add to the same place at once.
# 4. The memory is linear. Each query still meets each key, so the work grows with T².
# 5. Hardly. One query has only S scores. But its keys can be shared among processors, and this lesson's merge does
#    that.
# 6. Their number, their mean, and the sum of the squared distances from that mean. The numbers add up. The new mean is
#    the mean of the two means, weighted by their numbers. And the squares add up once both are shifted to the new mean,
#    which adds (mean_left − mean_right)² · number_left · number_right / number. As with m, each report has chosen the
#    scale that suits it, and a merge brings both to the same scale.
#
# ### Exercise
#
# First: by the rule for exponentials, all sums are brought to the scale of the largest of three scores, in whatever
# order. The report with m = −∞ and total = 0 changes nothing, and two of them make a third, if the code subtracts 0
# where m is −∞ (see Going deeper). Second: dropout puts a factor before p_tj in o_t = Σ_j p_tj v_j, and the same factor
# before do_t·v_j in dp_tj. In Σ_j p_tj dp_tj it appears once, and the sum is do_t·o_t.

# %%
# the pictures of this lesson
panels = [["tiles", "largest"], ["tiles", "total"]]
ratios = {"width_ratios": [1, 1.3], "height_ratios": [1.7, 1]}
figure, axes = plt.subplot_mosaic(panels, figsize=(7.6, 3.7), **ratios)
plan = axes["tiles"]
for row in range(6):
    for column in range(6):
        done = (row, column) < (2, 3)
        fill = BLUE if (row, column) == (2, 3) else mix(BLUE, 0.1) if done else "white"
        style = {"facecolor": fill, "edgecolor": GREY, "linewidth": 0.5, "linestyle": "-" if done else ":"}
        plan.add_patch(plt.Rectangle((column, row), 1, 1, **style))
for x, y, width, height in ((-1.7, 0, 0.7, 6), (0, -1.7, 6, 0.7), (0, -2.7, 6, 0.7), (6.6, 0, 0.7, 6)):
    plan.add_patch(plt.Rectangle((x, y), width, height, facecolor=mix(BLUE, 0.25), edgecolor=BLUE))
for x, y, width, height in ((-1.7, 2, 0.7, 1), (3, -1.7, 1, 0.7), (3, -2.7, 1, 0.7), (6.6, 2, 0.7, 1)):
    plan.add_patch(plt.Rectangle((x, y), width, height, facecolor=BLUE))
labels = {"q (T, D)": (-1.35, 6.6), "kᵀ (D, S)": (7.6, -1.35), "vᵀ (D, S)": (7.6, -2.35), "m, total, o": (6.95, 6.6)}
for text, place in labels.items():
    plan.text(*place, text, ha="center", va="center")
plan.text(3, 6.6, "s (T, S)", ha="center", va="center", color=GREY)
plan.set(xlim=(-2.6, 9), ylim=(7.1, -3), aspect="equal", xticks=[], yticks=[])
plan.set_axis_off()

drawn = np.random.default_rng(17).standard_normal(128) * 1.5
reports = [drawn[keys] for keys in tiles(128, 8)]
largest = np.maximum.accumulate([part.max() for part in reports])
sums = [np.exp(drawn[: 8 * i + 8] - largest[i]).sum() for i in range(16)]
upper, lower = axes["largest"], axes["total"]
for tile in range(0, 16, 2):
    for axis in (upper, lower):
        axis.axvspan(8 * tile, 8 * tile + 8, color=mix(GREY, 0.1), linewidth=0)
upper.plot(np.arange(128) + 0.5, drawn, ".", color=GREY, markersize=4)
upper.step(np.arange(0, 129, 8), [*largest, largest[-1]], where="post", color=BLUE)
upper.set(title="One row reads 16 tiles", ylabel="score", xlim=(0, 128), ylim=(-6, 6), xticks=[])
upper.text(126, largest[-1] + 0.25, "largest so far, m", color=BLUE, ha="right")
upper.text(126, -5.5, "scores", color=GREY, ha="right")
lower.step(np.arange(0, 129, 8), [*sums, sums[-1]], where="post", color=GREEN)
lower.set(xlabel="key", ylabel="total so far", xlim=(0, 128), ylim=(0, None))
lesson.save(figure)

figure, axis = plt.subplots(figsize=(5.6, 3))
for kind, color, name in (("whole", ORANGE, "all at once"), ("tiles", BLUE, "in tiles of 128")):
    needed = [memory[length, kind] for length in LENGTHS]
    axis.loglog(LENGTHS, needed, "o-", color=color)
    axis.text(LENGTHS[-1] * 1.1, needed[-1], f"{name}\n{needed[-1]:.1f} MB", color=color, va="center")
axis.set(xlabel="tokens T", ylabel="peak memory (MB)", xlim=(230, 5200), xticks=LENGTHS, xticklabels=map(str, LENGTHS))
axis.set_yticks([1, 10, 50], ["1", "10", "50"])
axis.minorticks_off()
lesson.save(figure, "memory")
lesson.finish(globals())
