# %% [markdown]
# # Lesson 05: How one token finds another
#
# [![Cross-attention](../plots/05_scaled_dot_product_map.png)](../plots/00_reverse_whole.png)
#
# **How does a token find the other token it needs, and why are the scores divided by √D?**
#
# 12 min, with a pencil 30, going deeper 5 · runs in 15 s (fast: 15 s) · needs 01, 02, 03 · difficulty 2 of 5 · paper:
# section 3.2.1, equation 1
#
# ## Everything through one vector
#
# In 2014 a neural translator had two halves. The encoder read a sentence word by word, and kept what it had understood
# in a single vector. The decoder wrote the translation, and this vector was all it knew about the sentence. It worked,
# but long sentences fell apart, because the vector is the same size for three words as for fifty.
#
# You can see this with letters. We let such a pair, an LSTM on each side, learn for 40 seconds to copy random words of
# 1 to 16 letters ([measured](../docs/compare.md)). Of the words with two letters it copies 100 of 100, with 8 letters
# 81, with 12 letters 61, and with 16 only 7. What goes wrong? The decoder needs one letter at a time, a different one
# each time. But the encoder had to squeeze all of them into the same numbers, before anybody could say which would be
# needed when.
#
# ![One vector between encoder and decoder, or all of them, and how many words come out
# right](../plots/05_scaled_dot_product_bottleneck.png)
#
# In the same year Bahdanau, Cho and Bengio changed one thing: the encoder keeps *all* its vectors, one for each letter,
# and before each letter that it writes, the decoder looks at them and takes what it needs now. This way, the same LSTMs
# copy at least 99 of 100 words at every length up to 16, after the same 40 seconds. It also helps when nothing is
# copied: shown 26 pairs of a letter and a digit, and then asked for the digit of one letter, the pair with one vector
# is right in 33 of 100 cases, and the pair with attention in all of them.
#
# So this is what attention is for: each output fetches what it needs, from everything that was read, at the moment it
# needs it. In 2017 the paper kept the looking and threw the LSTMs away. But how does a decoder know where to look, and
# how does it learn that? The answer is a formula, and here is its smallest case.
#
# ## A row that needs another row
#
# Our tiny model reads "stop" and writes "pots". Let's pause it halfway, when the encoder has read the source and left
# the memory M, one row of C = 6 numbers for each of the S = 4 letters «s», «t», «o» and «p». The decoder has written
# «p», and the position that has just read this «p» must now write «o». We call it row p→o; counted from 0, it is row 1.
#
# The «o» is in row 2 of the memory, but row p→o doesn't know this: it holds its own six numbers, and so far no layer
# has let it look at the source. A colleague suggests a fixed rule, "row 1 copies from row 2", which works for words of
# four letters and fails for "top". Since the right row depends on the word, the decoder has to *ask*, and the letters
# have to *answer*.

# %% Imports
from support.lab import GREEN, PINK, ROWS, SOURCE, begin, error, plt, running_example, show
from support.pictures import grids

import numpy as np

from minitransformer.functional import scaled_dot_product_attention
from minitransformer.gradcheck import complex_step

lesson = begin("05_scaled_dot_product")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) Five rows go through the layer y = x W + b at once. What does row 1 of y notice about the other four rows?
# 2. (03) You add 5 to all scores of a softmax. What does that say about the sum of their gradients?
# 3. (01) A difference quotient gets worse below some step h. Why may the complex step have h = 1e-30?
#
# (The answers are at the end.)

