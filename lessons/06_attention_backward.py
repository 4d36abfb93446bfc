# %% [markdown]
# # Lesson 06: Attention backward, or "better than the average I attend to"
#
# * Question: what does the loss tell the queries, the keys and the values, and in which words?
# * You derive: dV, dP, dS, dQ, dK index by index; the fused form with D_i = dO_i·O_i that FlashAttention uses
# * Reading: 33 min, going deeper 0 min
# * Run: 4 s (fast: 4 s)
# * Needs: 01, 02, 03, 05
# * Difficulty: 3 of 5
# * Paper: section 3.2.1, equation 1

# %%
import math
from lab import BLUE, GREY, ORANGE, SKY, begin, error, plt

import numpy as np

lesson = begin("06_attention_backward")

# %% [markdown]
# ## What we have, and what every letter means
# Lesson 05 built attention. T queries look at n keys, and each key carries a value:
#
#     Q   (T, d_k)   row Q_i: what query i asks for
#     K   (n, d_k)   row K_j: what key j offers
#     V   (n, d_v)   row V_j: what is handed over by whoever stands behind key j
#     S = Q Kᵀ / √d_k   (T, n)     scores: how well query i fits key j
#     P = softmax(S)    (T, n)     weights: every row is positive and sums to 1
#     O = P V           (T, d_v)   outputs: O_i is the mean of the values, weighted by row i of P
#
# In this lesson S is the matrix of scores, so the number of keys is n. (Elsewhere in the project S counts the source
# tokens, and d_k, the width of a query, is called D.) Indices: i and a are queries, j and m keys, c and e features.
# A dot between two rows is their dot product: Q_i·K_j = Σ_c Q_ic K_jc.
#
# Behind O comes the rest of the model, and at its end the loss L, one number. `d` before a name is the gradient of
# the loss: dO_ic = ∂L/∂O_ic, an array of the shape of O. What comes after O in the model hands us dO (the upstream
# gradient); we owe dQ, dK and dV. One rule does all the work, the chain rule: to find how L depends on an entry x,
# go through every entry y that x reaches in the next array, and add up:
#
#     dx = Σ_y dy ∂y/∂x
#
# The indicator 1[a = b] is 1 if a = b, else 0. A sum that contains it keeps one term: Σ_a f(a) 1[a = b] = f(b).

# %% [markdown]
# ## Predict
# Write down three guesses; do not compute.
# 1. One query has the weights 0.5, 0.3 and 0.2 on three keys. One more unit of weight on them would add 1, 2 and 4 to
#    the loss. Gradient descent will raise the first score and lower the third. And the second?
#    (Answered in "Small numbers".)
# 2. A query looks at one key with the weight 1, at the wrong one. How large is the gradient of that key's score?
#    (Answered in part 4.)
# 3. 64 keys. Which row gets the most gradient for its scores: one that looks at all 64 alike, one that is split
#    evenly between two keys, or one that has all but decided for one? (Answered in "The picture".)

# %% [markdown]
# ## Small numbers
# One query (T = 1), three keys (n = 3), widths d_k = d_v = 1, so that √d_k = 1. Take Q = 1 and K_j = ln 5, ln 3, ln 2.
# Then S = K, exp(S) = 5, 3, 2, and the weights are P = 0.5, 0.3, 0.2. Let the values be V = 1, 2, 4 and the loss the
# output itself, L = O, so dO = 1.
#
#     O = 0.5·1 + 0.3·2 + 0.2·4 = 1.9
#
# A unit of weight on key j adds V_j to O, and so to L. So dP = 1, 2, 4: what it costs to look at key j. The query
# pays on average D = 0.5·1 + 0.3·2 + 0.2·4 = 1.9. What is the gradient of a score? Part 3 will derive this formula;
# here we only try it, and compare it below with what a small nudge of each score does to the loss:
#
#     dS_j = P_j (dP_j − D)        0.5 (1 − 1.9) = −0.45      0.3 (2 − 1.9) = 0.03      0.2 (4 − 1.9) = 0.42
#
# Descent goes against the gradient. It raises score 1, which is cheaper than the average of what the query looks at,
# and lowers score 3. Score 2 is lowered, too, but hardly: key 2 costs 2, about the average. Nothing absolute counts:
# had key 3 cost 40, key 2 would be a bargain, and its score would rise. The three gradients sum to 0.

# %%
S = np.log([5.0, 3.0, 2.0])
V_small = np.array([1.0, 2.0, 4.0])


def output_of(S):
    P = np.exp(S) / np.exp(S).sum()
    return (P * V_small).sum()


P = np.exp(S) / np.exp(S).sum()
dP = V_small
D = (P * dP).sum()
dS = P * (dP - D)
print("key                       1         2         3")
print("weight P          ", *(f"{x:9.4f}" for x in P))
print("cost of weight dP ", *(f"{x:9.4f}" for x in dP), f"   average D = {D:.4f}")
print("gradient dS       ", *(f"{x:9.4f}" for x in dS), f"   their sum {dS.sum():.1e}")
change = [(output_of(S + nudge) - output_of(S)) / 1e-6 for nudge in 1e-6 * np.eye(3)]
print("score raised 1e-6 ", *(f"{x:9.4f}" for x in change), "   change of L / 1e-6")
bargain = np.array([1.0, 2.0, 40.0])
print("dS, were V_3 = 40 ", *(f"{x:9.4f}" for x in P * (bargain - (P * bargain).sum())))
lesson.quote("0.5 (1 − 1.9) = −0.45", P[0], dP[0], D, dS[0])
lesson.quote("0.3 (2 − 1.9) = 0.03", P[1], dP[1], D, dS[1])
lesson.quote("0.2 (4 − 1.9) = 0.42", P[2], dP[2], D, dS[2])

