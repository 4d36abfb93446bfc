# %% [markdown]
# # Lesson 05: A soft dictionary, and why √d_k
#
# * Question: why are the scores divided by √d_k?
# * You derive: attention from kernel regression; Var(q·k) = d_k; which gradient dies without the scale
# * Time: 2 s (fast: 2 s)
# * Needs: 03
# * Difficulty: 2 of 5
# * Paper: section 3.2.1, equation 1

# %%
from lab import BLUE, GREY, ORANGE, begin, error, plt

import numpy as np

lesson = begin("05_scaled_dot_product")

# %% [markdown]
# A dictionary holds pairs of a key and a value. Ask for a key, and it gives the value; ask for a key that is not there,
# and it gives nothing. Attention is a dictionary that always answers: it compares the query with all keys, and returns
# a mean of all values, in which the values of the best matching keys count most. So its answer is differentiable, and
# it can be learnt. The letters:
#
#     T, S, D      number of queries, number of pairs, and the length of one query or key (the paper's d_k)
#     q, k, v      queries (T, D), keys (S, D) and values (S, any length); t counts queries, i and j count pairs
#     q·k          the dot product Σ_d q_d k_d; d and e count the D entries
#     r, s         raw scores r_ti = q_t·k_i, and scaled scores s = r/√D, both (T, S)
#     p            weights (T, S): each row is the softmax of a row of s, so it is positive and sums to 1 (lesson 03)
#     y            the answers, y_t = Σ_i p_ti v_i
#     dp, ds, dr   derivatives of the loss with respect to p, s and r
#     E[x], Var(x) the mean of x over random draws, and its variance: the mean of (x − E[x])²
#
# ## Predict
#
# 1. All entries of q and k are drawn independently, with mean 0 and variance 1, and D = 64. How large is q·k typically:
#    about 1, 8 or 64? (Answer: part 2.)
# 2. Two keys have the scores 8 and 0. How much gradient passes the softmax, against the scores 1 and 0?
#    (Answer: part 3.)
# 3. Leave out the division by √D, and let D grow from 64 to 4096. How does the gradient that passes the softmax shrink,
#    for a typical query and in the mean over all queries? (Answer: The surprise.)

# %% [markdown]
# ## Small numbers
#
# Three keys of length 1 that point east, north and west, with the values 10, 20 and 30. The query points east and is
# ln 2 long. The dot products are [ln 2, 0, −ln 2], their exponentials [2, 1, 1/2], the sum 7/2. So the weights are
# p = [4/7, 2/7, 1/7] and the answer is (4·10 + 2·20 + 1·30)/7 = 110/7, which is 15.714: mostly east, a little of the
# rest.
#
# Now make the query ten times as long. The exponentials are [1024, 1, 1/1024], and the answer is 10.010: nearly the
# value of the best key alone, as in an ordinary dictionary. The size of the scores decides how soft the dictionary is.
# That is the whole matter of √d_k.

# %%


def softmax(s):
    """p_i = exp(s_i) / Σ_j exp(s_j), along the last axis (lesson 03)."""
    e = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


keys, values = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]), np.array([10.0, 20.0, 30.0])
answers = []
for length in (np.log(2), 10 * np.log(2)):
    weights = softmax(keys @ np.array([length, 0.0]))
    answers.append(weights @ values)
    print(f"query of length {length:.3f}: weights {weights.round(4)}, answer {answers[-1]:.3f}")
lesson.quote("which is 15.714", answers[0])
lesson.quote("and the answer is 10.010", answers[1])

# %% [markdown]
# ## The derivation
#
# ### Part 1: from kernel regression to dot products
#
# Here is an old problem (Nadaraya and Watson, 1964). We know the values v_i at S places k_i, and want a value at a new
# place q. A fair answer is the mean of all values, weighted by nearness. Let K be large for near places:
#
#     y = Σ_i K(q, k_i) v_i / Σ_j K(q, k_j)
#
# The usual K is the Gaussian bell of width σ, with |x|² = x·x:
#
#     K(q, k) = exp(−|q − k|² / 2σ²)
#
# Multiply out |q − k|² = |q|² − 2 q·k + |k|². A sum in the exponent is a product of exponentials:
#
#     K(q, k_i) = exp(−|q|²/2σ²) · exp(q·k_i/σ²) · exp(−|k_i|²/2σ²)
#
# The first factor is the same for all i. It stands in every term above and below the fraction bar, and cancels. If all
# keys have the same length, the third factor cancels as well. What is left is the softmax:
#
#     y = Σ_i p_i v_i          p_i = exp(q·k_i/σ²) / Σ_j exp(q·k_j/σ²)
#
# With σ² = √D this is equation 1 of the paper. For all queries at once, with the softmax along each row:
#
#     s = q kᵀ / √D          p = softmax(s)          y = p v

