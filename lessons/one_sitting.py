# %% [markdown]
# # Backprop through a Transformer in one sitting
#
# * You need: the chain rule, NumPy, paper and a pencil. You don't need to know Transformers.
# * You write: eleven functions of one to four lines, at ten stations
# * You get: all 826 gradients of a Transformer in your own code, checked, and a model that your code trains
# * Time: about 150 minutes if this is new to you, best on two evenings, with a good stopping point after station 5; if
#   you have derived gradients before, 90 to 120
# * Where: [as a notebook](one_sitting.ipynb), or as a script that `minitransformer sit` judges whenever you save it
#
# ## A bug that autograd cannot see
#
# In July 2025, somebody read a public PyTorch version of the Transformer, a companion of the well-known Annotated
# Transformer, and [stopped at this line](https://github.com/yflyzhang/AnnotatedTransformer/issues/1):
#
#     value = self.k_proj(value)
#
# It should say `v_proj`. The line above makes the keys, and it had been copied to make the values. One letter was left
# unchanged.
#
# What does such a model do? We planted the same mistake in our own library and let it learn to reverse words. After
# 1,000 steps it got 2,000 of 2,000 random words right, exactly as many as the correct model. The loss fell and nothing
# crashed. And autograd? Every gradient it would give you is right to the last digit. It is the right gradient of the
# wrong program. `v_proj` gets no gradient, because nothing uses it, and the optimizer silently skips it.
#
# Now go through this model by hand, backwards, from the loss. You arrive at the values, and ask who made them. You turn
# the page to write down the gradient of `v_proj`, and there is no line it could come from. You have found the bug, and
# you weren't even looking.
#
# That is why you should do this once. **A backward pass is a second reading of the program, in which every number has
# to say how it reaches the loss.** Autograd does that reading for you, and keeps what it finds to itself.
#
# The derivative also knows things that the code doesn't say. The tiny model on this page has 826 numbers. Eighteen of
# them are stored, added, and handed to the optimizer at every step, and they can never make any difference, at any size
# of this model. No line of code says so. You will see it in about an hour.

# %% [markdown]
# ## Two rules of the road
#
# We write dx for the gradient of the loss L with respect to x: how fast L grows if x grows. dx always has the shape of
# x. The chain rule says two things:
#
# 1. **Along a road, slopes multiply.** If x reaches the loss through y, then dx is dy times the slope of y along x.
# 2. **Where roads meet, gradients add.** If x reaches the loss by several roads, then dx is the sum over all of them.
#
# That, and the slopes of exp, ln, 1/x and √x, is all the calculus you need. Pick a single number and ask: *where
# does it go?*
#
# A small example. Let y = x W, entry by entry y_nj = Σ_i x_ni W_ij. Where does x_ni go? Into all y_nj of its own row n,
# each time with the slope W_ij. So dx_ni = Σ_j dy_nj W_ij. That is a matrix product again: dx = dy Wᵀ. This is half of
# the backward; the other half, dW, is waiting at station 4.

# %%
import sys
from itertools import product

import numpy as np

from minitransformer.course import FOLDER

sys.path.append(str(FOLDER))  # where the judge is
from support.sitting import PE, ROWS, SOURCE, STOP, VOCABULARY, WEIGHTS, hint, judge, judge_all, judge_half, show, true  # noqa: F401