# %% [markdown]
# ## A dictionary that always answers
#
# A Python dictionary works like this: you bring a query, and it returns the value whose key is equal. It has two
# faults: if no key is equal, it returns nothing, and it has no derivative, because a query that moves a little gets
# either the same answer or a completely different one.
#
# **Attention is a dictionary that always answers: it compares the query with all keys, and returns a weighted mean of
# all values.** The better a key matches, the more its value counts. And since the answer changes smoothly with the
# query, gradient descent can teach the decoder what to ask.
#
# Queries, keys and values come from three learned linear layers (lesson 02):
#
#     q = x W_q + b_q      (T, D)   what each row x of the decoder asks
#     k = M W_k + b_k      (S, D)   what each source letter offers to be found by
#     v = M W_v + b_v      (S, D)   what each source letter hands over
#
# All T = 5 decoder rows are computed at once, and D = 3 is the width of a query. (This layer has two such dictionaries,
# called heads; we look at head 0, and lesson 08 shows both.)
#
# > **1964.** Nadaraya and Watson, independently, estimated a curve at a new place by averaging the known values,
# > weighted by how close they are. Fifty years later Bahdanau, Cho and Bengio let a translator weight the words of its
# > source, with a small network to compare them. The paper of 2017 compares with the fastest thing there is, a dot
# > product.
#
# ## One row asks four letters
#
# To compare two vectors, attention takes their dot product, which is large if both are long and point the same way. Row
# p→o asks with q = (0.714, 0.028, −1.451), and the key of «o» is (4.908, 0.708, 0.228), so
#
#     q·k = 0.714 · 4.908 + 0.028 · 0.708 − 1.451 · 0.228 = 3.19
#
# Divided by √D = √3 this is the score 1.844.
#
# **Your line.** Before you read on, write the scores of row p→o with all four keys, from q[1] (D,), k (S, D) and D.

# %%
q, k, v = example["cross.q"][0], example["cross.k"][0], example["cross.v"][0]
T, D = q.shape
S = len(k)
s_row = ...  # your line: the four scores of row p→o, (S,)
lesson.judge("s_row", s_row)

# %% [markdown]
# The other three letters get −0.703, 0.893 and 0.664. The softmax of lesson 03 turns the four scores into weights that
# sum to 1: 0.044, 0.218, 0.564, 0.173. So 56 % of the answer is the value of «o». For all rows at once, this is
# equation 1 of the paper:
#
#     s = q kᵀ / √D        (T, S)   scores
#     p = softmax(s)       (T, S)   weights, each row positive with sum 1
#     o = p v              (T, D)   answers: o_t = Σ_j p_tj v_j


# %%
def softmax(s):
    """p_tj = exp(s_tj) / Σ_i exp(s_ti), along the last axis (lesson 03)."""
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))  # .real, because the complex step sends complex scores
    return p / p.sum(axis=-1, keepdims=True)


s = q @ k.T / np.sqrt(D)
p = softmax(s)
o = p @ v
show("scores s (T, S)", s, ROWS, SOURCE)
show("weights p (T, S)", p, ROWS, SOURCE)
show("answers o (T, D)", o, ROWS)
matrices = {"q (T, D)": q, "kᵀ (D, S)": k.T, "s (T, S)": s, "p (T, S)": p, "v (S, D)": v, "o (T, D)": o}
row = [(1, 0), (1, 1), (1, 2), (1, 3)]  # row p→o
framed = {"q": row[:D], "s": row, "p": row, "o": row[:D]}
signs = ["×", "/ √D  =", "softmax  →", "×", "="]
lesson.save(grids(matrices, labels={"T": ROWS, "S": SOURCE}, highlight=framed, between=signs), "numbers")

# %% [markdown]
# ![q times kᵀ, divided by √D, is s; its softmax p, times v, is o](../plots/05_scaled_dot_product_numbers.png)
#
# Row p→o is framed, and looks mostly at «o». Likewise row bos→p looks at «p», o→t at «t», and t→s at «s», so the dark
# cells of p run from the upper right to the lower left: this is reversing, and nobody programmed it. (The last row must
# write eos, the end, and no letter can help it.)
#
# ## How large is a dot product?
#
# Let all entries of q and k be independent, with mean 0 and variance 1, roughly true before training.
#
# **Your guess.** How large is q·k typically if D = 64: about 1, 8 or 64?

# %%
guess_size = ...  # the typical size of q·k, for D = 64

