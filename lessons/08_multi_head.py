# %% [markdown]
# # Lesson 08: Many heads, one matrix
#
# * Question: how do H attentions fit into the matrices of one, and what does that cost?
# * You derive: loop over heads = reshape + transpose; W_O as a sum over heads; the cost without H; the backward
# * Reading: 26 min, going deeper 0 min
# * Run: 4 s (fast: 2 s)
# * Needs: 01, 02, 04, 05, 06, 07
# * Difficulty: 3 of 5
# * Paper: section 3.2.2

# %%
import time
from lab import begin, error, plt

import numpy as np

from minitransformer.functional import split_heads
from minitransformer.layers import SelfAttention

lesson = begin("08_multi_head")
rng = np.random.default_rng(8)

# %% [markdown]
# One attention gives each token one set of weights: positive numbers that sum to 1 (lesson 05). A token that needs two
# things, say the letter before it and the letter at the mirrored place, must average them. The paper's answer is to run
# H attentions side by side. Each is called a head, and each has its own queries, keys and values:
#
#     MultiHead(Q, K, V) = Concat(head_1, ..., head_H) W^O
#     head_h = Attention(Q W_h^Q, K W_h^K, V W_h^V)                      (paper section 3.2.2)
#
# In self-attention, which is what this lesson builds, the paper's Q, K and V are all the same x: (B, T, C), with B
# sequences in a batch, T tokens in a sequence and C = d_model features of a token. W_h^Q, W_h^K and W_h^V are (C, D)
# with D = C / H, so a head works with D features of its own making. W^O is (C, C). We count heads from 0, as code does.
#
# ## Predict
#
# Write down your guesses before you read on.
#
# 1. Take C = 512. By which factor does the number of parameters grow from 1 head to 8? (What many heads cost)
# 2. An array (T, C) is to become (H, T, D). `x.reshape(H, T, D)` has the right shape. Which numbers does it put into
#    head 0? (Small numbers)
# 3. The causal leak test of lesson 07 changes the last token and looks for changes in earlier outputs. Does it notice
#    the wrong reshape of guess 2? (The picture, The surprise)

# %% [markdown]
# ## Small numbers
#
# Three tokens with four features, T = 3, C = 4, for two heads, so D = 2. Entry 12 below is token 1, feature 2: the tens
# are the token and the ones are the feature. Head 0 is to get features 0 and 1 of every token, head 1 features 2 and 3.

# %%
x_small = 10 * np.arange(3)[:, None] + np.arange(4)
right_small = x_small.reshape(3, 2, 2).transpose(1, 0, 2)  # (T, C) -> (T, H, D) -> (H, T, D)
wrong_small = x_small.reshape(2, 3, 2)  # (T, C) -> (H, T, D) at once
print("x, a row per token        right, head 0   head 1        wrong, head 0   head 1")
for t in range(3):
    rows = [right_small[0, t], right_small[1, t], wrong_small[0, t], wrong_small[1, t]]
    print(f"  {x_small[t]!s:22}    {rows[0]!s:14}  {rows[1]!s:12}  {rows[2]!s:14}  {rows[3]!s}")

# %% [markdown]
# Read the wrong head 0 downwards: features 0 and 1 of token 0, then features 2 and 3 of token 0, then features 0 and 1
# of token 1. It never sees token 2. A reshape does not move any number in memory; it only reads the same sequence
# 0, 1, 2, 3, 10, 11, ... in rows of another length. Cut into two equal runs, the first half of the sequence goes to
# head 0 and the second half to head 1. So the wrong reshape gives each head a part of the SENTENCE, where it should get
# a part of the FEATURES. That answers guess 2.

# %% [markdown]
# ## The derivation
#
# ### Part 1: the loop over heads is one product, a reshape and a transpose
#
# Leave the batch axis B out; it rides along. The query of head h at token t, feature d of D, is
#
#     q_h[t, d] = Σ_j x[t, j] W_h^Q[j, d]                   j runs over the C features of x
#
# Put the H matrices side by side as columns of one matrix W^Q (C, C):
#
#     W^Q[j, hD + d] = W_h^Q[j, d]                          h = 0 ... H-1, d = 0 ... D-1
#
# Then one product x W^Q has all heads' queries, because a column of a product depends on that column alone:
#
#     (x W^Q)[t, hD + d] = Σ_j x[t, j] W^Q[j, hD + d] = Σ_j x[t, j] W_h^Q[j, d] = q_h[t, d]
#
# So head h owns the columns hD ... hD + D-1. To give h an axis of its own, split the column index c into (h, d) with
# c = hD + d. That is what `reshape(T, H, D)` does: NumPy's last index runs fastest. Then `transpose` brings h to the
# front, because the matrix products of attention work on the last two axes:
#
#     (T, C)  reshape ->  (T, H, D)  transpose ->  (H, T, D)
#
# The same for keys and values. Now `q @ kᵀ` on (H, T, D) computes H independent products, one for each head.