# %% [markdown]
# If the keys differ in length, attention and kernel regression differ by the third factor: attention leaves out the
# penalty |k_i|²/2σ². So a longer key makes itself heard over a larger range of queries. In a model keys come out of a
# linear layer, and this is one more thing it can use.

# %%
rng = np.random.default_rng(5)
T, S, D = 4, 6, 9
q, k, v = rng.standard_normal((T, D)), rng.standard_normal((S, D)), rng.standard_normal((S, 3))


def kernel_regression(q, k, v, variance):
    """Σ_i K(q, k_i) v_i / Σ_j K(q, k_j) for each query."""
    distance = ((q[:, None, :] - k[None, :, :]) ** 2).sum(axis=-1)  # (T, S)
    K = np.exp(-distance / (2 * variance))
    return (K @ v) / K.sum(axis=-1, keepdims=True)


equal = 3 * k / np.sqrt((k**2).sum(axis=-1, keepdims=True))  # all of length 3
attended = softmax(q @ equal.T / np.sqrt(D)) @ v
regressed = kernel_regression(q, equal, v, np.sqrt(D))
lesson.check("keys of one length: attention = kernel regression", error(attended, regressed), 1e-14)
attended, regressed = softmax(q @ k.T / np.sqrt(D)) @ v, kernel_regression(q, k, v, np.sqrt(D))
lesson.check("keys of different lengths: they differ by", error(attended, regressed), at_least=0.05)

# %% [markdown]
# ### Part 2: Var(q·k) = D
#
# How large are raw scores? Let all entries of q and k be independent, with mean 0 and variance 1. (At the start of
# training this is about right. Later it need not be.) For independent variables the mean of a product is the product of
# the means. One term of the dot product, q_d k_d, therefore has
#
#     mean               E[q_d k_d]     = E[q_d] E[k_d]   = 0 · 0 = 0
#     mean square        E[(q_d k_d)²]  = E[q_d²] E[k_d²] = 1 · 1 = 1          (a variance of 1 with mean 0)
#
# and two different terms, d ≠ e, have E[q_d k_d q_e k_e] = E[q_d] E[k_d] E[q_e] E[k_e] = 0. Now the sum of all D terms:
#
#     E[q·k]    = Σ_d E[q_d k_d] = 0
#     Var(q·k)  = E[(q·k)²] = Σ_d Σ_e E[q_d k_d q_e k_e]          (multiply the two sums out)
#               = Σ_d 1                                           (only the D terms with d = e are not 0)
#               = D
#
# So a raw score has the typical size √D: 8 for the paper's D = 64. Dividing by √D divides the variance by D:
#
#     Var(q·k / √D) = D / D = 1
#
# whatever D is. That is the paper's footnote 4. If q and k have variances a and b, the same lines give D a b.

# %%


def raw_scores(D, rng, keys=16, sets=40, queries=100):
    """q·k for independent normal entries: `sets` sets of keys, `queries` queries each -> (sets * queries, keys)."""
    return np.concatenate([rng.standard_normal((queries, D)) @ rng.standard_normal((keys, D)).T for _ in range(sets)])


WIDTHS = (1, 4, 16, 64, 256, 512, 1024, 4096)
rng = np.random.default_rng(55)
raw = {D: raw_scores(D, rng) for D in WIDTHS}
print("    D   Var(q·k)   Var(q·k)/D")
for D in WIDTHS:
    print(f"{D:5d}   {raw[D].var():8.2f}   {raw[D].var() / D:.3f}")
lesson.check("Var(q·k)/D is 1 for all D, worst difference", max(abs(raw[D].var() / D - 1) for D in WIDTHS), 0.15)