# %% [markdown]
# ## The derivation
# Five gradients, in the order in which they can be had: the step O = P V gives dV and dP, the step P = softmax(S) gives
# dS from dP, and the step S = Q Kᵀ / √d_k gives dQ and dK from dS.

# %% [markdown]
# ### Part 1: dV
# Forward, one entry: O_ic = Σ_m P_im V_mc. Nudge the one entry V_je, that is feature e of value j. Of the terms, only
# the one with m = j contains it, and only if c = e:
#
#     ∂O_ic/∂V_je = Σ_m P_im 1[m = j] 1[c = e] = P_ij 1[c = e]
#     dV_je = Σ_i Σ_c dO_ic ∂O_ic/∂V_je            chain rule: over every output entry (i, c)
#           = Σ_i Σ_c dO_ic P_ij 1[c = e]
#           = Σ_i P_ij dO_ie                       the indicator keeps c = e
#           = Σ_i (Pᵀ)_ji dO_ie                    P_ij is entry (j, i) of Pᵀ
#     dV = Pᵀ dO                                   (n, T) times (T, d_v) gives (n, d_v), the shape of V
#
# A value hears from every query that looked at it, each as loudly as it looked.
#
# ### Part 2: dP
# The same entry, written for query a: O_ac = Σ_m P_am V_mc. The weight P_ij stands in it only if a = i:
#
#     ∂O_ac/∂P_ij = 1[a = i] V_jc
#     dP_ij = Σ_a Σ_c dO_ac 1[a = i] V_jc          chain rule: over every output entry (a, c)
#           = Σ_c dO_ic V_jc = dO_i·V_j            the indicator keeps a = i
#           = Σ_c dO_ic (Vᵀ)_cj                    V_jc is entry (c, j) of Vᵀ
#     dP = dO Vᵀ                                   (T, d_v) times (d_v, n) gives (T, n), the shape of P
#
# dP_ij is what one more unit of query i's weight on key j would add to the loss: its cost, as in the small example.

# %% [markdown]
# ### Part 3: dS
# Row i of P depends on row i of S alone, so fix i and write Z = Σ_m exp(S_im), the sum that normalises. Forward:
# P_im = exp(S_im) / Z. One score S_ij moves all weights of its row. Two cases, by the quotient rule (u/Z)' =
# (u' Z − u Z') / Z², where Z' = ∂Z/∂S_ij = exp(S_ij):
#
#     m = j:   ∂P_ij/∂S_ij = (exp(S_ij) Z − exp(S_ij) exp(S_ij)) / Z²  = P_ij − P_ij P_ij
#     m ≠ j:   ∂P_im/∂S_ij = (0 · Z − exp(S_im) exp(S_ij)) / Z²        =      − P_im P_ij
#     both:    ∂P_im/∂S_ij = P_im (1[m = j] − P_ij)
#
# (Lesson 03 found the same Jacobian.) Now the chain rule, over every weight m of the row; other rows do not feel S_ij:
#
#     dS_ij = Σ_m dP_im ∂P_im/∂S_ij
#           = Σ_m dP_im P_im (1[m = j] − P_ij)
#           = dP_ij P_ij − P_ij Σ_m P_im dP_im     the indicator keeps m = j; P_ij does not depend on m
#           = P_ij (dP_ij − D_i)                   with D_i = Σ_m P_im dP_im
#
# In matrices, with ∘ for the product entry by entry and D (T, 1) a column:
#
#     D = row sums of P ∘ dP
#     dS = P ∘ (dP − D)

# %% [markdown]
# ### Part 4: how to read it
# D_i is the average cost of what query i attends to, weighted as it attends. So
#
#     dS_ij = (how much I look at key j) · (how much dearer key j is than the average I attend to)
#
# and after the minus sign of gradient descent: look more at what is better than the average I attend to. Four facts
# follow; each is one line, and the code below shows each.
# * A row of dS sums to 0: Σ_j dS_ij = Σ_j P_ij dP_ij − D_i Σ_j P_ij = D_i − D_i·1 = 0. What one key gains, the
#   others lose. Adding the same number to all scores of a row changes no weight, so it cannot change the loss.
# * A key with the weight 0 gets dS_ij = 0: the first factor. Nobody looks there, however good it would be.
# * A key with the weight 1 gets dS_ij = 0, too: all other weights are 0, so the average is that key's own cost, D_i =
#   dP_ij, and the second factor is 0. So a query that is sure and wrong gets no score gradient at all. This is the
#   one mistake that the scores cannot mend; only the values, through dV, still learn. (On paper no finite score makes
#   a weight quite 0 or 1. In float64 a gap of 750 between two scores does: exp(−750) is stored as 0.)
# * The same cost for all keys of a row is no reason to move: if dP_ij = c for all j, then D_i = c and dS_ij = 0.

# %%
rng = np.random.default_rng(0)
costs = rng.standard_normal(4)
for name, p in [("even", [0.25] * 4), ("leaning", [0.7, 0.2, 0.1, 0.0]), ("sure", [1.0, 0.0, 0.0, 0.0])]:
    p = np.array(p)
    ds = p * (costs - (p * costs).sum())
    print(f"{name:8} P", *(f"{x:6.2f}" for x in p), "   dS", *(f"{x + 0.0:8.4f}" for x in ds))
    lesson.check(f"a row of dS sums to 0 ({name})", abs(ds.sum()), 1e-15)
lesson.check("a key with the weight 1 gets no score gradient, nor does any other of its row", np.abs(ds).max(), 0.0)
p = np.array([0.7, 0.2, 0.1, 0.0])
lesson.check("equal costs move no score", np.abs(p * (3.0 - (p * 3.0).sum())).max(), 1e-15)

