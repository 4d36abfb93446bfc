# %% [markdown]
# # Lesson 05: How one token finds another
#
# [![Cross-attention](../plots/05_scaled_dot_product_map.png)](../plots/00_reverse_whole.png)
#
# **How does a token find the other token that it needs, and why are the scores divided by √D?**
#
# 9 min, with a pencil 20, going deeper 4 · runs in 12 s (fast: 12 s) · needs 01, 02, 03 · difficulty 2 of 5 · paper:
# section 3.2.1, equation 1
#
# ## A row that needs another row
#
# Our tiny model reads "stop" and writes "pots". Let us pause it halfway. The encoder has read the source and left the
# memory M, one row of C = 6 numbers for each of the S = 4 letters s, t, o, p. The decoder has written "p". Now its row
# p→o, which has just read that p, must write the next letter: o. (Rows are counted from 0, so this is row 1.)
#
# The o is in row 2 of the memory. But row 1 of the decoder does not know this. It holds six numbers of its own, and
# so far no layer has let it look at the source. How can it find the row that it needs?
#
# A fixed rule, "row 1 copies from row 2", works for words of four letters and fails for "top", where row 1 must look
# at row 1. The right row depends on the word. So the decoder has to *ask*, and the letters have to *answer*.
#
# A dictionary works like that. It stores pairs of a key and a value. You bring a query, and it finds the equal key and
# returns that key's value. But for our purpose a dictionary has two faults. If no key is equal to the query, it returns
# nothing. And it has no derivative: move the query a little, and the answer stays the same or jumps.

# %% Imports
from lab import GREEN, PINK, ROWS, SOURCE, begin, error, plt, running_example, show
from pictures import grids

import numpy as np

from minitransformer.functional import scaled_dot_product_attention
from minitransformer.gradcheck import complex_step

lesson = begin("05_scaled_dot_product")
example = running_example()

# %% [markdown]
# Attention is a dictionary that always answers. It compares the query with *all* keys, and returns a weighted mean of
# *all* values: the better a key fits, the more its value counts. The answer changes smoothly with the query, so
# gradient descent can teach the decoder what to ask.
#
# Where do queries, keys and values come from? From three linear layers (lesson 02), which are learned.
#
#     q = x W_q + b_q      (T, D)   what each row x of the decoder asks
#     k = M W_k + b_k      (S, D)   what each source letter offers to be found by
#     v = M W_v + b_v      (S, D)   what each source letter hands over
#
# T = 5 decoder rows are computed at once (lesson 02), and D = 3 is the width of a query. (The model has two such
# dictionaries, called heads. We look at head 0. Lesson 08 shows both.)
#
# ## Small numbers
#
# To compare two vectors, attention takes their dot product, which is large if both are long and point the same way.
# Row 1 asks with q = (0.714, 0.028, −1.451). The key of the letter o is (4.908, 0.708, 0.228), so
#
#     q·k = 0.714 · 4.908 + 0.028 · 0.708 − 1.451 · 0.228 = 3.19
#
# Divided by √D = √3 this is the score 1.844. (The rest of this lesson is about that division.) The other three letters
# get −0.703, 0.893 and 0.664. The softmax of lesson 03 turns the four scores into weights that are positive and sum
# to 1: 0.044, 0.218, 0.564, 0.173. So 56 % of the answer is the value of o.
#
# For all rows at once, the three steps are equation 1 of the paper:
#
#     s = q kᵀ / √D        (T, S)   scores
#     p = softmax(s)       (T, S)   weights, each row positive with sum 1
#     o = p v              (T, D)   answers: o_t = Σ_j p_tj v_j
#
# (An unlucky word: its letters s, t, o and p are also our names of arrays and of an index. "The value of o" is always
# that of the letter.)

# %%
q, k, v = example["cross.q"][0], example["cross.k"][0], example["cross.v"][0]
T, D = q.shape
S = len(k)


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
lesson.save(grids(matrices, labels={"T": ROWS, "S": SOURCE}, highlight=framed), "numbers")

# %% [markdown]
# ![All matrices of the running example, from q to o](../plots/05_scaled_dot_product_numbers.png)
#
# Above, q times kᵀ, divided by √3, is s. Below, p times v is o. The row p→o is framed. It looks mostly at o. The row
# bos→p looks at p, o→t looks at t, and t→s at s. The dark cells of p run from the upper right to the lower left, which
# is what reversing means. Nobody programmed this; it was learned. (The last row must write eos, the end. It looks at s,
# but no letter can help it.)
#
# ## Guess first
#
# Write your guesses down.
#
# 1. All entries of q and k are independent, with mean 0 and variance 1, and D = 64. How large is q·k typically: about
#    1, 8 or 64?
# 2. Leave out the division by √64 = 8. What happens to the gradient that gets through the softmax if there are 4 keys?
#    And if there are 256?