# %% [markdown]
# The mean of a product of independent numbers is the product of their means, so each term q_d k_d of the dot product
# has
#
#     mean           E[q_d k_d]     = E[q_d] E[k_d]   = 0 · 0 = 0
#     mean square    E[(q_d k_d)²]  = E[q_d²] E[k_d²] = 1 · 1 = 1
#
# and for two different terms, d ≠ i,
#
#     E[q_d k_d q_i k_i] = E[q_d] E[k_d] E[q_i] E[k_i] = 0
#
# Now add D terms, and square the sum:
#
#     E[q·k]    = Σ_d E[q_d k_d] = 0
#     Var(q·k)  = E[(q·k)²] = Σ_d Σ_i E[q_d k_d q_i k_i]       the square multiplied out
#               = Σ_d 1 = D                                    only the D terms with i = d remain
#
# So the typical size of a dot product, the root of its mean square, is √D, which is 8 for the paper's D = 64. Divided
# by √D it has variance 1 for any D, and the size of the scores no longer depends on the width.

# %%
rng = np.random.default_rng(55)


def dot_products(keys, width, sets=400, queries=10):
    """q·k for independent normal entries -> (sets * queries, keys)."""
    draws = [rng.standard_normal((queries, width)) @ rng.standard_normal((keys, width)).T for _ in range(sets)]
    return np.concatenate(draws)


variance = {width: dot_products(16, width).var() for width in (4, 64, 512)}
for width, found in variance.items():
    print(f"D = {width:3d}: Var(q·k) = {found:6.1f}, divided by D {found / width:.3f}")
lesson.compare("typical size of q·k for D = 64", guess_size, variance[64] ** 0.5)

# %% [markdown]
# ## What large scores do to the gradient
#
# If one score is far above the others, its key takes nearly all the weight. Then it hardly matters if the score moves a
# little, so the softmax passes back hardly any gradient. For one query, lesson 03 has the formula
#
#     J_ij = ∂p_i/∂s_j = p_i (1[i = j] − p_j)
#
# We measure how much gets through by the size of J, the root of the sum of its squared entries, written ‖J‖. With two
# keys all four entries are p_0 p_1 or −p_0 p_1, so ‖J‖ = 2 p_0 p_1. For equal scores this is 0.5, and for the scores 1
# and 0 it is 0.393. For the scores 8 and 0 it is 0.00067, which is 586 times less. And 8 is a typical dot product for
# D = 64. This is the danger the paper names: large dot products push the softmax to where its gradient is extremely
# small.
#
# [In the explorer: set the score of «o» to 8. How much is left of the gradient of this score?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.ds[0,1,2]&turn=cross.s[0,1,2])
#
# But ‖J‖ is taken at the scores, and queries and keys are one step further back, at the dot products. A score is a dot
# product divided by √D, so they feel only ds/√D. The division that protects the softmax takes a share of the gradient
# for itself.
#
# **Your guess.** Take 64 keys and D = 64, and leave out the division. How many times as much gradient reaches the dot
# products of a typical query? (Less than 1 if the division helps.)

# %%
guess_times = ...  # the gradient without the division over that with it

# %%
KEYS, WIDTHS = (4, 8, 16, 64, 256), (1, 4, 16, 64, 256, 1024)


def jacobian_size(p):
    """‖J‖ for each row of weights."""
    others = 1 - np.eye(p.shape[-1])  # p @ others is 1 − p, with all its digits
    diagonal = p * (p @ others)
    elsewhere = p**2 * (p**2 @ others)  # for each row i of J: the sum of its (p_i p_j)², j ≠ i
    return np.sqrt((diagonal**2 + elsewhere).sum(axis=-1))


two_keys = [jacobian_size(softmax(np.array([gap, 0.0]))) for gap in (0.0, 1.0, 8.0)]
sizes = {}
for keys in KEYS:
    for width in WIDTHS:
        dots = dot_products(keys, width)
        at_scores, without = jacobian_size(softmax(dots / np.sqrt(width))), jacobian_size(softmax(dots))
        sizes[keys, width] = at_scores, at_scores / np.sqrt(width), without