# %% [markdown]
# ### Part 3: what large scores do to the gradient
#
# Lesson 03 derived the softmax's Jacobian, and from it how a gradient dp at the weights becomes one at the scores:
#
#     J_ij = ∂p_i/∂s_j = p_i (1[i = j] − p_j)          1[i = j] is 1 if i = j, and 0 if not
#     ds_i = Σ_j dp_j J_ji = p_i (dp_i − Σ_j p_j dp_j)
#
# (one row; the query's index t is left out). Since s_i = r_i/√D, the raw scores get dr_i = ds_i/√D.
#
# How much gets through? Let the entries of dp be independent with mean 0 and variance 1. Then, as in part 2, all mixed
# terms vanish in the mean:
#
#     E[|ds|²] = Σ_i E[(Σ_j J_ji dp_j)²]
#              = Σ_i Σ_j Σ_l J_ji J_li E[dp_j dp_l]               (the square multiplied out; l counts pairs, too)
#              = Σ_i Σ_j J_ji² = ‖J‖²                             (E[dp_j dp_l] is 1 if j = l, and 0 if not)
#
# So ‖J‖, the root of the sum of all squared entries of J, says how much gradient passes. On the diagonal J has
# p_i (1 − p_i), and 1 − p_i is the sum of the other weights. Off the diagonal it has −p_i p_j. Row by row:
#
#     ‖J‖² = Σ_i [ (p_i Σ_{j≠i} p_j)² + Σ_{j≠i} (p_i p_j)² ]
#          = Σ_i p_i² [ (Σ_{j≠i} p_j)² + Σ_{j≠i} p_j² ]
#
# Every term contains the weights of two different keys. If one key has all the weight, each term is 0: nothing passes.

# %% [markdown]
# With two keys it is p_0² (p_1² + p_1²) + p_1² (p_0² + p_0²) = 4 p_0² p_1², so ‖J‖ = 2 p_0 p_1. For equal scores that
# is 1/2. For the scores 1 and 0 it is 0.393, for the scores 8 and 0 it is 0.00067, almost 600 times less.
#
# In general, let key 1 have the largest weight, and let η = 1 − p_1 be what all others have together. Then NO entry
# of J, taken without its sign, is larger than η: p_1 (1 − p_1) ≤ η; p_i (1 − p_i) ≤ p_i ≤ η for any other i; and in
# p_i p_j (i ≠ j) at least one of the two is not key 1. And η is small as soon as key 1 leads:
#
#     η = Σ_{i≠1} p_i = Σ_{i≠1} p_1 exp(−(s_1 − s_i)) ≤ Σ_{i≠1} exp(−(s_1 − s_i))
#
# By part 2, unscaled leads have the typical size √D. So for a typical query the gradient falls exponentially with √D:
# it dies. With the division, leads are of size 1 for any D, and ‖J‖ keeps its value.
#
# ## From scratch
#
# The forward pass for any leading axes, and the backward from the weights to the raw scores, by the lines above. (What
# comes before and after, the gradients of q, k and v, is lesson 06.)

# %%


def attention(q, k, v, scale):
    """s = scale · q kᵀ, p = softmax(s), y = p v -> y and p"""
    s = scale * (q @ np.swapaxes(k, -1, -2))
    p = softmax(s)
    return p @ v, p


def raw_score_gradient(dp, p, scale):
    """dr_i = scale · p_i (dp_i − Σ_j p_j dp_j)"""
    return scale * p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def jacobian_norm(p):
    """‖J‖ for each row of weights. Nothing is subtracted, so it is exact however small it is."""
    S = p.shape[-1]
    others = np.ones((S, S)) - np.eye(S)  # x @ others: for each i the sum of all x_j with j ≠ i
    return np.sqrt((p**2 * ((p @ others) ** 2 + p**2 @ others)).sum(axis=-1))


two_keys = [float(jacobian_norm(softmax(np.array([lead, 0.0])))) for lead in (1.0, 8.0)]
print("‖J‖ for the scores (1, 0) and (8, 0):", np.round(two_keys, 5))
lesson.quote("For the scores 1 and 0 it is 0.393", 1, 0, two_keys[0])
lesson.quote("for the scores 8 and 0 it is 0.00067", 8, 0, two_keys[1])
lesson.check("two keys, almost 600 times less", two_keys[0] / two_keys[1], at_least=580)

# %% [markdown]
# ## Checked
#
# Against the complex step of lesson 01 (move one raw score by h·√−1 with h = 1e-30; the imaginary part of the loss,
# divided by h, is the derivative), with random dp; then the two statements about J; then the library, which works on
# (B, H, T, D): B sequences and H heads (lesson 08) at once; here just B·H attentions, each on its own.