# %% [markdown]
# ## How large is a dot product?
#
# Why divide by √D? Let all entries of q and k be independent, with mean 0 and variance 1. That is about right before
# training. The mean of a product of independent numbers is the product of their means. So each term q_d k_d of the dot
# product has
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
# So the typical size of a dot product is √D: 8 for the paper's D = 64. (That was guess 1.) Divide by √D, and the
# variance is divided by D: it is 1, for any D. The size of the scores no longer depends on the width that you choose.

# %%
rng = np.random.default_rng(55)


def dot_products(keys, width, sets=400, queries=10):
    """q·k for independent normal entries -> (sets * queries, keys)."""
    draws = [rng.standard_normal((queries, width)) @ rng.standard_normal((keys, width)).T for _ in range(sets)]
    return np.concatenate(draws)


variance = {width: dot_products(16, width).var() for width in (4, 64, 512)}
for width, found in variance.items():
    print(f"D = {width:3d}: Var(q·k) = {found:6.1f}, divided by D {found / width:.3f}")

# %% [markdown]
# ## What large scores do to the gradient
#
# If one score is far above the others, its key takes nearly all the weight. Then it hardly matters whether the score
# moves a little, and the softmax passes hardly any gradient back. Lesson 03 has the formula: for one query,
#
#     J_ij = ∂p_i/∂s_j = p_i (1[i = j] − p_j)
#
# We measure how much gets through by the size of J, the root of the sum of its squared entries, written ‖J‖. ("Going
# deeper" shows why.) With two keys all four entries are p_0 p_1 or −p_0 p_1, so ‖J‖ = 2 p_0 p_1. For equal scores this
# is 0.5. For the scores 1 and 0 it is 0.393. For the scores 8 and 0 it is 0.00067, which is 586 times less. And 8 is a
# typical score for D = 64, if nothing divides it. The paper names this danger: large dot products push the softmax to
# where its gradient is extremely small.
#
# [In the explorer: set the score of o to 8. How much is left of the gradient of this score?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.ds[0,1,2]&turn=cross.s[0,1,2])
#
# But the danger depends on the number of keys. Let us measure, with and without the division.

# %%
KEYS, WIDTHS = (4, 16, 64, 256), (1, 4, 16, 64, 256, 1024)


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
        sizes[keys, width] = jacobian_size(softmax(dots / np.sqrt(width))), jacobian_size(softmax(dots))
median = {place: np.median(pair, axis=-1) for place, pair in sizes.items()}
print("median of ‖J‖ over 4,000 queries, D = 64: with the division, without it")
for keys in KEYS:
    print(f"{keys:4d} keys: {median[keys, 64][0]:.2f}  {median[keys, 64][1]:.2f}")

# %% [markdown]
# ## From scratch, and checked
#
# Here is attention forward, and a part of its backward pass: from dp, the gradient of the weights, to that of the dot
# products. The line for ds is lesson 03's, and √D divides the gradient, too. (The gradients of q, k and v are lesson
# 06.) We compare with the complex step (lesson 01) and with the library.


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
# ## With √D the width does not matter

# %%
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharex=True, sharey=True)
for panel, keys in zip(axes, (4, 256), strict=True):
    with_scale, without = np.array([median[keys, width] for width in WIDTHS]).T
    panel.loglog(WIDTHS, with_scale, "o-", color=GREEN, label="with 1/√D")
    panel.loglog(WIDTHS, without, "s--", color=PINK, label="without")
    panel.set(title=f"{keys} keys", xlabel="width D of queries and keys", ylim=(1e-6, 2))
axes[0].set_ylabel("median of ‖J‖")
axes[0].legend(loc="lower left")
figure.suptitle("How much gradient passes the softmax")
lesson.save(figure)