# %% [markdown]
# ### Part 5: dQ and dK
# Forward, one entry: S_am = (1/√d_k) Σ_e Q_ae K_me. The entry Q_ic reaches the scores of its own row, a = i, with
# every key m; the entry K_jc reaches the scores of its own column, m = j, with every query a:
#
#     ∂S_am/∂Q_ic = 1[a = i] K_mc / √d_k               ∂S_am/∂K_jc = 1[m = j] Q_ac / √d_k
#     dQ_ic = Σ_a Σ_m dS_am 1[a = i] K_mc / √d_k       dK_jc = Σ_a Σ_m dS_am 1[m = j] Q_ac / √d_k
#           = Σ_m dS_im K_mc / √d_k                          = Σ_a dS_aj Q_ac / √d_k
#                                                            = Σ_a (dSᵀ)_ja Q_ac / √d_k
#     dQ = dS K / √d_k                                 dK = dSᵀ Q / √d_k
#
# Shapes: (T, n) times (n, d_k) is (T, d_k), as Q; (n, T) times (T, d_k) is (n, d_k), as K.
#
# Two readings. First, as row i of dS sums to 0, one vector may be taken off all keys in dQ_i without changing it. Take
# the mean key that the query attends to, K̄_i = Σ_j P_ij K_j; then Σ_j dS_ij K̄_i = 0 · K̄_i, and
#
#     √d_k dQ_i = Σ_j dS_ij K_j = Σ_j dS_ij (K_j − K̄_i) = Σ_j P_ij (dP_ij − D_i) (K_j − K̄_i)
#
# That is the covariance of cost and key under the weights of row i: the weighted mean of (cost less its mean) times
# (key less its mean). The query moves against it, towards the keys that are cheaper than average.
#
# Second, sum dK over all keys: Σ_j dK_jc = Σ_a (Σ_j dS_aj) Q_ac / √d_k = 0. The gradients of the keys sum to the zero
# vector: shifting all keys by one vector adds the same number to all scores of a row. (So a bias that is added to
# every key would never learn anything.)

# %% [markdown]
# ### Part 6: the fused form
# D_i needs a whole row of P and of dP. Or does it? Put part 2 into its definition and exchange the two sums:
#
#     D_i = Σ_j P_ij dP_ij
#         = Σ_j P_ij Σ_c dO_ic V_jc            part 2
#         = Σ_c dO_ic Σ_j P_ij V_jc            the order of finite sums is free; dO_ic does not depend on j
#         = Σ_c dO_ic O_ic                     the inner sum is the forward pass
#         = dO_i·O_i
#
# The average cost of what I attend to is the cost of what I got. D_i costs d_v multiplications and asks for nothing
# of size n. With it, dS_ij = P_ij (dO_i·V_j − dO_i·O_i) = P_ij dO_i·(V_j − O_i): each entry can be had by itself.
# This is the trick on which FlashAttention's backward pass stands (Dao et al. 2022). Forward keeps O and one number a
# row, lse_i = ln Σ_j exp(S_ij), the logarithm of part 3's Z. (The 2022 paper keeps it as two numbers, the largest score
# and the sum of the exponentials after it is taken off; its successor as one.) Backward takes a block of keys at a time
# and makes their weights anew: P_ij = exp(S_ij) / Z = exp(S_ij − lse_i). The (T, n) arrays never exist as a whole.
#
# Everything on one page:
#
#     D  = row sums of dO ∘ O              (T, 1)      or of P ∘ dP
#     dV = Pᵀ dO                           (n, d_v)
#     dP = dO Vᵀ                           (T, n)
#     dS = P ∘ (dP − D)                    (T, n)
#     dQ = dS K / √d_k                     (T, d_k)
#     dK = dSᵀ Q / √d_k                    (n, d_k)

# %% [markdown]
# The small example, finished with that page. There dO = 1, Q = 1, √d_k = 1, and K_j = ln 5, ln 3, ln 2:
#
#     D    = dO · O = 1 · 1.9 = 1.9                                        as before, without looking at a single key
#     dV_j = P_j dO = 0.5, 0.3, 0.2
#     dK_j = dS_j Q = −0.45, 0.03, 0.42
#     dQ   = Σ_j dS_j K_j = −0.45 · 1.609 + 0.03 · 1.099 + 0.42 · 0.693 = −0.400
#
# dQ is negative, so descent makes Q larger. That multiplies all scores by more than 1 and sharpens the row, and here
# the sharper row is the cheaper one: the cheaper a key is, the larger its score.
#
# ## From scratch
# The lines of that page. The largest score of a row is taken off first, which changes no weight and keeps exp from
# overflowing (lesson 03). `.real` picks it by its real part, as the check below will send complex numbers through.


# %%
def attention(Q, K, V):
    S = Q @ K.T / math.sqrt(Q.shape[-1])  # (T, n)
    P = np.exp(S - S.real.max(axis=-1, keepdims=True))
    P = P / P.sum(axis=-1, keepdims=True)
    return P @ V, (Q, K, V, P)  # (T, d_v)


def attention_backward(dO, cache):
    Q, K, V, P = cache
    dV = P.T @ dO  # (n, d_v)
    dP = dO @ V.T  # (T, n)
    D = (P * dP).sum(axis=-1, keepdims=True)  # (T, 1)
    dS = P * (dP - D)  # (T, n)
    dQ = dS @ K / math.sqrt(Q.shape[-1])  # (T, d_k)
    dK = dS.T @ Q / math.sqrt(Q.shape[-1])  # (n, d_k)
    return dQ, dK, dV