# %% [markdown]
# ## The whole model
#
# It reads "stop" and writes the word backwards, "pots". It is the Transformer of the 2017 paper with one layer on each
# side, shrunk until you can print it. All sizes differ, so a wrong shape hardly ever fits by accident:
#
#     T = 5 rows of the decoder      S = 4 letters of the source      F = 8 units of the feed-forward network
#     C = 6 features of a token      H = 2 heads                      D = C/H = 3 features of a head
#     V = 7 tokens: o, p, s, t, and bos (begin), eos (end), pad (filler, which this page never needs)
#
# s, t, o and p are letters of our word. In formulas, s are scores, t counts rows, o is what a head gets, and p are
# probabilities.
#
# If you have never seen a Transformer, this is enough for today:
#
# * Each token becomes a row of six numbers: its row of the matrix E, times √C, plus a pattern PE that tells positions
#   apart.
# * **Attention** lets rows look at other rows. A row asks with a query q; every row that can be seen has a key k and a
#   value v. The dot products of the query with all keys are the scores s. A softmax turns them into weights p, positive
#   and summing to 1. What the row gets is the mean of the values with these weights. Two heads do this side by side.
# * **Feed-forward** lets each row think for itself: a matrix, ReLU, a matrix.
# * Around each of these there is a road for x to go straight ahead, x + f(x), and then a **norm** brings the row back
#   to size.
# * The encoder does this with the source. Its result, the memory M, is what the decoder looks at in
#   **cross**-attention.
# * At the end, each row is compared with all seven rows of E. The results are the logits z, a softmax turns them into
#   probabilities, and the loss L is the mean of −ln p over the right tokens.
#
# Here is all of it. Read it once from top to bottom. `values` collects every number on the way, by name.

# %%
C, H, D = 6, 2, 3


def split(x):
    """(T, C) -> (H, T, D): the features of each head."""
    return x.reshape(len(x), H, D).swapaxes(0, 1)


def merge(heads):
    """(H, T, D) -> (T, C): back again."""
    return heads.swapaxes(0, 1).reshape(-1, C)


def softmax(s):
    # .real changes nothing today; the check at the end needs it
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def forward(weights, source, target_in, target_out):
    """All numbers of the model for one word, by name. The loss is values["L"]."""
    values = {}

    def embed(at, ids):
        values[f"{at}.x"] = np.sqrt(C) * weights["E"][ids] + PE[: len(ids)]
        return values[f"{at}.x"]

    def linear(at, letter, x):
        return x @ weights[f"{at}.W_{letter}"] + weights[f"{at}.b_{letter}"]

    def norm(at, x):
        mu = x.mean(axis=-1, keepdims=True)
        sigma = np.sqrt(((x - mu) ** 2).mean(axis=-1, keepdims=True) + 1e-5)
        x_hat = (x - mu) / sigma
        values.update({f"{at}.x_hat": x_hat, f"{at}.sigma": sigma})
        return weights[f"{at}.gamma"] * x_hat + weights[f"{at}.beta"]

    def feed_forward(at, x):
        a = linear(at, "1", x)
        r = a * (a.real > 0)  # ReLU
        values.update({f"{at}.x": x, f"{at}.a": a, f"{at}.r": r})
        return linear(at, "2", r)

    def attention(at, x, M, allowed=True):
        q, k, v = split(linear(at, "q", x)), split(linear(at, "k", M)), split(linear(at, "v", M))
        s = np.where(allowed, q @ k.swapaxes(-1, -2) / np.sqrt(D), -np.inf)
        p = softmax(s)
        o = p @ v
        values.update({f"{at}.{name}": value for name, value in zip("xMqkvpo", (x, M, q, k, v, p, o), strict=True)})
        return linear(at, "o", merge(o))

    x = embed("source", source)
    x = norm("encoder.norm1", x + attention("encoder.self", x, x))
    M = norm("encoder.norm2", x + feed_forward("encoder.ffn", x))

    y = embed("target", target_in)
    past = np.tri(len(y), dtype=bool)  # a row may look at itself and at what came before
    y = norm("decoder.norm1", y + attention("decoder.self", y, y, past))
    y = norm("decoder.norm2", y + attention("cross", y, M))
    y = norm("decoder.norm3", y + feed_forward("decoder.ffn", y))

    z = y @ weights["E"].T
    p = softmax(z)
    L = -np.log(p[range(len(y)), target_out]).mean()
    values.update({"M": M, "y": y, "z": z, "p": p, "L": L})
    return values


values = forward(WEIGHTS, *STOP)
print(f"{sum(array.size for array in WEIGHTS.values())} weights in {len(WEIGHTS)} arrays; L = {values['L']:.4f}")
show("probabilities p (T, V)", values["p"], ROWS, VOCABULARY)