# %% [markdown]
# ![How much gradient passes the softmax](../plots/05_scaled_dot_product.png)
#
# You should see two green lines that are nearly flat, and two dashed lines that fall steeply in the end. With 256 keys
# the dashed line first rises. If a green line falls or rises for large D, you divided by something other than √D.
#
# ## The surprise
#
# The usual sentence is "without √D the gradient vanishes". With 4 keys at D = 64 that is right: the median of ‖J‖ falls
# from 0.43 to 0.02. With 16 keys it falls from 0.30 to 0.12. With 64 keys nothing is lost: 0.18 with the division, 0.20
# without. And with 256 keys *more* gradient passes without it: 0.25 instead of 0.10. (That was guess 2.) With the
# division, 256 keys share the weight almost evenly. Every weight is small, and so is ‖J‖. Here sharper weights help.
#
# So √D does not save the gradient in every case. It makes the size of the scores independent of D. The model then
# learns how sharp its attention should be, by making queries and keys longer or shorter. Ours made them longer: its
# scores go up to 12.03.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 06.
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
# ### Typical query and mean over queries
#
# The picture shows medians. The means tell another story: at D = 64 with 4 keys the median falls by a factor of 24, but
# the mean of ‖J‖ only from 0.40 to 0.12. A query keeps its gradient if its two best scores happen to be close, and
# this happens to some queries at any width. Without the division, the luckiest tenth of the queries has 54 % of the sum
# of all ‖J‖². With it, 12 %.
#
# And the division has a price of its own. The gradient of the dot products is ds/√D, so what reaches them is
# 0.40/8 = 0.05 with the division, and 0.12 without it. In the mean, *more* gradient reaches the dot products without
# √D, as long as you do not ask which queries get it.

# %%
squares = np.sort(np.square(sizes[4, 64]), axis=-1)  # with the division, without it
share = squares[:, -400:].sum(axis=-1) / squares.sum(axis=-1)
print("D = 64 and 4 keys: a tenth of the queries has these shares of the sum of ‖J‖²:", share.round(3))

# %% [markdown]
# ### An older dictionary: kernel regression
#
# Nadaraya and Watson had the same idea in 1964. Given values v_j at places k_j, estimate the value at a new place q by
# a mean weighted with a bell curve, here of variance √D:
#
#     o = Σ_j f(q, k_j) v_j / Σ_i f(q, k_i)          f(q, k) = exp(−|q − k|² / 2√D)
#
# Multiply out |q − k|² = |q|² − 2 q·k + |k|². The factor exp(−|q|²/2√D) is in every term of the numerator and the
# denominator, and cancels. If all keys have the same length, exp(−|k|²/2√D) cancels too. What is left is exp(q·k/√D),
# divided by its sum, and that is attention. If the keys differ in length, attention lacks the factor that punishes long
# keys, so a longer key reaches more queries.

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
# ### In the wild
#
# * PyTorch's `scaled_dot_product_attention` has an argument `scale`. Its default is 1/√D.
# * T5 does not divide. Its initial weights for q are smaller by √D instead, which is the same at the start.
# * A common mistake divides by √C instead of √D. No shape changes, and the model can learn longer queries, so the
#   mistake lives long.
# * muP (the maximal update parametrization) divides by D. After training, q and k are not independent, and the dot
#   product of vectors that agree grows like D.
#
# ## Exercise
#
# 1. Pencil, 10 minutes. The entries of q have the mean 2, those of k the mean 3, and all variances are 1. What are the
#    mean and the variance of q·k? How much of this variance does the softmax see?
# 2. Keyboard, 10 minutes. Divide by D instead of √D and draw the picture again. To which value does ‖J‖ go for large D
#    and 4 keys, and what kind of attention is that?
#
# Exercises with a checker: `minitransformer start 05`.
#
# ## Questions
#
# 1. In Var(q·k) = D, which step needs independent entries?
# 2. S = T = 16, and every query equals its own key, with entries of mean 0 and variance 1. How large is its own score
#    at D = 64, after the division?
# 3. The dot products' gradient is ds/√D. Why not ds?
# 4. Popular texts print the softmax of [0.5, 0.3, −∞] as [0.625, 0.375, 0]. What did they compute?

# %% [markdown]
# ## Answers
#
# 1. E[q_d k_d q_i k_i] = 0 for d ≠ i. It leaves D terms of D².
# 2. q·q is a sum of D squares of mean 1, so about D; after the division about √D = 8. The other scores are about 1.
# 3. The score is the dot product divided by √D. A constant factor in the forward pass is a factor in the backward pass.
# 4. The scores divided by their sum, 0.5/0.8 and 0.3/0.8. The softmax is [0.550, 0.450, 0].
#
# The exercise. First: q_d k_d has the mean 6 and the variance (2² + 1)(3² + 1) − 6² = 14, so q·k has the mean 6D and
# the variance 14D. The softmax sees differences between keys only. Write q_d k_d = 3 q_d + q_d (k_d − 3). The first
# part is the same for all keys; the second has the variance 2² + 1 = 5. So it sees 5D of 14D, and not the mean. Second:
# all scores go to 0 and all weights to 1/4, a plain mean of the values. ‖J‖ goes to √3/4.

# %%
popular = softmax(np.array([0.5, 0.3, -np.inf]))
lesson.finish(globals())
