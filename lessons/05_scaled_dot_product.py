# %% [markdown]
# # Lesson 05: How one token finds another
#
# * Question: how does a token find the other token that it needs, and why are the scores divided by √D?
# * You derive: attention as a dictionary that always answers; Var(q·k) = D; what large scores do to the gradient
# * Reading: 9 min, going deeper 4 min
# * Run: 2 s (fast: 2 s)
# * Needs: 03
# * Difficulty: 2 of 5
# * Paper: section 3.2.1, equation 1
#
# ![The Transformer, with cross-attention lit](../plots/05_scaled_dot_product_map.png)

# %%
from lab import BLUE, ORANGE, ROWS, SOURCE, begin, error, plt, running_example, show
from pictures import grids

import numpy as np

lesson = begin("05_scaled_dot_product")
example = running_example()

# %% [markdown]
# ## A row that needs another row
#
# Our tiny model reads "stop" and writes "pots". Stop the clock in the middle of its work. The encoder has read the
# source and left the memory M, one row of C = 6 numbers for each of the S = 4 letters s, t, o, p. The decoder has
# written "p". Now its row 1, which has just read that p, must write the next letter: o.
#
# The o is in row 2 of the memory. But row 1 of the decoder does not know this. It holds six numbers of its own, and
# so far no layer has let it look at the source. How can it find the row that it needs?
#
# A fixed rule, "row 1 copies from row 2", works for words of four letters and fails for "top", where row 1 must look
# at row 1. The right row depends on the word. So the decoder has to *ask*, and the letters have to *answer*.
#
# A dictionary works like that. It stores pairs of a key and a value; you bring a query, it finds the equal key and
# returns that key's value. Two things are wrong with a dictionary for our purpose. If no key is equal to the query, it
# returns nothing. And it has no derivative: move the query a little, and the answer stays the same or jumps.

# %% [markdown]
# Attention is a dictionary that always answers. It compares the query with *all* keys, and returns a mean of *all*
# values, in which the better a key fits, the more its value counts. This changes smoothly with the query, so gradient
# descent can teach it what to ask.
#
# Who provides the three? Learned linear layers (lesson 02):
#
#     q = x W_q + b_q      (T, D)   what each row of the decoder asks
#     k = M W_k + b_k      (S, D)   what each source letter offers to be found by
#     v = M W_v + b_v      (S, D)   what each source letter hands over
#
# T = 5 is the number of decoder rows, and D = 3 the width of a query. (The model has two such dictionaries, called
# heads. We look at head 0. Lesson 08 shows both.)
#
# ## Guess first
#
# Write your guesses down. A wrong guess is the best way to remember the answer.
#
# 1. All entries of q and k are independent, with mean 0 and variance 1, and D = 64. How large is q·k typically: about
#    1, 8 or 64?
# 2. Multiply all scores by 8. What happens to the gradient that gets through the softmax if there are 4 keys? And if
#    there are 256?

# %% [markdown]
# ## Small numbers
#
# These are the queries, keys and values of head 0, as our model computes them. To compare two vectors, attention takes
# their dot product, which is large when they point the same way. Row 1 asks with q = (0.714, 0.028, −1.451). The key of
# the letter o is (4.908, 0.708, 0.228), so
#
#     q·k = 0.714 · 4.908 + 0.028 · 0.708 − 1.451 · 0.228 = 3.19
#
# Divided by √D = √3 this is the score 1.844. (The rest of this lesson is about that division.) The other three letters
# get −0.703, 0.893 and 0.664. The softmax of lesson 03 turns the four scores into weights that are positive and sum
# to 1: 0.044, 0.218, 0.564, 0.173. So the answer is 56 % the value of o, and the rest is spread over the other letters.

# %%
q, k, v = example["cross.q"][0], example["cross.k"][0], example["cross.v"][0]
T, D = q.shape
S = len(k)


def softmax(s):
    """p_tj = exp(s_tj) / Σ_i exp(s_ti), along the last axis (lesson 03)."""
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


s = q @ k.T / np.sqrt(D)
p = softmax(s)
o = p @ v
show("scores s (T, S)", s, ROWS, SOURCE)
show("weights p (T, S)", p, ROWS, SOURCE)
show("answers o (T, D)", o, ROWS)
figure = grids({"q (T, D)": q, "k (S, D)": k, "s (T, S)": s, "p (T, S)": p}, labels={"T": ROWS, "S": SOURCE})
lesson.save(figure, "numbers")