# %% [markdown]
# Five rows, five predictions. Row **p→o** is our hero: it has read "p" and must write "o". It gives the o 70 % and the
# p 30 %. It is right, but not sure, so it has the most to learn. We follow it all the way back.
#
# At each station you see the numbers, and a function in which some lines end in `...`. Replace each `...`, and run the
# cell (or, in a terminal, save the file while `minitransformer sit` is running). The judge compares what your function
# returns with the true numbers. If yours match a known mistake, the judge names it and asks you a question; if not, it
# shows you where you are off. Each function gets true numbers as its arguments, so you can keep going after a mistake,
# or skip a station and come back later.
#
# Stuck? Put `hint(loss_backward)` below the function, and write it twice for the second hint. Each function has two;
# the norm has three.
#
# ## Station 1: softmax and cross-entropy
#
# **The model gave the right letter 70 %. Which logits should move, and how hard?**
#
# For one row the loss is −ln p_right, and p_w = exp(z_w) / Σ_i exp(z_i). Pencil: substitute the second into the first,
# and use ln(a/b) = ln a − ln b. What remains has two terms. Now pick one logit z_w, and ask where it goes. Does it
# matter whether w is the right token?
#
# Then remember that L is the mean over the T rows. What is dz of row p→o? Write down its seven numbers before you write
# the line of code.

# %%
show("row p→o", [values["z"][1], values["p"][1]], ["z", "p"], VOCABULARY)


def loss_backward(p, right):
    """p (T, V) and the ids of the T right tokens -> dz (T, V)"""
    dz = ...
    return dz


judge(loss_backward)

# %% [markdown]
# More: [lesson 03](03_softmax_cross_entropy.py). See [this dz in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=output.dz[1,3]).
#
# ## Station 2: the output matrix
#
# **Seven logits are pulled in seven directions. What does the row hear about it, and what does E hear?**
#
# The logits are z = y Eᵀ, or z_tw = Σ_c y_tc E_wc: a row is compared with the row of E of each token. Pick one number
# of y, say y_tc. How many logits does it go into, and with what slope? Then pick one number of E, say E_wc. It is
# feature c of one token, and all five rows are compared with that token.
#
# Write each as a sum first. Then find the matrix product that does this sum for all entries at once. The shapes help:
# no other product of these matrices has the right one.

# %%
show("what arrives: dz (T, V)", true["output.dz"], ROWS, VOCABULARY)


def output_backward(dz, y, E):
    """z = y Eᵀ: dz (T, V) -> dy (T, C), dE (V, C)"""
    dy = ...
    dE = ...
    return dy, dE


judge(output_backward)

# %% [markdown]
# The same E will come up twice more: it also read the letters. Keep in mind that this dE is only its first share.
#
# More: [lesson 04](04_embeddings.py). See [this dy in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=output.dy[1,0]).
#
# ## Station 3: the norm
#
# **The norm takes away a row's mean and size. What does it take away from the gradient?**
#
# For each row, with means over its C = 6 features:
#
#     μ = mean(x)      σ = √(mean((x − μ)²) + ε)      x̂ = (x − μ)/σ      y = γ ∘ x̂ + β
#
# (∘ multiplies entry by entry. γ and β have six numbers each, and all rows share them.) This is the longest derivation
# of the day, so allow a quarter of an hour. Start at the end: what is dx̂? What are dγ and dβ, if five rows use the
# same γ?
#
# Then pick one feature x_c. It goes into x̂_c directly, with the slope 1/σ. But it also goes into μ, and μ goes into
# all six x̂. And it goes into σ, and σ goes into all six x̂. Three roads, so three terms:
#
#     directly         dx̂_c / σ
#     through μ        what is dμ? (Collect it from all six x̂.) Then, how much does μ move when x_c moves?
#     through σ        what is dσ? Then, how much does σ move when x_c moves?
#
# For the last one, write σ² = mean((x − μ)²) + ε and differentiate both sides along x_c. (μ moves too, but that adds
# nothing: it adds −1/C times the sum of 2(x − μ), and x − μ sums to 0.)
#
# Both side roads end in a mean over the features. Write them with `.mean(axis=-1, keepdims=True)`.