# %%
from minitransformer.functional import scaled_dot_product_attention, softmax_backward

rng = np.random.default_rng(6)
B, H, T, S, D = 2, 3, 4, 5, 6
q, k, v = (rng.standard_normal((B, H, length, D)) for length in (T, S, S))
dp = rng.standard_normal((B, H, T, S))
scale = 1 / np.sqrt(D)
y, p = attention(q, k, v, scale)
r = q @ np.swapaxes(k, -1, -2)
true = np.zeros_like(r)
for index in np.ndindex(r.shape):
    moved = r.astype(np.complex128)
    moved[index] += 1e-30j
    true[index] = (dp * softmax(scale * moved)).sum().imag / 1e-30
lesson.check(
    "gradient of the raw scores, against the complex step", error(raw_score_gradient(dp, p, scale), true), 1e-14
)
lesson.check("each row of it sums to 0", np.abs(raw_score_gradient(dp, p, scale).sum(axis=-1)).max(), 1e-14)

J = p[..., :, None] * (np.eye(S) - p[..., None, :])  # (B, H, T, S, S)
lesson.check("‖J‖ in terms of p", error(jacobian_norm(p), np.sqrt((J**2).sum(axis=(-1, -2)))), 1e-13)
beyond = np.abs(J).max(axis=(-1, -2)) - (1 - p.max(axis=-1))
lesson.check("no entry of J is larger than η = 1 − p_1, by", beyond.max(), 1e-15)
many = rng.standard_normal((200_000, S)) @ J[0, 0, 0]
lesson.check(
    "mean of |ds|² over 200,000 dp = ‖J‖²", error((many**2).sum(axis=-1).mean(), (J[0, 0, 0] ** 2).sum()), 0.02
)

y_library, cache = scaled_dot_product_attention(q, k, v)
lesson.check("answers = the library's", error(y, y_library), 1e-12)
lesson.check("weights = the library's", error(p, cache.weights), 1e-12)
unscaled, _ = scaled_dot_product_attention(q, k, v, scale=1.0)
lesson.check("without the scale = the library's with scale 1", error(attention(q, k, v, 1.0)[0], unscaled), 1e-12)
back = scale * softmax_backward(dp, cache.weights)
lesson.check("raw score gradient = the library's", error(raw_score_gradient(dp, p, scale), back), 1e-12)

# %% [markdown]
# A number that many texts print: "the softmax of [0.5, 0.3, −∞] is [0.625, 0.375, 0]". (A score of −∞ is how a key is
# switched off: exp(−∞) = 0. Lesson 07 is about it.) Those are the scores divided by their sum, 0.5/0.8 and 0.3/0.8, and
# not exponentials. Dividing by the sum is no softmax: it changes if 1 is added to all scores, and fails for negative
# ones.

# %%
popular = softmax(np.array([0.5, 0.3, -np.inf]))
lesson.claim(
    "softmax of [0.5, 0.3, -inf] is [0.625, 0.375, 0]",
    "wrong",
    "it is [" + ", ".join(f"{weight:.3f}" for weight in popular[:2]) + f", {popular[2]:.0f}]; "
    f"printed are the scores divided by their sum, {0.5 / 0.8:.3f} and {0.3 / 0.8:.3f}",
)

# %% [markdown]
# ## The picture
#
# Part 2 drew raw scores of 4,000 queries, each against 16 keys, for eight widths D. Now ‖J‖ for every query, with and
# without the division.