Q, K, V = np.ones((1, 1)), np.log([[5.0], [3.0], [2.0]]), np.array([[1.0], [2.0], [4.0]])
O, cache = attention(Q, K, V)
dQ, dK, dV = attention_backward(np.ones((1, 1)), cache)
print(f"O {O[0, 0]:.4f}   dV {dV[:, 0].round(4)}   dK {dK[:, 0].round(4)}   dQ {dQ[0, 0]:.4f}")
lesson.quote("dV_j = P_j dO = 0.5, 0.3, 0.2", *dV[:, 0])
lesson.quote("dK_j = dS_j Q = −0.45, 0.03, 0.42", *dK[:, 0])
terms = [x for pair in zip(dK[:, 0], K[:, 0], strict=True) for x in pair]
lesson.quote("−0.45 · 1.609 + 0.03 · 1.099 + 0.42 · 0.693 = −0.400", *terms, dQ[0, 0])

# %% [markdown]
# And the fused form, a block of keys at a time. Backward is given O and lse, but no P.


# %%
def attention_backward_in_blocks(dO, Q, K, V, O, lse, block):
    scale = 1.0 / math.sqrt(Q.shape[-1])
    D = (dO * O).sum(axis=-1, keepdims=True)  # (T, 1), from the output alone
    dQ, dK, dV = np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    for start in range(0, len(K), block):
        keys = slice(start, start + block)
        P = np.exp(Q @ K[keys].T * scale - lse)  # (T, block), final weights at once: lse knows all keys
        dS = P * (dO @ V[keys].T - D)  # (T, block)
        dV[keys] = P.T @ dO
        dK[keys] = dS.T @ Q * scale
        dQ += dS @ K[keys] * scale  # every key has its say in dQ
    return dQ, dK, dV


# %% [markdown]
# ## Checked
# Against the complex step of lesson 01. By Taylor f(x + ih) = f(x) + ih f'(x) − ..., so f'(x) = Im f(x + ih) / h;
# nothing is subtracted, so h may be 1e-30 and the derivative is exact to rounding. The scalar that we differentiate
# is L = Σ_ic dO_ic O_ic with a fixed random dO, because then ∂L/∂O_ic is that dO_ic: every upstream gradient can be
# tried in this way. All four axis lengths differ, so that no transposed shape fits by accident.


# %%
def complex_step(f, x, h=1e-30):
    derivative = np.empty_like(x)
    for entry in np.ndindex(x.shape):
        nudged = x.astype(complex)
        nudged[entry] += 1j * h
        derivative[entry] = f(nudged).imag / h
    return derivative


T, n, d_k, d_v = 4, 6, 5, 3
Q, K, V, dO = (rng.standard_normal(shape) for shape in [(T, d_k), (n, d_k), (n, d_v), (T, d_v)])
O, cache = attention(Q, K, V)
dQ, dK, dV = attention_backward(dO, cache)
true_dQ = complex_step(lambda x: (dO * attention(x, K, V)[0]).sum(), Q)
true_dK = complex_step(lambda x: (dO * attention(Q, x, V)[0]).sum(), K)
true_dV = complex_step(lambda x: (dO * attention(Q, K, x)[0]).sum(), V)
lesson.check("dQ equals the complex step", error(dQ, true_dQ), 1e-14)
lesson.check("dK equals the complex step", error(dK, true_dK), 1e-14)
lesson.check("dV equals the complex step", error(dV, true_dV), 1e-14)

P = cache[-1]
dP = dO @ V.T
lesson.check("D_i = Σ_j P_ij dP_ij is dO_i·O_i", error((P * dP).sum(axis=-1), (dO * O).sum(axis=-1)), 1e-14)
S = Q @ K.T / math.sqrt(d_k)
lse = np.log(np.exp(S).sum(axis=-1, keepdims=True))
in_blocks = attention_backward_in_blocks(dO, Q, K, V, O, lse, block=4)
for name, got, expected in zip(("dQ", "dK", "dV"), in_blocks, (dQ, dK, dV), strict=True):
    lesson.check(f"{name} in blocks of 4 keys, never the whole P", error(got, expected), 1e-14)
covariance = [(P[i, :, None] * (dP[i] - P[i] @ dP[i])[:, None] * (K - P[i] @ K)).sum(axis=0) for i in range(T)]
lesson.check("√d_k dQ_i is the covariance of cost and key", error(np.array(covariance), math.sqrt(d_k) * dQ), 1e-14)

# %% [markdown]
# ### Batch and heads come for free
# A model has B sequences and H heads (lesson 08), each with queries, keys and values of its own, which never meet: the
# loss depends on pair (b, h) through its own O alone. So the formulas hold for each pair, and the chain rule has
# nothing to add up across pairs. In NumPy `@` multiplies the last two axes and repeats over all in front; sums run
# over axis −1 already. What must change is `.T`, which would reverse all axes: it becomes `.swapaxes(-1, -2)`.


# %%
def transpose(x):
    return x.swapaxes(-1, -2)


def attention_for_heads(Q, K, V):
    S = Q @ transpose(K) / math.sqrt(Q.shape[-1])  # (B, H, T, n)
    P = np.exp(S - S.max(axis=-1, keepdims=True))
    P /= P.sum(axis=-1, keepdims=True)
    return P @ V, (Q, K, V, P)


def attention_for_heads_backward(dO, cache):
    Q, K, V, P = cache
    dP = dO @ transpose(V)
    dS = P * (dP - (P * dP).sum(axis=-1, keepdims=True)) / math.sqrt(Q.shape[-1])  # the scale, once for both
    return dS @ K, transpose(dS) @ Q, transpose(P) @ dO


B, H = 2, 3
Q4, K4, V4, dO4 = (rng.standard_normal((B, H, *x.shape)) for x in (Q, K, V, dO))
O4, cache4 = attention_for_heads(Q4, K4, V4)
gradients = attention_for_heads_backward(dO4, cache4)
one_by_one = [
    attention_backward(dO4[pair], attention(Q4[pair], K4[pair], V4[pair])[1]) for pair in np.ndindex(B, H)
]  # (dQ, dK, dV) of each pair
for name, got, each in zip(("dQ", "dK", "dV"), gradients, zip(*one_by_one, strict=True), strict=True):
    lesson.check(f"{name} for all heads at once equals a loop", error(got, np.reshape(each, got.shape)), 1e-14)