# %%
at = "decoder.norm3"
print(f"row p→o: σ = {values[f'{at}.sigma'][1, 0]:.3f}")
rows = [values[f"{at}.x_hat"][1], WEIGHTS[f"{at}.gamma"], true[f"{at}.dy"][1]]
show("row p→o", rows, ["x̂", "γ", "what arrives: dy"])


def norm_backward(dy, x_hat, sigma, gamma):
    """dy, x_hat (T, C), sigma (T, 1), gamma (C,) -> dx (T, C), dgamma (C,), dbeta (C,)"""
    dx_hat = ...
    dx = ...
    dgamma = ...
    dbeta = ...
    return dx, dgamma, dbeta


judge(norm_backward)

# %% [markdown]
# Try it: add up the six entries of dx, then multiply dx by x̂ and add up. Both sums are 0, except for ε and rounding. A
# gradient that fails one of these two tests has lost the road through μ, or the one through σ. At C = 512, losing both
# changes dx by about 5 to 6 % only. Such a model trains.
#
# More: [lesson 10](10_layer_norm.py). See [this dx in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=decoder.norm3.dx[1,0]).
#
# ## Station 4: the feed-forward network
#
# **Eight units, each on or off. Who learns from this row?**
#
# The network is a linear layer, ReLU, and a linear layer: a = x W_1 + b_1, then r = max(a, 0), then y = r W_2 + b_2.
# You need one function for both linear layers. (The model has sixteen of them, so it will be called sixteen times.) You
# have seen dx at the beginning. For dW, pick one W_ij: which rows use it, and what is next to it? For db, pick one
# b_j.
#
# And ReLU? Look at the eight numbers a of our row. What happens to r if you nudge a number that is −1.837? Or 0.610?

# %%
at = "decoder.ffn"
show("row p→o", [values[f"{at}.a"][1], values[f"{at}.r"][1], true[f"{at}.dr"][1]], ["a", "r", "what arrives: dr"])
show("a of all rows", values[f"{at}.a"], ROWS)


def linear_backward(dy, x, W):
    """y = x W + b: dy (T, out), x (T, in), W (in, out) -> dx (T, in), dW (in, out), db (out,)"""
    dx = ...
    dW = ...
    db = ...
    return dx, dW, db


def relu_backward(dr, a):
    """r = max(a, 0): dr, a (T, F) -> da (T, F)"""
    da = ...
    return da


judge(linear_backward, relu_backward)

# %% [markdown]
# Look down the columns of a, one unit at a time. One of the eight is negative in all five rows. Which? What will its
# column of dW_1 be? Keep it in mind for the end.
#
# More: [lesson 02](02_linear_relu.py). See [a unit that is off in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=decoder.ffn.da[1,6]).
#
# ## Station 5: the residual
#
# **x goes through the sub-layer, and around it. What comes back?**
#
# The sum is x + f(x), where f is the feed-forward network, or attention. You have the gradient dsum of the sum. You
# also have dsub, which is what comes out of the backward of f when dsum goes in. This is the shortest line of the day.
# But it is the reason that networks with a hundred layers can be trained, so don't just write it: say why.

# %%
rows = [true["decoder.norm3.dx"][1], true["decoder.ffn.dx"][1]]
show("row p→o", rows, ["dsum", "dsub, back through f"])


def residual_backward(dsum, dsub):
    """the gradient of x + f(x), and what came back through f -> dx, all of shape (T, C)"""
    dx = ...
    return dx


judge(residual_backward)