# %% [markdown]
# ### Part 2: what the reshape without the transpose does
#
# Entry (t, c) of a (T, C) array stands at place n = tC + c in memory. Entry (h, t', d) of an (H, T, D) array is read
# from place n = hTD + t'D + d. The wrong split equates the two. With C = HD:
#
#     tC + c = hTD + t'D + d        divide by D, and take whole parts:
#     tH + floor(c / D) = hT + t'   so   t = floor((hT + t') / H)   and   floor(c / D) = (hT + t') mod H
#
# Row t' of head h is a piece of token floor((hT + t') / H). As t' runs from 0 to T-1, that token runs from about
# hT/H to (h+1)T/H: head h sees its own stretch of the sentence. And each token shows up as H rows, one for each piece
# of D features, which attend to one another as if they were tokens. (If H does not divide T, a token at a border may
# have some of its rows in one head and the rest in the next, as token 1 above.)

# %% [markdown]
# ### Part 3: W^O is a sum over heads
#
# Concat puts feature d of head h at column hD + d, so with merged[t, hD + d] = head_h[t, d]
#
#     y[t, j] = Σ_c merged[t, c] W^O[c, j] = Σ_h Σ_d head_h[t, d] W^O[hD + d, j]
#
# Call the rows hD ... hD + D-1 of W^O the matrix W_h^O (D, C). Then
#
#     y = Σ_h head_h W_h^O
#
# "Concatenate, then multiply" is "each head writes C features, and they are added". The concatenation is only a way
# to store the sum. With head_h = P_h x W_h^V, where P_h (T, T) are the weights of head h, each head adds
# P_h x (W_h^V W_h^O): the C x C matrix in brackets has rank D at most, and P_h moves it between tokens.

# %% [markdown]
# ### Part 4: what it costs
#
# Parameters: W^Q, W^K, W^V and W^O are (C, C) each, with a bias (C,) each. That is 4C² + 4C, and no H in it.
# Multiply-adds, for T queries on S keys (S = T in self-attention), added over the heads:
#
#     q, k, v:       T C C for q, S C C for each of k and v
#     scores q kᵀ:   H · T · S · D = T S C                  since H D = C
#     weights · v:   H · T · D · S = T S C
#     output:        T C C
#
# Again no H. More heads are thinner heads. What does grow with H is what is counted per score and not per product: H
# softmaxes, so H T S exponentials, and H T S weights to be remembered for the backward.

# %% [markdown]
# ### Part 5: backward
#
# Read the forward from its end. d + name is the derivative of the loss by that name (lesson 01).
#
#     y = merged W^O + b^O        dmerged = dy (W^O)ᵀ      dW^O = mergedᵀ dy      db^O = Σ over tokens of dy
#
# (lesson 02). Merging is a permutation: merged[t, hD + d] = head_h[t, d], each number moved and none changed, so
# dhead_h[t, d] = dmerged[t, hD + d]. That is the SPLIT of dmerged. In words of matrices: a permutation matrix Π has
# Πᵀ = Π⁻¹, the backward of a linear map is its transpose, so the backward of merge is its inverse, split; and the
# backward of split is merge. Inside each head, lesson 06 holds unchanged (s = q kᵀ / √D are the scores, P = softmax(s)
# the weights, and ∘ multiplies entry by entry):
#
#     dv = Pᵀ dhead      dP = dhead vᵀ      ds = P ∘ (dP - rowsum(dP ∘ P))      dq = ds k / √D      dk = dsᵀ q / √D
#
# Last, x enters 3H products: as query, key and value of every head. Gradients of several uses add (lesson 04):
#
#     dx = Σ_h ( dq_h (W_h^Q)ᵀ + dk_h (W_h^K)ᵀ + dv_h (W_h^V)ᵀ )
#
# Merge the H gradients into dq (T, C) with columns as in Part 1. Then Σ_h dq_h (W_h^Q)ᵀ = dq (W^Q)ᵀ, because the sum
# over h and d is the sum over c. Put also q, k and v side by side, W = [W^Q | W^K | W^V] of shape (C, 3C), and the
# fused form is one product each:
#
#     [q | k | v] = x W + b        dx = [dq | dk | dv] Wᵀ        dW = xᵀ [dq | dk | dv]        db = Σ [dq | dk | dv]