# %% [markdown]
# And the library's own. It multiplies Q by the scale before the product, T·d_k numbers in place of T·n scores, and so
# rounds a little differently; otherwise it is this lesson plus a mask, a bias and dropout.

# %%
from minitransformer.functional import scaled_dot_product_attention, scaled_dot_product_attention_backward

library_O, library_cache = scaled_dot_product_attention(Q4, K4, V4)
*library, _ = scaled_dot_product_attention_backward(dO4, library_cache)  # the last is the gradient of a bias: None here
lesson.check("O equals the library's", error(O4, library_O), 1e-12)
for name, got, expected in zip(("dQ", "dK", "dV"), gradients, library, strict=True):
    lesson.check(f"{name} equals the library's", error(got, expected), 1e-12)

# %% [markdown]
# ### Three tests that need no formula
# If your gradient is wrong, these say where, and you need no right answer to compare with. Write ⟨A, B⟩ for the sum of
# all entries of A ∘ B. A small change δX of an array changes the loss by ⟨dX, δX⟩ to first order: that is what a
# gradient is. So take a change of which you know the effect:
# * rows: every row of dS sums to 0 (part 4).
# * ⟨Q, dQ⟩ = ⟨K, dK⟩. Multiply Q by 1 + ε and divide K by it: no score changes, nor does the loss. To first order
#   δQ = εQ and δK = −εK, so ε⟨dQ, Q⟩ − ε⟨dK, K⟩ = 0.
# * ⟨V, dV⟩ = ⟨O, dO⟩. Multiply V by 1 + ε: O, which is linear in V, is multiplied by 1 + ε as well. The change of the
#   loss is ε⟨dV, V⟩ counted at V, and ε⟨dO, O⟩ counted at O.

# %%
lesson.check("⟨Q, dQ⟩ = ⟨K, dK⟩", abs((Q * dQ).sum() - (K * dK).sum()), 1e-13)
lesson.check("⟨V, dV⟩ = ⟨O, dO⟩", abs((V * dV).sum() - (O * dO).sum()), 1e-13)
lesson.check("the keys' gradients sum to 0", np.abs(dK.sum(axis=0)).max(), 1e-14)

# %% [markdown]
# ## Mistakes and their signatures
# The five lines of backward, as text, so that a mistake is one changed line that you can read. Each mistake is run
# twice: on the shapes above, all different, and on square ones (T = n = d_k = d_v = 4), where every shape fits.

# %%
LINES = {
    "dV": "P.T @ dO",
    "dP": "dO @ V.T",
    "dS": "P * (dP - (P * dP).sum(axis=-1, keepdims=True))",
    "dQ": "dS @ K / root",
    "dK": "dS.T @ Q / root",
}
MISTAKES = {
    "softmax taken entry by entry": {"dS": "P * (1 - P) * dP"},
    "average D forgotten": {"dS": "P * dP"},
    "average not weighted by P": {"dS": "P * (dP - dP.mean(axis=-1, keepdims=True))"},
    "average over the queries": {"dS": "P * (dP - (P * dP).sum(axis=0, keepdims=True))"},
    "scale forgotten": {"dQ": "dS @ K", "dK": "dS.T @ Q"},
    "scale twice in dK": {"dK": "dS.T @ (Q / root) / root"},
    "dK by reshape": {"dK": "dS.reshape(len(K), len(Q)) @ Q / root"},
    "dS not transposed in dK": {"dK": "dS @ Q / root"},
    "Q and K swapped": {"dQ": "dS @ Q / root", "dK": "dS.T @ K / root"},
    "V not transposed in dP": {"dP": "dO @ V"},
    "dV from P, not from Pᵀ": {"dV": "P @ dO"},
}


def run_lines(lines, Q, K, V, dO):
    O, (*_, P) = attention(Q, K, V)
    known = {"np": np, "root": math.sqrt(Q.shape[-1]), "Q": Q, "K": K, "V": V, "P": P, "dO": dO, "O": O}
    for name, formula in lines.items():
        known[name] = eval(formula, known)
    return known


# %% [markdown]
# For each mistake: the error of dV, dQ and dK relative to the largest entry (`ok` below 1e-12, `shape` where NumPy
# refuses), what is left of the row sums of dS, whether the two products agree, and yours / true where that is one and
# the same number for all entries.


# %%
def signature(changes, arrays):
    right, wrong = run_lines(LINES, *arrays), None
    try:
        wrong = run_lines({**LINES, **changes}, *arrays)
    except ValueError:
        return {"refused": True, "text": "shape: NumPy refuses"}
    errors = {name: error(wrong[name], right[name]) for name in ("dV", "dQ", "dK")}
    ratios = {name: wrong[name] / right[name] for name in errors}
    constant = [r.mean() for name, r in ratios.items() if errors[name] > 1e-12 and np.ptp(r) < 1e-9]
    rows = np.abs(wrong["dS"].sum(axis=-1)).max()
    qk = abs((wrong["Q"] * wrong["dQ"]).sum() - (wrong["K"] * wrong["dK"]).sum())
    vo = abs((wrong["V"] * wrong["dV"]).sum() - (wrong["O"] * wrong["dO"]).sum())
    marks = [f"{'ok' if e < 1e-12 else format(e, '.2f'):>6}" for e in errors.values()]
    tests = [f"{'0' if x < 1e-12 else format(x, '.2f'):>6}" for x in (rows, qk, vo)]
    ratio = f"   yours / true = {constant[0]:.4f}" if constant else ""
    text = "".join(marks) + " |" + "".join(tests) + ratio
    return {"refused": False, "rows": rows, "qk": qk, "vo": vo, "ratio": constant, "text": text, **errors}