# %% [markdown]
# More: [lesson 11](11_residuals.py). See [this sum in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=decoder.norm2.dy[1,0]).
#
# ## Half done
#
# Softmax, a linear layer, ReLU, a norm and a way around: this is all a network without attention needs. String it
# together, from the loss down to the last norm before the feed-forward network, and let it be judged by a witness that
# knows nothing about derivations. (It nudges each weight and looks at the loss; the end of this page says how.) There
# is nothing left to write. This is a good place to stop for today: the file keeps what you wrote.


# %%
def half_backward(weights, values, target_out):
    """The gradients of the decoder's feed-forward network and of the norms around it, by name."""
    grads = {}

    def norm(at, dy):
        x_hat, sigma, gamma = values[f"{at}.x_hat"], values[f"{at}.sigma"], weights[f"{at}.gamma"]
        dx, grads[f"{at}.gamma"], grads[f"{at}.beta"] = norm_backward(dy, x_hat, sigma, gamma)
        return dx

    def linear(letter, dy, x):
        W = weights[f"decoder.ffn.W_{letter}"]
        dx, grads[f"decoder.ffn.W_{letter}"], grads[f"decoder.ffn.b_{letter}"] = linear_backward(dy, x, W)
        return dx

    dy, _ = output_backward(loss_backward(values["p"], target_out), values["y"], weights["E"])
    dsum = norm("decoder.norm3", dy)
    da = relu_backward(linear("2", dsum, values["decoder.ffn.r"]), values["decoder.ffn.a"])
    norm("decoder.norm2", residual_backward(dsum, linear("1", da, values["decoder.ffn.x"])))
    return grads


judge_half(forward, half_backward)

# %% [markdown]
# ## Station 6: what attention fetched
#
# **Did row p→o look in the wrong place, or did it find the wrong thing there?**
#
# We have passed one more norm and one linear layer, and have reached the output of cross-attention: o = p v, or o_td =
# Σ_j p_tj v_jd, once for each head. The row's query has looked at the four letters of "stop" with the weights p. Their
# values were mixed with these weights. From above comes do, three numbers for each head.
#
# Two things can be to blame: the weights p, or the values v. Pick one weight p_tj: which entries of o does it go into?
# Pick one entry v_jd of a value: which rows looked at it? Then find the two matrix products. The arrays have one more
# axis, for the heads. `@` works on the last two axes, and `v.swapaxes(-1, -2)` transposes them.
#
# Pencil: head 0, row p→o, the letter o. What is its dp? (Three products. The answer is the price of looking at it.)

# %%
show("head 0, row p→o: what arrives, do (D)", true["cross.do"][0, 1])
show("head 0: values v (S, D)", values["cross.v"][0], SOURCE)
show("head 0, row p→o: weights p (S)", values["cross.p"][0, 1], None, SOURCE)


def mix_backward(do, p, v):
    """o = p v: do (H, T, D), p (H, T, S), v (H, S, D) -> dp (H, T, S), dv (H, S, D)"""
    dp = ...
    dv = ...
    return dp, dv


judge(mix_backward)

# %% [markdown]
# More: [lesson 06](06_attention_backward.py). See [this price in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=cross.dp[0,1,2]).
#
# ## Station 7: the softmax of the scores
#
# **Each letter has a price now. Which scores should go up?**
#
# A negative price is a bargain: more weight there lowers the loss. But the weights sum to 1, so more for one letter
# means less for the others. That is what the softmax knows. You need the slope of each weight along each score. With
# p_i = exp(s_i)/Σ exp(s), the quotient rule gives two cases. Derive them. This is where you should end up:
#
#     ∂p_i/∂s_j = p_i (1 − p_i)     if i = j
#     ∂p_i/∂s_j = −p_i p_j          if not
#
# Now pick one score s_j. Where does it go? Into **all four** weights of its row. Add up four terms, and look for what
# they have in common. Before you run it, guess: which of the four scores below will rise under gradient descent?
# (Descent goes against the gradient.) One of the four has a good price but hardly rises at all. Why?

# %%
show("head 0, row p→o", [values["cross.p"][0, 1], true["cross.dp"][0, 1]], ["weight p", "price dp"], SOURCE)