# %% [markdown]
# ## From scratch
#
# First the paper, literally: a loop over heads with small matrices. `allowed` is a mask, True = may attend (lesson 07).
# `.real` finds the largest score by its real part, as a check below sends complex numbers through (lesson 03).


# %%
def softmax(s):
    e = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def attend(q, k, v, allowed=True):
    """q (..., T, D), k and v (..., S, D) -> y (..., T, D) and the weights P (..., T, S)."""
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    P = softmax(np.where(allowed, s, -np.inf))
    return P @ v, P


def by_the_loop(x, heads, W_O):
    """heads: a list of (W_h^Q, W_h^K, W_h^V), each (C, D) -> y (B, T, C)."""
    outputs = [attend(x @ W_q, x @ W_k, x @ W_v)[0] for W_q, W_k, W_v in heads]
    return np.concatenate(outputs, axis=-1) @ W_O


# %% [markdown]
# Then all heads at once. `split` and `merge` are arguments, so that wrong ones can be tried later; so are the functions
# that undo them in backward. The operator `@` on four axes multiplies the matrices of the last two, for each b and h.


# %%
def split(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H).transpose(0, 2, 1, 3)  # (B, H, T, D)


def merge(x):
    B, H, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * D)


def forward(x, W, b, W_O, b_O, H, allowed=True, split=split, merge=merge):
    """x (B, T, C), W (C, 3C), b (3C,), W_O (C, C), b_O (C,) -> y (B, T, C) and what backward needs."""
    q, k, v = (split(part, H) for part in np.split(x @ W + b, 3, axis=-1))
    heads, P = attend(q, k, v, allowed)
    merged = merge(heads)
    return merged @ W_O + b_O, (x, W, W_O, q, k, v, P, merged)


def weight_gradient(x, dy):
    """xᵀ dy over all tokens of all sequences: x (B, T, I), dy (B, T, O) -> (I, O)."""
    return x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1])


def backward(dy, cache, unmerge=split, unsplit=merge):
    """dy (B, T, C) -> dx, dW, db, dW_O, db_O. Each line undoes one of forward, last one first."""
    x, W, W_O, q, k, v, P, merged = cache
    H, D = q.shape[1], q.shape[-1]
    dW_O, db_O = weight_gradient(merged, dy), dy.sum(axis=(0, 1))
    dheads = unmerge(dy @ W_O.T, H)
    dv = P.swapaxes(-1, -2) @ dheads
    dP = dheads @ v.swapaxes(-1, -2)
    ds = P * (dP - (dP * P).sum(axis=-1, keepdims=True))
    dq, dk = ds @ k / np.sqrt(D), ds.swapaxes(-1, -2) @ q / np.sqrt(D)
    dqkv = np.concatenate([unsplit(dq), unsplit(dk), unsplit(dv)], axis=-1)  # (B, T, 3C)
    return dqkv @ W.T, weight_gradient(x, dqkv), dqkv.sum(axis=(0, 1)), dW_O, db_O


# %% [markdown]
# ## Checked
#
# Order-one random weights and biases, lengths that all differ (B = 2, T = 5, H = 3, D = 4, C = 12), a causal mask, and
# a random upstream gradient dy. First the forward: the reshape form against the loop, and against the sum over heads of
# Part 3. The loop has no biases, so they are 0 there.

# %%
B, T, H, D = 2, 5, 3, 4
C = H * D
x, dy = rng.standard_normal((2, B, T, C))
W, b = rng.standard_normal((C, 3 * C)) / 2, rng.standard_normal(3 * C)
W_O, b_O = rng.standard_normal((C, C)) / 2, rng.standard_normal(C)
causal = np.tril(np.ones((T, T), dtype=bool))

W_q, W_k, W_v = np.split(W, 3, axis=1)
columns = [slice(h * D, h * D + D) for h in range(H)]  # what head h owns
loop = by_the_loop(x, [(W_q[:, c], W_k[:, c], W_v[:, c]) for c in columns], W_O)
y_plain, cache_plain = forward(x, W, 0 * b, W_O, 0 * b_O, H)
lesson.check("reshape + transpose equals the paper's loop", error(y_plain, loop), 1e-13)