# %% [markdown]
# ![q, k, scores and weights of the running example](../plots/05_scaled_dot_product_numbers.png)
#
# A row is named by the letter that it reads and the letter that it must write. The row bos→p looks at p. The row p→o,
# ours, looks mostly at o. Then o→t looks at t, and t→s at s. The bright cells run from the upper right to the lower
# left, which is what reversing means. Nobody programmed this; it was learned. (The last row must write eos, the end,
# and no letter helps it.)
#
# For all rows at once, the three steps are equation 1 of the paper:
#
#     s = q kᵀ / √D        (T, S)   scores
#     p = softmax(s)       (T, S)   weights, each row positive with sum 1
#     o = p v              (T, D)   answers: o_t = Σ_j p_tj v_j

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
# and for two different terms, d ≠ c,
#
#     E[q_d k_d q_c k_c] = E[q_d] E[k_d] E[q_c] E[k_c] = 0
#
# Now add D terms, and square the sum:
#
#     E[q·k]    = Σ_d E[q_d k_d] = 0
#     Var(q·k)  = E[(q·k)²] = Σ_d Σ_c E[q_d k_d q_c k_c]       the square multiplied out
#               = Σ_d 1 = D                                    only the D terms with c = d remain
#
# So the typical size of a dot product is √D: 8 for the paper's D = 64. Divide by √D, and the variance is divided by D:
# it is 1, for any D. The size of the scores no longer depends on a choice of width.

# %%
rng = np.random.default_rng(55)


def raw_scores(keys, width, sets=400, queries=10):
    """q·k for independent normal entries -> (sets * queries, keys)."""
    draws = [rng.standard_normal((queries, width)) @ rng.standard_normal((keys, width)).T for _ in range(sets)]
    return np.concatenate(draws)


variance = {width: raw_scores(16, width).var() for width in (4, 64, 512)}
for width, found in variance.items():
    print(f"D = {width:3d}: Var(q·k) = {found:6.1f}, divided by D {found / width:.3f}")

# %% [markdown]
# ## What large scores do to the gradient
#
# A score far above the others takes nearly all the weight. Then it hardly matters whether the score moves a little, and
# the softmax passes no gradient back. Lesson 03 has the formula: for one query,
#
#     J_ij = ∂p_i/∂s_j = p_i (1[i = j] − p_j)
#
# Measure how much gets through by the size of J, the root of the sum of its squared entries, written ‖J‖. With two keys
# ‖J‖ = 2 p_0 p_1 (see Going deeper). For equal scores this is 0.5. For the scores 1 and 0 it is 0.393. For the scores
# 8 and 0 it is 0.00067, which is 586 times less. That is the danger which the paper names: large dot products push the
# softmax to where its gradient is extremely small.
#
# But the danger depends on the number of keys, and this is rarely said. Let us measure, for D = 64, with and without
# the division.

# %%
KEYS, WIDTHS = (4, 16, 64, 256), (1, 4, 16, 64, 256, 1024)


def jacobian_size(p):
    """‖J‖ for each row of weights: ‖J‖² = Σ_i p_i² [(Σ_{j≠i} p_j)² + Σ_{j≠i} p_j²]"""
    others = np.ones((p.shape[-1], p.shape[-1])) - np.eye(p.shape[-1])
    return np.sqrt((p**2 * ((p @ others) ** 2 + p**2 @ others)).sum(axis=-1))


two_keys = [float(jacobian_size(softmax(np.array([gap, 0.0])))) for gap in (0.0, 1.0, 8.0)]
median, mean = {}, {}
print("median of ‖J‖ over 4,000 queries, D = 64: with the division, without it")
for keys in KEYS:
    for width in WIDTHS:
        raw = raw_scores(keys, width)
        both = jacobian_size(softmax(raw / np.sqrt(width))), jacobian_size(softmax(raw))
        median[keys, width], mean[keys, width] = ([f(each) for each in both] for f in (np.median, np.mean))
    print(f"{keys:4d} keys: {median[keys, 64][0]:.2f}  {median[keys, 64][1]:.2f}")

# %% [markdown]
# ## From scratch, and checked
#
# Ten lines, forward and the first step back, from the weights to the dot products. (The gradients of q, k and v are
# lesson 06.) The check moves each dot product by an imaginary step (lesson 01). Then we compare with the library.