square = [rng.standard_normal((4, 4)) for _ in range(4)]
found = {}
for title, arrays in [("all axes different", (Q, K, V, dO)), ("all axes 4", square)]:
    print(f"{title:32}    dV    dQ    dK |  rows   QdQ   VdV")
    for name, changes in {"(none)": {}, **MISTAKES}.items():
        found[name, title] = signature(changes, arrays)
        print(f"  {name:30}{found[name, title]['text']}")

# %% [markdown]
# How to read the table.
# * dV right, dQ and dK wrong, rows not 0: the softmax step. All four mistakes in it break the row sums, so this one
#   test, which knows no formula, catches each of them.
# * One ratio for all entries: a constant factor. For d_k = 5 a forgotten scale gives 2.2361 = √d_k in dQ and dK alike,
#   so ⟨Q, dQ⟩ = ⟨K, dK⟩ does not see it. The scale taken twice in dK gives 0.4472 = 1/√d_k, and there it does.
# * "dK by reshape" is the treacherous one: the shape is right whatever the axes, and only dK is wrong. A reshape
#   re-reads the numbers in the order in which they lie in memory; a transpose exchanges the axes.
# * Four of the eleven are refused by NumPy when all axes differ, and run without a word when all are equal. Lesson 02
#   said: shapes nearly force the formula, except when square. Self-attention has T = n always, and d_k = d_v often.
# * Square, "dV from P" is seen by ⟨V, dV⟩ = ⟨O, dO⟩ alone. And "V not transposed in dP" passes all three tests: its dS
#   is the right formula for wrong costs. The tests are quick and say where; the proof is the complex step.

# %%
different = {name: found[name, "all axes different"] for name in MISTAKES}
same = {name: found[name, "all axes 4"] for name in MISTAKES}
in_softmax = [name for name, changes in MISTAKES.items() if "dS" in changes]
lesson.check(
    "the row sums catch every mistake in dS", min(different[name]["rows"] for name in in_softmax), at_least=0.05
)
lesson.check("... while dV stays right", max(different[name]["dV"] for name in in_softmax), 1e-14)
lesson.check("a forgotten scale: ratio √d_k", abs(different["scale forgotten"]["ratio"][0] - math.sqrt(d_k)), 1e-12)
lesson.check("... not seen by ⟨Q, dQ⟩ = ⟨K, dK⟩", different["scale forgotten"]["qk"], 1e-12)
lesson.check("... but twice in dK alone is", different["scale twice in dK"]["qk"], at_least=0.05)
lesson.check("Q and K swapped, all axes 4: ⟨Q, dQ⟩ = ⟨K, dK⟩ fails", same["Q and K swapped"]["qk"], at_least=0.05)
lesson.check("dV from P, all axes 4: ⟨V, dV⟩ = ⟨O, dO⟩ fails", same["dV from P, not from Pᵀ"]["vo"], at_least=0.05)
unseen = same["V not transposed in dP"]
lesson.check("V not transposed, all axes 4: no test sees it", max(unseen["rows"], unseen["qk"], unseen["vo"]), 1e-12)
lesson.check("... but its dQ is wrong", unseen["dQ"], at_least=0.3)
refused = sum(entry["refused"] for entry in different.values())
lesson.check("mistakes that NumPy refuses when all axes differ", refused, at_least=4)
lesson.check("... and when all axes are 4", sum(entry["refused"] for entry in same.values()), 0)
lesson.quote("a forgotten scale gives 2.2361", different["scale forgotten"]["ratio"][0])
lesson.quote("The scale taken twice in dK gives 0.4472", different["scale twice in dK"]["ratio"][0])
assert (refused, len(MISTAKES), len(in_softmax)) == (4, 11, 4)  # "Four of the eleven", "All four mistakes in it"

# %% [markdown]
# ## How much gradient does a row get?
# Weight 1: none. Weight 0: none. And between? Take one row with the weights p_j, and costs dP_j that are independent,
# with mean 0 and variance 1, as they are if dO_i has length 1 and the values are standard normal: dP_ij = dO_i·V_j.
# E is the mean over such costs. Write q = Σ_j p_j² and r = Σ_j p_j³. First the variance of one difference; D
# contains p_j dP_j itself, so split it off:
#
#     dP_j − D = (1 − p_j) dP_j − Σ_{m≠j} p_m dP_m
#     E (dP_j − D)² = (1 − p_j)² + Σ_{m≠j} p_m² = 1 − 2 p_j + p_j² + (q − p_j²) = 1 − 2 p_j + q
#
# (variances of independent terms add up). The mean squared length of the row's gradient, as dS_j = p_j (dP_j − D):
#
#     E Σ_j dS_j² = Σ_j p_j² (1 − 2 p_j + q) = q − 2 r + q²
#
# (the ‖J‖² of lesson 05, part 3, in another form). How large can that be? By the inequality of Cauchy and Schwarz
# q² = (Σ_j √p_j · p_j √p_j)² ≤ (Σ_j p_j) (Σ_j p_j³) = r, as the weights sum to 1. Therefore
#
#     E Σ_j dS_j² = q − 2 r + q² ≤ q − q² = 1/4 − (1/2 − q)² ≤ 1/4
#
# If the row looks evenly at k keys, p_j = 1/k there and 0 elsewhere, then q = 1/k and r = 1/k² = q², so the first ≤ is
# an equality, and 1/q = k. For any row 1/q may therefore be called the number of keys that it attends to. The length
# of dS (its root mean square) is at most √(q − q²), and that is largest, 1/2, at q = 1/2: two keys. Not at n keys, and
# not at one.
#
# The next cell measures rows of all kinds: the softmax of normal scores whose standard deviation goes from 0.1 (flat
# rows) to 60 (sure ones), each row with 400 random costs.