def softmax_backward(dp, p):
    """p = softmax(s), row by row: dp, p (H, T, S) -> ds (H, T, S)"""
    ds = ...
    return ds


judge(softmax_backward)

# %% [markdown]
# Each row of ds sums to 0. Hold on to this: it is half of the answer to the riddle of the eighteen numbers.
#
# More: [lesson 06](06_attention_backward.py), which reads this line aloud. See [this ds in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=cross.ds[0,1,2]).
#
# ## Station 8: queries and keys
#
# **The score of a letter should rise. Who moves: the one who asks, or the one who is asked?**
#
# The scores are s = q kᵀ / √D, or s_tj = Σ_d q_td k_jd / √D. By now you can do this in your sleep: pick one q_td, see
# where it goes. Pick one k_jd, see where it goes. There is one number in the formula that people forget.

# %%
show("head 0, row p→o: what arrives, ds (S)", true["cross.ds"][0, 1], None, SOURCE)
show("head 0, row p→o: query q (D)", values["cross.q"][0, 1])
show("head 0: keys k (S, D)", values["cross.k"][0], SOURCE)


def scores_backward(ds, q, k):
    """s = q kᵀ / √D: ds (H, T, S), q (H, T, D), k (H, S, D) -> dq (H, T, D), dk (H, S, D)"""
    dq = ...
    dk = ...
    return dq, dk


judge(scores_backward)

# %% [markdown]
# More: [lesson 06](06_attention_backward.py), and [lesson 05](05_scaled_dot_product.py) on why there is a √D at all.
# See [this dq in the explorer](../minitransformer/explorer/page/index.html#view=cell&cell=cross.dq[0,1,0]).
#
# ## Station 9: the encoder
#
# **The encoder never sees the right answer. How does it learn?**
#
# You have all the pieces. Here they are as three ways back, one for each kind of layer. They call your functions and
# store the gradients of the weights. Each takes the name of a place and the gradient that arrives there. Read
# `attention` line by line: it is stations 6 to 8 in a row. (It returns three gradients and doesn't add them, because in
# cross-attention they belong to different rows.)


# %%
def ways_back(weights, values, grads):
    """The three ways back, which put the gradients of the weights into grads."""

    def linear(at, letter, dy, x):
        W = weights[f"{at}.W_{letter}"]
        dx, grads[f"{at}.W_{letter}"], grads[f"{at}.b_{letter}"] = linear_backward(dy, x, W)
        return dx

    def norm(at, dy):
        x_hat, sigma, gamma = values[f"{at}.x_hat"], values[f"{at}.sigma"], weights[f"{at}.gamma"]
        dx, grads[f"{at}.gamma"], grads[f"{at}.beta"] = norm_backward(dy, x_hat, sigma, gamma)
        return dx

    def feed_forward(at, dy):
        dr = linear(at, "2", dy, values[f"{at}.r"])
        return linear(at, "1", relu_backward(dr, values[f"{at}.a"]), values[f"{at}.x"])

    def attention(at, dy):
        x, M, q, k, v, p, o = (values[f"{at}.{name}"] for name in "xMqkvpo")
        do = split(linear(at, "o", dy, merge(o)))
        dp, dv = mix_backward(do, p, v)
        dq, dk = scores_backward(softmax_backward(dp, p), q, k)
        return linear(at, "q", merge(dq), x), linear(at, "k", merge(dk), M), linear(at, "v", merge(dv), M)

    return norm, feed_forward, attention


# %% [markdown]
# With them, the decoder's part of the backward is its forward, read from bottom to top:
#
#     forward:   ...  y = norm2(y + cross-attention(y, M))      y = norm3(y + feed-forward(y))
#     backward:  norm3, then around and through feed-forward, then norm2, then around and through cross-attention, ...
#
# The encoder is yours. The memory M was read twice by cross-attention: it became keys, and it became values. dM_k and
# dM_v are what comes back from the two. What is dM?
#
# From there, you have two lines of the forward to undo, last one first:
#
#     x = norm1(x + self-attention(x))
#     M = norm2(x + feed-forward(x))
#
# Use the three ways and your own `residual_backward`. (The judge passes correct versions of the three, even if some of
# your stations are still open.) In self-attention x itself makes the queries, the keys *and* the values. So along how
# many roads does x reach the loss there, counting the one around it?