heads, _ = attend(*cache_plain[3:6])  # (B, H, T, D)
summed = sum(heads[:, h] @ W_O[columns[h]] for h in range(H))
lesson.check("concat, then W^O, equals the sum of head_h W_h^O", error(summed, y_plain), 1e-13)
rank = max(np.linalg.matrix_rank(W_v[:, c] @ W_O[c]) for c in columns)
lesson.check("rank of W_h^V W_h^O, of 12 at most D = 4", rank, D)

# %% [markdown]
# Then the backward, against the complex step of lesson 01: f(x + ih) = f(x) + ih f'(x) + ..., so f'(x) = Im f(x + ih)/h
# with h = 1e-30, exact to rounding. Every entry of x and of all four parameters is moved in turn.


# %%
def complex_step(loss, z, h=1e-30):
    derivative = np.zeros(z.shape)
    for index in np.ndindex(z.shape):
        moved = z.astype(complex)
        moved[index] += 1j * h
        derivative[index] = loss(moved).imag / h
    return derivative


inputs = [x, W, b, W_O, b_O]
y, cache = forward(*inputs, H, causal)
gradients = backward(dy, cache)
for i, name in enumerate(["x", "W", "b", "W_O", "b_O"]):

    def loss(z, i=i):
        return (forward(*inputs[:i], z, *inputs[i + 1 :], H, causal)[0] * dy).sum()

    numeric = complex_step(loss, inputs[i])
    lesson.check(f"d{name} against the complex step", error(gradients[i], numeric), 1e-12)
lesson.check("gradient of the keys' bias, exactly 0 but for rounding", np.abs(gradients[2][C : 2 * C]).max(), 1e-13)

# %% [markdown]
# The last line has a reason: one vector b added to all keys adds the same number q·b / √D to all scores of a query, and
# a softmax does not see that. Last, the library's own layer, with the same weights. Its W is [W^Q | W^K | W^V], too.

# %%
layer = SelfAttention(C, H, dtype="float64")
for parameter, value in zip(layer.parameters(), inputs[1:], strict=True):
    parameter.data[...] = value
y_library, cache_library = layer.forward(x, causal[None, None])
dx_library = layer.backward(dy, cache_library)
lesson.check("split equals the library's split_heads", error(split(x, H), split_heads(x, H)), 0.0)
lesson.check("forward equals the library's SelfAttention", error(y, y_library), 1e-12)
lesson.check("dx equals the library's", error(gradients[0], dx_library), 1e-12)
worst = max(error(mine, p.grad) for mine, p in zip(gradients[1:], layer.parameters(), strict=True))
lesson.check("all four parameter gradients equal the library's", worst, 1e-12)

# %% [markdown]
# ## A copied line: the keys' matrix used for the values
#
# Three lines that look alike, `q = ...`, `k = ...`, `v = ...`, get copied and one is not edited: the values are made
# with W^K. The layer runs, and its gradients are right for what it computes. What gives it away is who gets a gradient.

# %%


def copied(W, b):
    W_q, W_k, _ = np.split(W, 3, axis=1)
    b_q, b_k, _ = np.split(b, 3)
    y, _ = forward(x, np.hstack([W_q, W_k, W_k]), np.hstack([b_q, b_k, b_k]), W_O, b_O, H, causal)
    return (y * dy).sum()


dW_copied, db_copied = complex_step(lambda z: copied(z, b), W), complex_step(lambda z: copied(W, z), b)
print("largest gradient of        W^Q      W^K      W^V      b^K")
for name, dW, db in (("the right layer", *gradients[1:3]), ("the copied line", dW_copied, db_copied)):
    largest = [np.abs(part).max() for part in (*np.split(dW, 3, axis=1), db[C : 2 * C])]
    print(f"  {name:19}" + "".join(f"{value:9.1e}" for value in largest))
lesson.check("copied line: largest gradient of W^V", np.abs(dW_copied[:, 2 * C :]).max(), 0.0)
lesson.check("copied line: the keys' bias has a gradient", np.abs(db_copied[C : 2 * C]).max(), at_least=0.1)

# %% [markdown]
# W^V stays at its initial values for ever: its gradient is 0 to the last bit. So ask of every model, after one
# backward: has each matrix a gradient that is not 0? The bias of the keys is the one honest exception, and here it has
# one, as it now serves as the values' bias.
#
# ## What many heads cost
#
# Count what Part 4 counted, and take the time of forward and backward with a batch of 4, T = 128 and C = 256 in
# float32. Your times will differ, and the machine's other work disturbs them, so each is the least of several turns.