# %%
rng = np.random.default_rng(6)
n = 64


def random_rows(spread, count):
    scores = spread * rng.standard_normal((count, n))
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def rms_length(p, draws=400):
    """The root of the mean squared length of dS, for each row of p (rows, n), over random costs."""
    total = np.zeros(len(p))
    for _ in range(draws):
        dP = rng.standard_normal(p.shape)
        total += np.square(p * (dP - (p * dP).sum(axis=-1, keepdims=True))).sum(axis=-1)
    return np.sqrt(total / draws)


def expected_length(p):
    q, r = np.square(p).sum(axis=-1), (p**3).sum(axis=-1)
    return np.sqrt(np.maximum(q - 2 * r + q * q, 0.0))


p = np.concatenate([random_rows(spread, 12) for spread in np.geomspace(0.1, 60.0, 30)])
q = np.square(p).sum(axis=-1)
measured, expected = rms_length(p), expected_length(p)
print(f"E Σ dS² = q − 2r + q²: rows {len(p)}, mean measured / expected {measured.sum() / expected.sum():.4f}")
lesson.check(
    "measured and expected lengths, rms difference",
    np.sqrt(np.square(measured - expected).mean()),
    0.015,
)
even = np.array([[1.0 / k if j < k else 0.0 for j in range(n)] for k in (2, n)])
two, all_keys = expected_length(even)
decided = expected_length(np.array([[0.99, 0.01]]))[0]
lesson.check("split between two: 1/2", abs(two - 0.5), 1e-15)
lesson.check("E Σ dS² ≤ q − q², excess over all rows", (np.square(expected) - (q - q * q)).max(), 1e-14)

# %% [markdown]
# Where on that hill does a model begin, and where would it get most? Scores with the scale 1/√d_k begin with the
# standard deviation 1, and without it with √d_k (lesson 05), 8 for d_k = 64. For each standard deviation, 20,000 rows:
# the root mean square of their lengths, the median, and the length that the weakest tenth of the rows stays below.

# %%
spreads = np.geomspace(0.125, 64.0, 19)


def three_lengths(spread):
    lengths = expected_length(random_rows(spread, 20_000))
    return np.sqrt(np.square(lengths).mean()), np.median(lengths), np.quantile(lengths, 0.1)


rms, median, weakest = np.array([three_lengths(spread) for spread in spreads]).T
with_scale, without = three_lengths(1.0), three_lengths(8.0)
print(f"length of dS, {n} keys            root mean square   median   weakest tenth below")
for name, values in [("with the scale, scores ± 1", with_scale), ("d_k = 64, without, scores ± 8", without)]:
    print(f"  {name:30} {values[0]:15.3f} {values[1]:10.3f} {values[2]:15.4f}")

# %% [markdown]
# ## The picture

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.6), sharey=True)
k = np.geomspace(1.0, n, 200)
left.plot(1 / q, expected, ".", color=SKY, markersize=5, label="random rows")
left.plot(k, np.sqrt(1 / k - 1 / k**2), color=ORANGE, linewidth=1.2, label="the most: √(q − q²)")
left.set_xscale("log", base=2, subs=[])
left.set_xticks([1, 2, 4, 8, 16, 32, 64], ["1", "2", "4", "8", "16", "32", "64"])
left.set_xlabel("keys attended to, 1/q = 1 / Σ p²")
left.set_ylabel("length of dS, costs of standard deviation 1")
left.set_ylim(0.0, 0.56)
left.legend(loc="lower center")
right.plot(spreads, rms, color=BLUE, label="root mean square")
right.plot(spreads, median, "--", color=ORANGE, label="median")
right.plot(spreads, weakest, ":", color=GREY, linewidth=2, label="weakest tenth: below this")
right.set_xscale("log", base=2, subs=[])
right.set_xticks([0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64], ["⅛", "¼", "½", "1", "2", "4", "8", "16", "32", "64"])
for x, text in [(1.0, "with\n1/√d_k"), (8.0, "without,\nd_k = 64")]:
    right.axvline(x, ymax=0.72, color="black", linewidth=0.6, alpha=0.5, zorder=0)
    right.text(x * 1.12, 0.41, text, va="top")
right.minorticks_off()
right.set_xlabel("standard deviation of the scores")
right.legend(loc="upper right", fontsize=8)
figure.suptitle("A row of attention gets most gradient when it is split between two keys", fontsize=11)
lesson.save(figure)

# %% [markdown]
# You should see, on the left, a hill: 0 at one key, the top of 0.5 at two keys, and a long slope down to 0.124 at 64.
# No dot lies above the line. The answer to guess 3: the row that is split between two. One that looks at all alike
# gets a quarter of that, and one that has decided, with weights 0.99 and 0.01, gets 0.020. If your dots fall from
# left to right only, the average D was left out: a sure row then seems to get the most.
#
# On the right you should see that sharper scores first bring more gradient, up to a standard deviation of about 4, and
# that the weakest tenth of the rows falls to nothing long before the mean does.

# %%
lesson.quote("the top of 0.5 at two keys", two)
lesson.quote("a long slope down to 0.124 at 64", all_keys, n)
lesson.quote("with weights 0.99 and 0.01, gets 0.020", 0.99, 0.01, decided)
lesson.check("the flat row's share of the best", all_keys / two, 0.26)
lesson.check("the best of the right curve, as a standard deviation", abs(math.log2(spreads[rms.argmax()] / 4)), 0.6)