median = {place: np.median(triple, axis=-1) for place, triple in sizes.items()}
print("median of 4,000 queries, D = 64: at the scores, at the dot products, at both without the division")
for keys in KEYS:
    print(f"{keys:4d} keys: ", *(f"{value:.3f} " for value in median[keys, 64]))
lesson.compare("without the division, over with it, 64 keys", guess_times, median[64, 64][2] / median[64, 64][1])

# %% [markdown]
# ## The gradient at the dot products
#
# Here is attention forward, and backward from dp, the gradient of the weights, to the gradient of the dot products.
# (The gradients of q, k and v are lesson 06.)


# %%
def attention(q, k, v):
    s = q @ k.T / np.sqrt(q.shape[-1])
    p = softmax(s)
    return p @ v, p


def dot_product_gradient(dp, p, width):
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return ds / np.sqrt(width)


dp = example["cross.dp"][0]
true = complex_step(lambda dots: (dp * softmax(dots / np.sqrt(D))).sum(), q @ k.T)
lesson.check(
    "gradient of the dot products, against the complex step", error(dot_product_gradient(dp, p, D), true), 1e-14
)
library, cache = scaled_dot_product_attention(q, k, v)
lesson.check("answers equal to the library's", error(attention(q, k, v)[0], library), 1e-13)
lesson.check("weights equal to the library's", error(p, cache.weights), 1e-13)

# %% [markdown]
# ## At the scores the width does not matter

# %%
figure, axes = plt.subplots(1, 3, figsize=(8.0, 3.3), sharex=True, sharey=True)
for panel, keys in zip(axes, (4, 16, 256), strict=True):
    at_scores, at_dots, without = np.array([median[keys, width] for width in WIDTHS]).T
    panel.loglog(WIDTHS, at_scores, "o-", color=GREEN, label="with 1/√D, at s")
    panel.loglog(WIDTHS, at_dots, "o:", color=GREEN, label="with 1/√D, at q·k")
    panel.loglog(WIDTHS, without, "s--", color=PINK, label="without, at both")
    panel.set(title=f"{keys} keys", xlabel="width D", ylim=(1e-6, 2))
axes[0].set_ylabel("median of what gets through")
axes[0].legend(loc="lower left", fontsize=8)
figure.suptitle("How much gradient passes the softmax")
lesson.save(figure)

# %% [markdown]
# ![How much gradient passes the softmax, at the scores and at the dot products](../plots/05_scaled_dot_product.png)
#
# The solid green lines should be nearly flat; if one falls or rises for large D, you divided by something other than
# √D. The dotted lines are the same divided by √D, which is what queries and keys feel. The pink lines plunge in the
# end, but the more keys there are, the later they cross the dotted ones.
#
# ## What √D is good for
#
# "Without √D the gradient vanishes", most texts say. Here are the medians for D = 64:
#
#     keys                            4        8       16       64      256
#     with √D, at the scores      0.427    0.367    0.303    0.180    0.097
#     with √D, at q·k             0.053    0.046    0.038    0.022    0.012
#     without, at both            0.018    0.070    0.120    0.179    0.249
#
# At the scores the sentence is true for a few keys: with 4 of them, the division keeps 24 times as much. With 64 keys
# it changes nothing, and with 256 keys *more* gets through without it: with it, they share the weight almost evenly, so
# every weight is small, and so is ‖J‖.
#
# But queries and keys feel what arrives at q·k. There the division helps only with 4 keys, and with 64 keys a typical
# query would get 8 times as much gradient without it.
#
# So what is √D good for? It treats all queries alike. A query keeps its gradient if its two best scores happen to be
# close, and without the division, at 4 keys, the luckiest tenth of the queries has 54 % of the sum of all ‖J‖²; with
# it, 12 %. And the scores start at the same size for every D. From there the model learns how sharp its attention
# should be, by making queries and keys longer or shorter. Ours made them longer: its scores go up to 12.03.

# %%
squares = {keys: np.sort(np.square(sizes[keys, 64]), axis=-1)[::2] for keys in KEYS}  # with the division, without it
share = {keys: values[:, -400:].sum(axis=-1) / values.sum(axis=-1) for keys, values in squares.items()}
for keys in KEYS:
    print(f"{keys:4d} keys: a tenth of the queries has these shares of the sum of ‖J‖²:", share[keys].round(2))