# %%
B2, T2, C2 = 4, 128, 256
weights = [rng.standard_normal(shape).astype("float32") / 16 for shape in [(C2, 3 * C2), 3 * C2, (C2, C2), C2]]
x2 = rng.standard_normal((B2, T2, C2)).astype("float32")
counts = (1, 2, 4, 8, 16, 32)
seconds = dict.fromkeys(counts, np.inf)
for _ in range(lesson.pick(full=9, fast=2)):
    for H2 in counts:  # in turns, so that a disturbance meets all
        start = time.perf_counter()
        backward(x2, forward(x2, *weights, H2)[1])
        seconds[H2] = min(seconds[H2], time.perf_counter() - start)


def multiply_adds(T, C, H):
    D = C // H
    projections, scores, mean, output = 3 * H * T * C * D, H * T * T * D, H * T * T * D, T * C * C
    return projections + scores + mean + output


parameters = {H2: SelfAttention(C2, H2).num_parameters() for H2 in counts}
print("  H    parameters    multiply-adds    exponentials    weights kept    time")
for H2 in counts:
    products, softmaxes = B2 * multiply_adds(T2, C2, H2), B2 * H2 * T2 * T2
    print(
        f" {H2:2}    {parameters[H2]:10,}    {products:13,}    {softmaxes:12,}"
        f"    {4e-6 * softmaxes:6.2f} MB       {1e3 * seconds[H2]:5.1f} ms"
    )
same = [parameters[H2] - (4 * C2 * C2 + 4 * C2) for H2 in counts]
lesson.check("parameters beyond 4C² + 4C, for any H", max(same), 0)
lesson.check("multiply-adds, 32 heads over 1", multiply_adds(T2, C2, 32) / multiply_adds(T2, C2, 1), 1)
paper = {H2: SelfAttention(512, H2, rng=None).num_parameters() for H2 in (1, 8)}
lesson.quote("At C = 512 it is 1,050,624 for 1 head and for 8", 512, paper[1], 1, 8)
lesson.claim(
    "multi-head attention has more parameters than one head",
    "wrong",
    f"at d_model = 512, {paper[1]:,} with 1 head and {paper[8]:,} with 8: it does not depend on the number of heads",
)

# %% [markdown]
# At C = 512 it is 1,050,624 for 1 head and for 8: the factor of guess 1 is 1. The columns of parameters and of
# multiply-adds do not move. The time does: there are H times as many exponentials, and the products per head get
# thinner, which a processor does less well. "Many heads cost nothing" is true of what is learnt and of the arithmetic
# in products, and not of the clock and the memory.

# %% [markdown]
# ## Two heads by hand
#
# Now set the weights without any training. Take the word "computer": 8 different letters. A token's 16 features are a
# one in 8 places for which letter it is, and a one in 8 places for where it stands. (Better ways to say "where" come in
# lesson 09; this one needs no thought.) With e_p for the one-hot vector of position p:
#
#     both heads    key   = e_s                 where the token stands: W^K copies the last 8 features
#     head 0        query = 10 √D e_(t-1)       "I look for the one who stands before me"
#     head 1        query = 10 √D e_(7-t)       "I look for the one who stands in my mirror"
#     both heads    value = the letter          W^V copies the first 8 features
#
# A score is 10 √D / √D = 10 where the positions match and 0 elsewhere, so the match has the weight
# exp(10) / (exp(10) + 7) = 0.99968. W^O is the identity, so y has head 0's letter in its first 8 features and head 1's
# in the last 8. The mirror is right for the length 8 only: the length is built into W^Q.

# %%
word, n = "computer", 8
tokens = np.hstack([np.eye(n), np.eye(n)])[None]  # letter t of the word is letter t of our alphabet, at position t
nothing = np.zeros((n, n))
W_key, W_value = np.vstack([nothing, np.eye(n)]), np.vstack([np.eye(n), nothing])
shift, mirror = np.eye(n, k=-1), np.eye(n)[::-1]  # row t of each is what position t looks for
W_query = [10 * np.sqrt(n) * np.vstack([nothing, looks_for]) for looks_for in (shift, mirror)]
W_hand = np.hstack([*W_query, W_key, W_key, W_value, W_value])  # (16, 48)
y_hand, cache_hand = forward(tokens, W_hand, np.zeros(48), np.eye(16), np.zeros(16), H=2)
P_hand = cache_hand[6][0]  # (2, 8, 8)