# %%
def encoder_backward(dM_k, dM_v, norm, feed_forward, attention):
    """what comes back by the keys and the values of cross-attention (S, C) -> dM (S, C), dx of the source (S, C)

    norm("encoder.norm1", dy), feed_forward("encoder.ffn", dy) -> dx; attention("encoder.self", dy) -> dx_q, dx_k, dx_v
    """
    dM = ...
    dsum2 = ...  # back through norm2
    dsum1 = ...  # back around and through the feed-forward network, then through norm1
    dx = ...  # back around and through the attention
    return dM, dx


judge(encoder_backward)

# %% [markdown]
# More: [lesson 12](12_transformer.py). See [dM of the letter o in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=dM[2,0]).
#
# ## Station 10: the embedding
#
# **One matrix did three jobs. What does it owe to each?**
#
# E wrote the letters (station 2). It also read them, at the start of the encoder and of the decoder: x = √C e + PE,
# where e is the row of E for each letter. The encoder read s, t, o, p; the decoder read bos, p, o, t, s. That is nine
# reads. `ids` has these nine tokens, dx the nine gradients that arrive there, and dE the share that station 2 left in
# it. Return the whole dE.
#
# Every letter was read twice, once on each side. NumPy has a well-known trap here.

# %%
ids = [*STOP[0], *STOP[1]]
dx = np.concatenate([true["source.dx"], true["target.dx"]])
show("what arrives: dx (9, C)", dx, [VOCABULARY[i] for i in ids])


def embedding_backward(dE, ids, dx):
    """dE (V, C) so far, the ids of what was read, and their gradients dx (9, C) -> the whole dE (V, C)"""
    dE = ...
    return dE


judge(embedding_backward)

# %% [markdown]
# More: [lesson 04](04_embeddings.py). See [dE of the letter o in the
# explorer](../minitransformer/explorer/page/index.html#view=cell&cell=dE[3,0]).
#
# ## All of it
#
# String your functions together, from the loss to the embedding. There is nothing left to write. Read it, and recognize
# every line.


# %%
def backward(weights, values, source, target_in, target_out):
    """The gradient of each array of weights, by name: your own backward of a whole Transformer."""
    grads = {}
    norm, feed_forward, attention = ways_back(weights, values, grads)
    dz = loss_backward(values["p"], target_out)
    dy, dE = output_backward(dz, values["y"], weights["E"])

    dsum = norm("decoder.norm3", dy)
    dsum = norm("decoder.norm2", residual_backward(dsum, feed_forward("decoder.ffn", dsum)))
    dx, dM_k, dM_v = attention("cross", dsum)
    dsum = norm("decoder.norm1", residual_backward(dsum, dx))
    dx_target = residual_backward(dsum, sum(attention("decoder.self", dsum)))

    _, dx_source = encoder_backward(dM_k, dM_v, norm, feed_forward, attention)
    grads["E"] = embedding_backward(dE, [*source, *target_in], np.concatenate([dx_source, dx_target]))
    return grads


# %% [markdown]
# Is it right? So far the judge has compared you with our numbers. Now use a witness that knows nothing about our
# derivations or yours, only about the forward. Add a tiny *imaginary* number ih to one weight, h = 1e-30, and run the
# forward. The loss becomes complex, and its imaginary part divided by h is the derivative, to all digits: L(w + ih) =
# L(w) + ih L'(w), and the next term has h² in it. (For this, the forward compares `.real` parts. [Lesson
# 01](01_derivatives.py) has the story.) 826 weights take 826 forwards, a fraction of a second.