# %% [markdown]
# **In papers:** this is *scaled dot-product attention*, without √D Luong's *dot* attention (2015), scores are also
# *attention logits* or *energies*, and a softmax that passes hardly any gradient is *saturated*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 06.
#
# ### Where the formula for ‖J‖ comes from
#
# Let the entries of dp be independent with mean 0 and variance 1. Then E[dp_i dp_j] = 0 for i ≠ j, and
#
#     ds_i      = Σ_j dp_j J_ji
#     E[|ds|²]  = Σ_i E[(Σ_j J_ji dp_j)²] = Σ_i Σ_j J_ji² = ‖J‖²
#
# So ‖J‖ says how much of a random gradient gets through. On its diagonal J has p_i (1 − p_i), and 1 − p_i is the sum of
# the other weights; elsewhere it has −p_i p_j:
#
#     ‖J‖² = Σ_i [ (p_i Σ_{j≠i} p_j)² + Σ_{j≠i} (p_i p_j)² ] = Σ_i p_i² [ (Σ_{j≠i} p_j)² + Σ_{j≠i} p_j² ]
#
# Each term contains the weights of two different keys. If one key has all the weight, every term is 0. With two keys
# this is p_0² (p_1² + p_1²) + p_1² (p_0² + p_0²) = 4 p_0² p_1².

# %% [markdown]
# ### An older dictionary: kernel regression
#
# Given values v_j at places k_j, Nadaraya and Watson estimate the value at a new place q by a mean weighted with a bell
# curve, here of variance √D:
#
#     o = Σ_j f(q, k_j) v_j / Σ_i f(q, k_i)          f(q, k) = exp(−|q − k|² / 2√D)
#
# Multiply out |q − k|² = |q|² − 2 q·k + |k|². The factor exp(−|q|²/2√D) is in every term of the numerator and the
# denominator, and cancels. If all keys have the same length, exp(−|k|²/2√D) cancels too. What is left is exp(q·k/√D)
# divided by its sum, which is attention. If the keys differ in length, attention lacks the factor that punishes long
# keys, so the longest key gets more weight than in kernel regression, from every query.

# %%
equal = 3 * k / np.sqrt((k**2).sum(axis=-1, keepdims=True))  # keys of length 3


def kernel_regression(q, k, v, variance):
    bell = np.exp(-((q[:, None] - k[None]) ** 2).sum(axis=-1) / (2 * variance))
    return bell @ v / bell.sum(axis=-1, keepdims=True)