for name, part in (("head 0", y_hand[0, :, :n]), ("head 1", y_hand[0, :, n:])):
    said = "".join(word[row.argmax()] if row.max() > 0.5 else "?" for row in part)
    print(f"  {name} reads {word!r} as {said!r}")
match = np.exp(10) / (np.exp(10) + n - 1)
lesson.check("head 0: weight on the previous position", error(P_hand[0, 1:].diagonal(), match), 1e-13)
lesson.check("head 1: weight on the mirrored position", error(P_hand[1, :, ::-1].diagonal(), match), 1e-13)
lesson.check("head 0, position 0: it looks for nobody and gets 1/8 of each", error(P_hand[0, 0], 1 / 8), 1e-15)
lesson.quote("exp(10) / (exp(10) + 7) = 0.99968", 10, 10, 7, match)

# %% [markdown]
# Position 0 has nobody before it. Its query is 0, all scores are equal, and softmax must give something: the average
# of all letters. Attention cannot say "nothing"; the "?" is our reading of eight equal eighths.
#
# Could ONE head do both jobs? Let it look for both: query = 10 √D (e_(t-1) + e_(7-t)). It gets about half of each
# letter, added up. But an even sum does not tell which was which: swap the two letters in the word and y[t] stays the
# same. (Uneven weights would leave a trace, at the price of a weaker second letter.) With two heads they go to
# different features. Test it at t = 2, which looks at positions 1 and 5, the letters o and t.

# %%
swapped = tokens.copy()
swapped[0, [1, 5], :n] = tokens[0, [5, 1], :n]  # the letters change places, the positions stay
W_one = np.hstack([np.vstack([nothing, 10 * np.sqrt(n) * (shift + mirror)]), W_key, W_value])  # (16, 24): D = 8
outputs_one = [attend(*np.split(z @ W_one, 3, axis=-1))[0][0, 2] for z in (tokens, swapped)]
outputs_two = [forward(z, W_hand, np.zeros(48), np.eye(16), np.zeros(16), H=2)[0][0, 2] for z in (tokens, swapped)]
lesson.check("one head: change of y[2] when o and t are swapped", np.abs(np.subtract(*outputs_one)).max(), 1e-15)
lesson.check("two heads: change of y[2]", np.abs(np.subtract(*outputs_two)).max(), at_least=0.99)

# %% [markdown]
# ## The picture
#
# Two of its panels are the heads just built. The other two ask a whole layer (12 random tokens, 3 heads, no mask): if
# token s moves a little, how much does output t move? With a complex step in a random direction at token s, the largest
# |Im y[t]| / h answers exactly. One layer has the right split; in the other, split and merge are both bare reshapes.