# %%
def attention(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    p = softmax(s)
    return p @ v, p


def dot_product_gradient(dp, p, width):
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    return ds / np.sqrt(width)


from minitransformer.functional import scaled_dot_product_attention

dp = example["cross.dp"][0]
dots = q @ k.T
true = np.empty_like(dots)
for index in np.ndindex(dots.shape):
    moved = dots.astype(complex)
    moved[index] += 1e-30j
    true[index] = (dp * softmax(moved / np.sqrt(D))).sum().imag / 1e-30
lesson.check(
    "gradient of the dot products, against the complex step", error(dot_product_gradient(dp, p, D), true), 1e-14
)
library, cache = scaled_dot_product_attention(q, k, v)
lesson.check("answers equal to the library's", error(attention(q, k, v)[0], library), 1e-13)
lesson.check("weights equal to the library's", error(p, cache.weights), 1e-13)

# %% [markdown]
# ## The picture

# %%
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.4), sharex=True, sharey=True)
for panel, keys in zip(axes, (4, 256), strict=True):
    with_scale, without = np.array([median[keys, width] for width in WIDTHS]).T
    panel.loglog(WIDTHS, with_scale, "o-", color=BLUE, label="with 1/√D")
    panel.loglog(WIDTHS, without, "o-", color=ORANGE, label="without")
    panel.set(title=f"{keys} keys", xlabel="width D of queries and keys", ylim=(1e-6, 2))
axes[0].set_ylabel("median of ‖J‖")
axes[0].legend(loc="lower left")
figure.suptitle("How much gradient passes the softmax")
lesson.save(figure)

# %% [markdown]
# ![How much gradient passes the softmax](../plots/05_scaled_dot_product.png)
#
# You should see two flat blue lines, and orange lines that fall steeply: at once with 4 keys, later with 256. If a blue
# line falls, you divided by something other than √D.
#
# ## The surprise
#
# The usual sentence is "without √D the gradient vanishes". With 4 keys at D = 64 that is right: the median of ‖J‖ falls
# from 0.43 to 0.02. With 16 keys it falls from 0.30 to 0.12. With 64 keys nothing is lost: 0.18 against 0.20. And with
# 256 keys *more* gradient passes without the division: 0.25 against 0.10. Many keys that fit about equally well share
# the weight, every weight is small, and ‖J‖ is small with them. A little sharpness helps there.
#
# So √D does not save the gradient in every case. It makes the size of the scores independent of D. How sharp the
# attention should be, the model then learns, by making its queries and keys longer. Ours did: its scores go up to
# 12.03.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 06.
#
# ### Where the formula for ‖J‖ comes from
#
# Let the entries of dp be independent with mean 0 and variance 1. Then all mixed terms have the mean 0, and
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
# this happens to some queries at any width. Without the division, a few queries get nearly all of the gradient and the
# rest get next to none. With it, all get their share.
#
# And the division has a price of its own. The dot products get ddots = ds/√D, so what reaches them is 0.40/8 = 0.05
# with the division, and 0.12 without it. In the mean, *more* gradient reaches the dot products without √D, as long as
# you do not ask which queries get it.

# %%
p64 = jacobian_size(softmax(raw_scores(4, 64)))
top_tenth = np.sort(p64**2)[::-1]
share = top_tenth[: len(p64) // 10].sum() / top_tenth.sum()
print(f"without the division, D = 64 and 4 keys: a tenth of the queries has {share:.0%} of all ‖J‖²")

# %% [markdown]
# ### An older dictionary: kernel regression
#
# Nadaraya and Watson had the same idea in 1964. Given values v_j at places k_j, estimate the value at a new place q by
# a mean weighted with a bell curve of variance σ²:
#
#     o = Σ_j f(q, k_j) v_j / Σ_i f(q, k_i)          f(q, k) = exp(−|q − k|² / 2σ²)
#
# Multiply out |q − k|² = |q|² − 2 q·k + |k|². The factor exp(−|q|²/2σ²) is in every term above and below the fraction
# bar, and cancels. If all keys have the same length, exp(−|k|²/2σ²) cancels too. What is left is a softmax of q·k/σ²:
# with σ² = √D it is attention. If the keys differ in length, attention lacks the factor that punishes long keys, so a
# longer key reaches more queries.

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
#    mean and the variance of q·k? How much of it does the softmax see?
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
# 1. E[q_d k_d q_c k_c] = 0 for d ≠ c. It leaves D terms of D².
# 2. q·q is a sum of D squares of mean 1, so about D; after the division about √D = 8. The other scores are about 1.
# 3. The score is the dot product divided by √D. A constant factor in the forward pass is a factor in the backward pass.
# 4. The scores divided by their sum, 0.5/0.8 and 0.3/0.8. The softmax is [0.550, 0.450, 0].
#
# The exercise. First: q_d k_d has the mean 6 and the variance 2² + 3² + 1 = 14, so q·k has the mean 6D and the variance
# 14D. The mean is the same for all keys, so the softmax does not see it. Nor does it see the 3 q_d part, which is the
# same for all keys. Second: all scores go to 0 and all weights to 1/4, a plain mean of the values. ‖J‖ goes to √3/4.

# %%
popular = softmax(np.array([0.5, 0.3, -np.inf]))
lesson.finish(globals())