# %%
print("4,000 queries, 16 keys: ‖J‖")
print("        with 1/√D              without it")
print("    D    mean  median        mean    median   below 0.001   share of ‖J‖² in the top tenth")
table, top = {}, {}
for D in WIDTHS:
    scaled, plain = jacobian_norm(softmax(raw[D] / np.sqrt(D))), jacobian_norm(softmax(raw[D]))
    squares = np.sort(plain**2)[::-1]
    top[D] = 100 * squares[: len(squares) // 10].sum() / squares.sum()
    table[D] = scaled.mean(), np.median(scaled), plain.mean(), np.median(plain), 100 * (plain < 1e-3).mean()
    print("{:5d}   {:.3f}   {:.3f}      {:.4f}   {:7.2g}   {:8.1f} %   {:8.1f} %".format(D, *table[D], top[D]))

figure, axis = plt.subplots()
scaled_mean, scaled_median, mean, median, dead = np.array([table[D] for D in WIDTHS]).T
axis.loglog(WIDTHS, scaled_mean, "s--", color=BLUE)
axis.loglog(WIDTHS, scaled_median, "o-", color=BLUE)
axis.loglog(WIDTHS, mean, "s--", color=ORANGE)
axis.loglog(WIDTHS, median, "o-", color=ORANGE)
axis.axvline(64, color=GREY, linewidth=0.8, linestyle=":")
axis.text(70, 1e-10, "the paper's $d_k$ = 64", color=GREY)
axis.text(1, 0.8, "with the scale: mean and median", color=BLUE)
axis.text(4000, 0.0035, "no scale: mean", color=ORANGE, ha="right")
axis.text(440, 6e-5, "no scale: median", color=ORANGE, ha="right")
axis.set(xlabel="width D of queries and keys", ylabel="‖J‖: gradient that passes the softmax", ylim=(1e-12, 8))
title = f"Without the scale, at D = {WIDTHS[-1]:,}: median of ‖J‖ {median[-1]:.2g}, mean {mean[-1]:.2g}"
axis.set_title(title)
lesson.save(figure)

# %% [markdown]
# You should see a flat blue line at 0.3, an orange dashed line that falls slowly, and a solid orange one that plunges.
# If the blue line falls, you have divided by something other than √D. If both orange lines plunge, your queries and
# keys are not independent (a query equal to its own key, for instance).
#
# ## The surprise
#
# The usual sentence is "without √d_k the gradient vanishes". For the typical query it does: at D = 4096 the median of
# ‖J‖ is 1.5e-10, and 80.8 % of all queries pass less than 0.001. But look at the mean. From D = 64 to D = 4096 it falls
# from 0.173 to 0.026 only, about as 1/√D. Why? A query keeps its gradient if its two best scores happen to be close.
# Scores are spread over a range of √D, so the share of queries whose best two are within 1 of each other falls like
# 1/√D: from 20.1 % to 2.8 %. Those few pass as much as ever.
#
# And now count what reaches the raw scores, dr = ds/√D. The division that saves the softmax costs a factor √D of its
# own. With the scale the mean is 0.305/√D. Without it the mean ‖J‖ is about 1.7/√D, as just seen, and nothing is
# divided. So without the scale MORE gradient reaches the dot products in the mean, 5.5 times as much at D = 4096. What
# the scale does is share it out. Without it one tenth of the queries holds 99.8 % of all ‖J‖² at D = 4096: eight
# queries of ten learn next to nothing, and a few get a shove. That is what √d_k prevents.
#
# How bad is it at the paper's own width? At D = 64 the median falls from 0.304 to 0.107, and 12.3 % of the queries are
# below 0.001. That is harm, not death. At D = 512, one head of the full width, it is 52.3 %. (All this is for
# independent entries, the state at the start. What a trained model makes of its q and k is its own affair.)

# %%
close = {}
for D in (64, 4096):
    two_best = np.sort(raw[D], axis=-1)[:, -2:]
    close[D] = 100 * (two_best[:, 1] - two_best[:, 0] < 1).mean()
more = {D: table[D][2] / (table[D][0] / np.sqrt(D)) for D in WIDTHS}
for D in close:
    print(f"D = {D:4d}, without the scale: the best two scores are within 1 in {close[D]:4.1f} % of the queries,")
    print(f"          and the mean gradient at the raw scores is {more[D]:.1f} times that with the scale")
lesson.quote("at D = 4096 the median of ‖J‖ is 1.5e-10, and 80.8 %", 4096, table[4096][3], table[4096][4])
lesson.quote("From D = 64 to D = 4096 it falls from 0.173 to 0.026", 64, 4096, table[64][2], table[4096][2])
lesson.quote("from 20.1 % to 2.8 %", close[64], close[4096])
lesson.quote("With the scale the mean is 0.305/√D", table[4096][0])
lesson.quote("mean ‖J‖ is about 1.7/√D", table[4096][2] * np.sqrt(4096))
lesson.quote("5.5 times as much at D = 4096", more[4096], 4096)
lesson.quote("one tenth of the queries holds 99.8 % of all ‖J‖² at D = 4096", top[4096], 4096)
sentence = "At D = 64 the median falls from 0.304 to 0.107, and 12.3 % of the queries"
lesson.quote(sentence, 64, table[64][1], table[64][3], table[64][4])
lesson.quote("At D = 512, one head of the full width, it is 52.3 %", 512, table[512][4])
slope = np.log(table[4096][2] / table[256][2]) / np.log(4096 / 256)
lesson.check("without the scale the mean falls like D to the power −1/2", abs(slope + 0.5), 0.1)
lesson.check(
    "with the scale the median keeps its value, D = 4096 against 64", error(table[4096][1], table[64][1]), 0.03
)
lesson.claim(
    "without the division by √d_k the softmax's gradient vanishes",
    "half right",
    f"at d_k = 4096 that of the median query does ({table[4096][3]:.1e} against {table[4096][1]:.3f}); the mean over "
    f"queries falls as 1/√d_k only, and {more[4096]:.1f} times as much reaches the dot products as with the scale",
)
own_keys = np.random.default_rng(7).standard_normal((2000, 16, 64))
own_scores = np.einsum("nd,nid->ni", own_keys[:, 0], own_keys) / np.sqrt(64)  # the query is key 0
own_weight = softmax(own_scores)[:, 0].mean()
lesson.quote("with 16 keys in all, about 98 %", 16, 100 * own_weight)
lesson.check(
    "exercise 2: ‖J‖ of 16 equal weights is √15/16", error(jacobian_norm(np.full(16, 1 / 16)), 15**0.5 / 16), 1e-15
)
lesson.finish()

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. The entries of q have the mean a, those of k the mean b, all variances are 1. What are the mean
#    and the variance of q·k? Which part of this does the softmax not see? (First write q_d = a + x_d and
#    k_d = b + w_d.)
# 2. Keyboard, 10 minutes. Divide by D in place of √D, and draw the picture again. What happens to ‖J‖ as D grows, to
#    which value does it go, and what kind of attention is that? It passes if your limit for 16 keys is √15/16.
#
# Checked exercises on this lesson: `minitransformer start 05`.
#
# ## Questions
#
# 1. Which property of the keys makes attention exactly a kernel regression, and which width has the bell?
# 2. In Var(q·k) = D, which step needs the independence of different entries?
# 3. T = S, and every query equals its own key, with entries of mean 0 and variance 1. How large is s_tt with the scale?
#    What do its weights look like at D = 64?
# 4. Why is dr = ds/√D, and not dr = ds?
# 5. A query gives one key the weight 1 − 1e-9. How large can the largest entry of its J be?

# %% [markdown]
# ## In the wild
#
# * PyTorch's `scaled_dot_product_attention` has a `scale` argument; left out, it is 1/√D, with D the last axis of the
#   query.
# * T5 does not divide. It draws the weights that make q smaller by the factor √d_k in their place. At the start this is
#   the same function.
# * With several heads (lesson 08) D is only a part of d_model. Code that divides by √d_model all the same makes the
#   scores too small by the root of the number of heads, and the attention flatter. No shape tells, and the model can
#   learn larger queries, so such code lives long.
# * The maximal update parametrisation (muP) divides by D. Its argument is about trained models: there q and k are no
#   longer independent, and a dot product of vectors that agree grows like D, not like √D.
# * Some large models normalise q and k before the dot product (query-key normalisation), because in training the scores
#   grow again, whatever they were divided by at the start.

# %% [markdown]
# ## Answers
#
# 1. That all keys have the same length. The width is σ with σ² = √D.
# 2. E[q_d k_d q_e k_e] = 0 for d ≠ e, which leaves D terms of the D² ones.
# 3. q·q is a sum of D squares of mean 1, so about D, and s_tt is about √D: 8 at D = 64. The other scores are of size 1,
#    so nearly all weight is on the query's own key (with 16 keys in all, about 98 %).
# 4. s_i = r_i/√D: a move of r_i moves s_i by 1/√D of it. A constant factor of the forward is one of the backward.
# 5. 1e-9, as no entry is larger than η.
#
# The exercise. First: with q_d = a + x_d and k_d = b + w_d the dot product is D a b + Σ_d (a w_d + b x_d + x_d w_d).
# The mean is D a b and the variance D (a² + b² + 1). The softmax sees neither D a b nor b Σ_d x_d, as both are the same
# for all keys. Second: all scores go to 0 and all weights to 1/16. Then
# ‖J‖² = 16 · (1/16)² · [(15/16)² + 15 (1/16)²] = 15/16², and attention has become a plain mean of all values.