# %%
def wrong_split(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def wrong_merge(x):
    B, H, T, D = x.shape
    return x.reshape(B, T, H * D)


def influence(split, merge, T=12, H=3, C=12, allowed=True):
    local = np.random.default_rng(80)
    z, direction = local.standard_normal((2, 1, T, C))
    parameters = [local.standard_normal(s) / 2 for s in [(C, 3 * C), 3 * C, (C, C), C]]
    moved = np.zeros((T, T))
    for s in range(T):
        step = np.zeros((1, T, C), dtype=complex)
        step[0, s] = 1e-30j * direction[0, s]
        moved[:, s] = np.abs(forward(z + step, *parameters, H, allowed, split, merge)[0][0].imag).max(axis=-1) / 1e-30
    return moved


right, wrong = influence(split, merge), influence(wrong_split, wrong_merge)
figure, axes = plt.subplots(2, 2, figsize=(6.4, 6.0))
panels = (
    ("head 0, by hand: the token before", P_hand[0]),
    ("head 1, by hand: the mirrored token", P_hand[1]),
    ("right split: all tokens reach all", np.log10(np.maximum(right, 1e-4))),
    ("reshape without a transpose", np.log10(np.maximum(wrong, 1e-4))),
)
for axis, (title, values) in zip(axes.flat, panels, strict=True):
    by_hand = len(values) == n
    image = axis.imshow(values, vmin=0 if by_hand else -4, vmax=1)
    ticks = range(n) if by_hand else range(0, 12, 2)
    axis.set_xticks(ticks, list(word) if by_hand else ticks)
    axis.set_yticks(ticks, list(word) if by_hand else ticks)
    axis.set_title(title, fontsize=9)
    axis.set(xlabel="token attended to" if by_hand else "token s that is moved")
    axis.set(ylabel="token that attends" if by_hand else "output t that may move")
    if axis in axes[:, 1]:
        label = "attention weight" if by_hand else "log10 of |∂y[t]/∂x[s]|\n(darkest: 0 exactly)"
        figure.colorbar(image, ax=axes[0 if by_hand else 1, :], label=label, shrink=0.9)
figure.suptitle("Two heads made by hand, and which tokens reach which with a right and a wrong split", fontsize=10)
lesson.save(figure)
outside = np.arange(12)[:, None] // 4 != np.arange(12) // 4
lesson.check("right split: least influence between any two tokens", right.min(), at_least=1e-4)
lesson.check("wrong reshape: largest influence between the islands", wrong[outside].max(), 0.0)

# %% [markdown]
# You should see a line below the diagonal, an anti-diagonal, a full square, and three blocks of 4 x 4 on the diagonal
# with exactly nothing between them; the first row of the first panel is of one dull shade, 1/8, as position 0 has
# nobody to look at. If you see the last panel full, the reshape that was tried has its transpose after all; if the
# third panel has blocks, your own split has lost it.
#
# The blocks are Part 2: head h holds the tokens from hT/H to (h+1)T/H, here 0-3, 4-7 and 8-11. The layer has become H
# small attentions on H pieces of the text. A sentence's end can never learn of its beginning.

# %% [markdown]
# ## The surprise
#
# Which test finds it? Three that you have, on four layers: both functions right, both wrong, and one wrong each.
#
# * gradient: dx by hand against a complex step. It asks whether backward is the derivative of forward.
# * permutation: shuffle the tokens. That shuffles the rows of q, k and v. Each query still takes the same sum, only in
#   another order, so without a mask every output may change its place and nothing else.
# * leak: with a causal mask, change the last token. No earlier output may change (lesson 07).
#
# For the gradient test the layer's own backward is used, with the transposes of whatever split and merge were chosen.


# %%
undo = {split: merge, merge: split, wrong_split: wrong_merge, wrong_merge: wrong_split}


def try_layer(split, merge):
    """(error of dx, change under a permutation, change of earlier outputs when the last token changes)."""
    local = np.random.default_rng(88)
    T, C, H = 8, 12, 3
    z, dz = local.standard_normal((2, 1, T, C))
    parameters = [local.standard_normal(s) / 2 for s in [(C, 3 * C), 3 * C, (C, C), C]]

    def run(z, allowed=True):
        return forward(z, *parameters, H, allowed, split, merge)

    dx = backward(dz, run(z)[1], undo[merge], undo[split])[0]
    wrong_dx = error(dx, complex_step(lambda z: (run(z)[0] * dz).sum(), z))
    order = local.permutation(T)
    not_permuted = error(run(z[:, order])[0], run(z)[0][:, order])
    changed, mask = z.copy(), np.tril(np.ones((T, T), dtype=bool))
    changed[0, -1] += 1
    leak = np.abs(run(changed, mask)[0] - run(z, mask)[0])[0, :-1].max()
    return wrong_dx, not_permuted, leak


found = {}
print("  split  merge    gradient      permutation   leak")
for names in ("right right", "wrong wrong", "wrong right", "right wrong"):
    s, m = names.split()
    found[names] = try_layer(split if s == "right" else wrong_split, merge if m == "right" else wrong_merge)
    print(f"  {s}  {m}    {found[names][0]:.1e}       {found[names][1]:.1e}       {found[names][2]:.1e}")
one_wrong = found["wrong right"], found["right wrong"]
lesson.check("gradient test, all four layers: worst error", max(f[0] for f in found.values()), 1e-12)
lesson.check("permutation test, right layer: change", found["right right"][1], 1e-13)
least = min(f[1] for f in (found["wrong wrong"], *one_wrong))
lesson.check("permutation test, the three wrong layers: least change", least, at_least=0.1)
lesson.check("leak test, both right: change", found["right right"][2], 0.0)
lesson.check("leak test, both wrong: change", found["wrong wrong"][2], 0.0)
lesson.check("leak test, only one wrong: least change", min(f[2] for f in one_wrong), at_least=0.1)
lesson.claim(
    "a leak test and a gradient check together show that attention is right",
    "wrong",
    "with bare reshapes for split and merge both pass (change 0, error "
    f"{found['wrong wrong'][0]:.0e}); a permutation of the tokens changes the output by {found['wrong wrong'][1]:.0%}",
)

# %% [markdown]
# The gradient test passes all four: each backward is right, for the wrong function. And the leak test passes the layer
# in which BOTH are wrong, which is a likely form of the mistake, since who writes one bare reshape may well write two.
# We had expected a mixing of positions to leak; guess 3, then, is no. The reason is in Part 2. Row t' of head h holds a
# piece of token floor((hT + t') / H), which never falls as t' rises. The causal mask lets row t' see rows up to t', so
# pieces of tokens up to its own; and the bare merge carries every piece back to the token that it came from. Nothing
# comes from the future. What is lost is the past beyond the island's edge, and no leak test asks for that.
#
# Wrong in one place only, pieces end up at other tokens, and the leak is plain. So keep three tests: gradient, leak,
# permutation. Each is blind to something that another sees.

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 10 minutes. Give "computer" a third head that reads the NEXT letter: D stays 8, and W is (16, 72), W^O
#    (24, 24). It passes if the head says "omputer?".
# 2. Pencil and keyboard, 30 minutes. Write attention as a layer whose parameters are the per-head matrices
#    W_h^Q, W_h^K, W_h^V and W_h^O, with a loop over heads in forward and backward and no reshape at all; y is the sum
#    of Part 3. Derive its dx and dW_h^O first. It passes if `minitransformer gradcheck my.py:MyHeads --shape 2 5 12`
#    does (`minitransformer/core.py` shows what a layer needs to have).
#
# Checked exercises on this lesson: `minitransformer start 08`.
#
# ## Questions
#
# 1. Why does `x.reshape(H, T, D)` raise no error, and why does no shape ever tell that it is wrong?
# 2. A layer has C = 512. How many parameters with H = 8 and with H = 16? And how many with H = 16 if D stays at 64?
# 3. Why is the backward of merge a split, and not one of the many other maps that undo its shape?
# 4. Head h adds P_h x W_h^V W_h^O to the output. How large can the rank of W_h^V W_h^O be in the paper's base model
#    (C = 512, H = 8), and what does that mean for what one head can carry?
# 5. Your model's W^V has a gradient that is exactly 0, and the gradient check passes. What do you look for?

# %% [markdown]
# ## In the wild
#
# * PyTorch's `nn.MultiheadAttention` keeps W^Q, W^K and W^V in one `in_proj_weight` (3C, C): our W, transposed. GPT-2
#   has one `c_attn` with W (C, 3C), as we have. The order q, k, v is a convention; a loader that mixes it up fits all
#   shapes.
# * `nn.MultiheadAttention` returns the weights averaged over heads unless told otherwise (`average_attn_weights`). The
#   average of a shift and a reversal is neither; look at heads one by one.
# * T5 does not tie D to C / H: its largest model has C = 1024 with 128 heads of D = 128, so W^Q is (1024, 16384). Then
#   parameters do grow with H. The independence is a choice of D = C / H, the paper's, and not a law.
# * LLaMA 2 70B and Mistral 7B share each key and value head among several query heads (grouped queries), because in
#   decoding the memory of keys and values costs more than the arithmetic.
# * The paper tried other numbers of heads at the same cost (table 3, rows A): one head was 0.9 BLEU worse than the
#   best, and 32 heads were worse than 8, too. Thin heads have a price: with D = 16 a score is a sum of 16 products
#   only.

# %%
more = 4 * 512 * 1024 + 3 * 1024 + 512
lesson.quote("With D = 64 and H = 16 it is 2,100,736", 64, 16, more)
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. Reshape needs the same number of entries, H T D = T C, and nothing else. The result has the shape that all later
#    lines expect.
# 2. 4 · 512² + 4 · 512 = 1,050,624 with either. With D = 64 and H = 16 it is 2,100,736: W^Q, W^K and W^V are
#    (512, 1024) with biases of 1024, and W^O is (1024, 512) with a bias of 512.
# 3. The derivative of a linear map is its transpose. Merge is a permutation of entries, and the transpose of a
#    permutation is its inverse: each gradient goes back exactly where its number came from.
# 4. 64 at most, as the product passes through D = 64 features. Out of 512 dimensions of a token, one head reads a
#    64-dimensional part and writes into a 64-dimensional part; to move everything takes all heads.
# 5. A line that does not use W^V. The gradient check is content, because 0 is the right gradient of a parameter that
#    is never used.