# %% [markdown]
# ## The surprise
# One would think that the even row learns fastest: nothing decided, all doors open. But an even row spreads
# its gradient thin: each of 64 scores hears 1/64 of its key's advantage. The most goes to the row that hesitates
# between two keys. So attention that begins to sharpen does not stall, it speeds up: from standard deviation 1, where
# a model starts, to about 4 the root mean square grows from 0.185 to 0.32. Only then does it fall.
#
# It bears on the scale, too. Without 1/√d_k, at d_k = 64, the root mean square is larger than with it, 0.269 against
# 0.185, and the median row gets as much as before. What dies is the weak end (in much wider heads even the median row,
# as lesson 05 found): with the scale a tenth of the rows stays below 0.163, without it below 0.0027, some sixty times
# less. Those rows have decided, by chance, before anything was learnt. The scale buys that no row is lost from the
# start.
#
# (What was measured: random scores and random costs, as in an untrained model. In a trained one, cost and weight have
# to do with each other. And dQ has one more factor: with the scale dS K is divided by √d_k, without it is not.)

# %%
lesson.quote("the root mean square grows from 0.185 to 0.32", with_scale[0], rms.max(), within=0.02)
lesson.quote("0.269 against 0.185", without[0], with_scale[0], within=0.02)
lesson.quote("a tenth of the rows stays below 0.163, without it below 0.0027", with_scale[2], without[2], within=0.08)
lesson.check("median without the scale / with it", without[1] / with_scale[1], at_least=0.9)
lesson.check("weakest tenth, with the scale / without", with_scale[2] / without[2], at_least=40.0)
lesson.claim(
    "the more evenly a row attends, the larger the gradient of its scores",
    "wrong",
    f"over {n} keys an even row gets {all_keys:.3f}, one split between two keys {two:.3f}, a sure one 0",
)

# %% [markdown]
# ## Exercise
# 1. Self-attention (pencil 5 minutes, keyboard 15). In a file `my.py` write a layer `MyAttention` (derived from
#    `minitransformer.core.Layer`, as in lesson 01) with Q = K = V = x for x of the shape (2, 3, 4):
#    `forward(self, x, rng=None)` returns `y, cache`, `backward(self, dy, cache)` returns dx. One x plays three parts,
#    so the chain rule adds up three paths. Passes: `minitransformer gradcheck my.py:MyAttention` says ok. Then leave
#    out one of the three paths and look at the message.
# 2. A learnt sharpness (pencil, 10 minutes). Let S_ij = a Q_i·K_j with one learnt number a in place of 1/√d_k. Show
#    that da = ⟨dS, S⟩ / a, and that a row whose costs are all equal adds nothing to it. In which direction does descent
#    push a > 0 if every query's scores already rise as the costs fall? Passes: da agrees with `complex_step` to 1e-14
#    on a random example, and its sign is the one you foretold.
#
# Checked exercises on this lesson: `minitransformer start 06`.

# %% [markdown]
# ## Questions
# 1. A row has two keys only. Show that dS_1 = P_1 P_2 (dP_1 − dP_2) = −dS_2. For which P_1 is it largest?
# 2. Somebody adds one vector u to every row of V. What changes: O, dP, D, dS, dQ, dK, dV?
# 3. What must forward keep for backward? Must it keep S? Must it keep O?
# 4. Count the multiplications of the matrix products, forward and backward. What is the ratio if d_v = d_k? And in
#    blocks, where P is made anew?
# 5. Dropout on the weights: O = (P ∘ M) V, where M holds 0 or 1/(1 − rate). Is D_i = Σ_j P_ij dP_ij still dO_i·O_i?
#
# ## In the wild
# * llm.c's CPU reference (`attention_backward` in train_gpt2.c) writes the Jacobian out: for each query, a double loop
#   over pairs of keys with the indicator of part 3. That costs T³ where P ∘ (dP − D) costs T². It is right, and very
#   readable; its GPU kernels use the short form.
# * PyTorch's softmax backward is our line, grad_output·output less output times the sum of grad_output·output.
# * FlashAttention computes D from dO and O in a pass of its own before anything else. In low precision D from a rounded
#   O is not quite the weighted average of the rounded dP, so rows of dS sum to 0 only up to that rounding.
# * Among public repositories with a NumPy Transformer and a backward by hand we found dK with a reshape for a
#   transpose, and a softmax backward divided by the batch size. A model may well train with such a thing: a direction
#   that is partly right still goes down.

# %%
lesson.finish()

# %% [markdown]
# ## Answers
# 1. D = P_1 dP_1 + P_2 dP_2, and 1 − P_1 = P_2, so dP_1 − D = P_2 dP_1 − P_2 dP_2 = P_2 (dP_1 − dP_2). Times P_1 that
#    is the claim; dS_2 is its opposite as the row sums to 0. P_1 P_2 = P_1 (1 − P_1) is largest at P_1 = 1/2: 1/4.
# 2. O: every row gains u, as its weights sum to 1. dP_ij gains dO_i·u, the same for all j of a row; D_i gains it, too.
#    So dP − D and with it dS, dQ and dK stay. dV = Pᵀ dO stays (for the same dO). Only differences of values count.
# 3. Q, K, V and P are enough: all five lines use nothing else. S is not needed, as the Jacobian of the softmax can be
#    written in P. O is needed only for the fused form, which then can do without P: O and lse, from which P is remade.
# 4. Forward: Q Kᵀ with T n d_k, P V with T n d_v. Backward: dV and dP with T n d_v each, dQ and dK with T n d_k each.
#    That is 2 : 4, backward costs twice as much. In blocks Q Kᵀ is done once more: 2 : 5, so 2.5 times as much.
# 5. Yes. With G = dO Vᵀ the chain rule gives dP = G ∘ M. Then Σ_j P_ij dP_ij = Σ_j P_ij M_ij G_ij, which is
#    dO_i·Σ_j P_ij M_ij V_j = dO_i·O_i. The mask M moves from one factor to the other, and the sum does not care.