# %%
finished = judge_all(forward, backward)
if finished:
    grads = backward(WEIGHTS, values, *STOP)
    for name, grad in grads.items():
        zeros = int((np.abs(grad) < 1e-12).sum())
        if zeros:
            print(f"{name} {grad.shape}: {zeros} of {grad.size} gradients are 0")

# %% [markdown]
# Once your backward is right, this list shows two things.
#
# Thirteen zeros belong to one unit of the decoder's feed-forward network: its column of W_1, its b_1, its row of W_2.
# You met it at station 4, off in all five rows. On this word it learns nothing. 21 of the 340 words wake it up.
#
# The other eighteen are the biases of the keys, b_k, in all three attentions, and no word will ever wake them up. Why?
# b_k adds the same vector to every key. So it adds the same number, q·b_k/√D, to all scores of a row, and a softmax
# doesn't care. The way back says the same: db_k is the sum of dk over the letters, and rows of ds sum to 0. (That was
# station 7.)
#
# The code adds b_k like everything else. Nobody would look at it twice if its gradient weren't 0.
#
# ## Your backward at work
#
# A gradient is there to be used. Our model knows 340 words of one to four letters, and gets some of them wrong. Let
# your backward teach it. The optimizer is Adam ([lesson 13](13_adam_noam.py)), six lines. Each step takes the mean
# gradient over all 340 words.

# %%
WORDS = ["".join(letters) for length in (1, 2, 3, 4) for letters in product("opst", repeat=length)]


def pair(word):
    """What the encoder reads, what the decoder reads, and what it should write."""
    ids = [VOCABULARY.index(letter) for letter in word]
    return ids, [VOCABULARY.index("bos"), *ids[::-1]], [*ids[::-1], VOCABULARY.index("eos")]


def train(weights, steps, lr=0.003):
    """Steps of Adam on all words. Prints the loss, and how many words are reversed without a mistake."""
    pairs = [pair(word) for word in WORDS]
    m1, m2 = ({name: np.zeros(array.shape) for name, array in weights.items()} for _ in range(2))
    for step in range(steps + 1):
        mean = {name: np.zeros(array.shape) for name, array in weights.items()}
        L, solved = 0.0, 0
        for word in pairs:
            values = forward(weights, *word)
            L += values["L"] / len(pairs)
            solved += bool((values["p"].argmax(axis=-1) == word[2]).all())
            for name, grad in backward(weights, values, *word).items():
                mean[name] += grad / len(pairs)
        if step % 10 == 0:
            print(f"step {step:2d}: loss {L:.4f}, {solved} of {len(pairs)} words right", flush=True)
        for name in weights:
            m1[name] = 0.9 * m1[name] + 0.1 * mean[name]
            m2[name] = 0.99 * m2[name] + 0.01 * mean[name] ** 2
            m1_hat, m2_hat = m1[name] / (1 - 0.9 ** (step + 1)), m2[name] / (1 - 0.99 ** (step + 1))
            weights[name] = weights[name] - lr * m1_hat / (np.sqrt(m2_hat) + 1e-9)
    return weights


if finished:
    train(dict(WEIGHTS), steps=50)

# %% [markdown]
# With a right backward you should see 332 words at the start and 340 of 340 at the end, and the loss at half of what it
# was. It may stand still for ten steps; if it hasn't fallen after twenty, look at the signs in `train`.
#
# No autograd was involved. You know where each of the 826 gradients comes from, because you derived each kind by hand.
# When you next write `loss.backward()`, you will know what happens in it. And when a model learns a little worse than
# it should, you know how to read a program backwards.
#
# **One more experiment.** Now plant the bug from the beginning: in `forward`, change `linear(at, "v", M)` to
# `linear(at, "k", M)`, and run everything again. The judge says WRONG in 25 of 43 arrays, and the first is cross.W_k.
# Your backward was derived for the right program, and the witness differentiates the program that runs. Autograd would
# have agreed with the witness.
#
# **Go on.** [Lesson 00](00_reverse.py) begins the course, which takes apart every piece you saw today.
# `minitransformer explore` shows all numbers of this model, forward and backward.