lesson.check(
    "keys of one length: attention is kernel regression",
    error(attention(q, equal, v)[0], kernel_regression(q, equal, v, np.sqrt(D))),
    1e-13,
)
different = error(attention(q, k, v)[0], kernel_regression(q, k, v, np.sqrt(D)))

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. The entries of q have mean 2, the entries of k have mean 3, and all variances are 1. What are
#    the mean and the variance of q·k? How much of this variance does the softmax see?
# 2. Keyboard, 10 minutes. Divide by D instead of √D and draw the picture again. What value does ‖J‖ approach for large
#    D and 4 keys, and what kind of attention is that?
#
# Exercises with a checker: `minitransformer start 05`.
#
# ## Questions
#
# 1. In Var(q·k) = D, which step needs independent entries?
# 2. S = T = 16, and every query equals its own key, with entries of mean 0 and variance 1. How large is its own score
#    at D = 64, after the division?
# 3. T5 doesn't divide. Its initial W_q has entries smaller by √D instead. What is the same at the start as with the
#    division, and what isn't?
# 4. Popular texts print the softmax of [0.5, 0.3, −∞] as [0.625, 0.375, 0]. What did they compute?
# 5. *Somewhere else.* A search for photos compares a query with each photo by a dot product of two vectors of length 1,
#    with 512 numbers each. Should it divide these scores by √512 before a softmax?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Nothing: y_n = x_n W + b holds for each row separately. That is why one product can ask the questions of all rows.
# 2. The weights stay, because the factor e⁵ cancels. So the loss doesn't change in this direction, and the gradients
#    of the scores sum to 0.
# 3. It subtracts no two nearly equal numbers, so no digits are lost, however small h is.
#
# ### To the questions
#
# 1. E[q_d k_d q_i k_i] = 0 for d ≠ i. It leaves D of the D² terms.
# 2. q·q is a sum of D squares of mean 1, so about D; after the division about √D = 8. The other scores have the size 1.
# 3. The scores are the same, and so are weights, answers and ds. But dq = ds k lacks the division, so the gradient of
#    W_q is √D times as large, for a W_q that is √D times smaller. (The gradient of W_k is the same: its factor q is
#    smaller.)
# 4. The scores divided by their sum, 0.5/0.8 and 0.3/0.8. The softmax is [0.550, 0.450, 0].
# 5. No, it should multiply them, by √512 for a size of 1. The squares of a vector sum to 1, so each number has a mean
#    square of 1/512, and the dot product of two random vectors has variance 1/512, a size of 0.044. A softmax of such
#    scores gives all photos nearly the same weight. The division is meant for numbers of size 1, like those in queries
#    and keys at the start.
#
# ### To the exercise
#
# First: q_d k_d has mean 6 and variance (2² + 1)(3² + 1) − 6² = 14, so q·k has mean 6D and variance 14D. The softmax
# sees only differences between keys. Write q_d k_d = 3 q_d + q_d (k_d − 3). The first part is the same for all keys;
# the second has variance 2² + 1 = 5. So it sees 5D of 14D, and not the mean. Second: all scores go to 0 and all
# weights to 1/4, a plain mean of the values. ‖J‖ goes to √3/4.

# %%
popular = softmax(np.array([0.5, 0.3, -np.inf]))

# %%
# the picture of one vector and of many
LENGTHS = (2, 4, 6, 8, 10, 12, 14, 16)
COPIED = {  # of 100 words of each length (docs/compare.md)
    "one vector": (100, 96, 90, 81, 69, 61, 33, 7),
    "attention": (100, 100, 100, 100, 100, 100, 100, 99),
}
figure, (sketch, chart) = plt.subplots(1, 2, figsize=(7.6, 2.6), width_ratios=(1.3, 1))
sketch.set(xlim=(-0.1, 6.3), ylim=(-0.5, 3.3), aspect="equal", xticks=[], yticks=[])
sketch.set_axis_off()
for left, name, color in ((0.0, "one vector", PINK), (3.5, "attention", GREEN)):
    for i, letter in enumerate("stop"):
        x = left + 0.7 * i
        for low in (0.0, 2.6):  # what is read, and what is written
            style = {"facecolor": "white", "edgecolor": color, "zorder": 2}
            sketch.add_patch(plt.Rectangle((x, low), 0.55, 0.5, **style))
            sketch.text(x + 0.27, low + 0.24, letter, ha="center", va="center", zorder=3)
        ends = [(left + 1.32, 1.55)] if name == "one vector" else [(left + 0.27 + 0.7 * j, 2.6) for j in range(4)]
        for end in ends:
            sketch.plot([x + 0.27, end[0]], [0.5, end[1]], color=color, linewidth=0.8, zorder=1)
        if name == "one vector":
            sketch.plot([left + 1.32, x + 0.27], [1.55, 2.6], color=color, linewidth=0.8, zorder=1)
    sketch.text(left + 1.32, -0.35, name, color=color, ha="center", va="center")
    chart.plot(LENGTHS, COPIED[name], "o-", color=color, markersize=4, label=name)
sketch.add_patch(plt.Rectangle((1.0, 1.3), 0.65, 0.5, facecolor=PINK, edgecolor=PINK, zorder=2))
chart.set(xlabel="letters of the word", ylabel="copied, of 100", ylim=(-3, 106), xticks=LENGTHS)
chart.legend(loc="lower left")
lesson.save(figure, "bottleneck")
lesson.finish(globals())
