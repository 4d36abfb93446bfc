# %% [markdown]
# # Lesson 08: Many heads, one matrix
#
# [![Its three kinds of attention](../plots/08_multi_head_map.png)](../plots/00_reverse_whole.png)
#
# **A token needs two things at once. How do several attentions fit into one, and what do they cost?**
#
# 12 min, with a pencil 35, going deeper 7 · runs in 15 s (fast: 12 s) · needs 01, 02, 04, 05, 06, 07 · difficulty 3 of
# 5 · paper: section 3.2.2
#
# ## One question is not enough
#
# Take the «t» in "stop", and suppose that it needs two letters: «s», the one before it, and «o», the one at the
# mirrored position, as far from the end as «t» is from the beginning. Attention gives it one row of weights, which sum
# to 1, so it can give one half to each of them, and receives
#
#     1/2 value of s + 1/2 value of o
#
# Now swap the two letters in the word, and the «t» receives 1/2 value of «o» + 1/2 value of «s», which is the same. It
# knows both letters, but can't tell which was which.
#
# The paper's answer is to run H attentions side by side, called heads, each with its own queries, keys and values.
# Our model has two, of which we looked at head 0 in lessons 05 and 06. These are both, in cross-attention:
#
# ![The weights of both heads](../plots/08_multi_head_heads.png)
#
# Head 0 reverses the word. And head 1? In the first three rows it looks mostly at the last two letters, and in the
# others it can't decide; on average over all words of four letters, its first four rows spend 0.78 of their weight on
# the last two letters. We have no word for what that is good for. But switch head 1 off, and of the 340 words of one to
# four letters the model reverses 139 instead of 332; without head 0 it reverses 4.

# %% Imports
import itertools
import time
from functools import partial

from support.example_numbers import numbers
from support.lab import BLUE, ROWS, SOURCE, begin, error, plt, running_example
from support.pictures import canvas, grid, grids, mix, number

import numpy as np

from minitransformer.example import load_example
from minitransformer.functional import scaled_dot_product_attention, scaled_dot_product_attention_backward
from minitransformer.gradcheck import complex_step
from minitransformer.layers import SelfAttention

lesson = begin("08_multi_head")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) You delete a column of W in y = x W. What changes in y?
# 2. (04) A matrix is used in two places of a model. What is its gradient?
# 3. (07) The leak test passes. What may still be wrong with a model's mask?
#
# (The answers are at the end.)

# %% [markdown]
# ## Small products side by side
#
# Each head has its own small matrices. The ones for our two heads' queries give
#
#     q_0 = x W_q0        q_1 = x W_q1                  W_q0 and W_q1 (C, D), with D = C / H
#
# Put the two side by side. Since each column of a product needs only that column of the right matrix,
#
#     W_q = [W_q0 | W_q1]                               (C, C)
#     x W_q = [x W_q0 | x W_q1] = [q_0 | q_1]           (T, C)
#
# So one product computes the queries of all heads; for row p→o, with the bias, it gives
#
#     (0.714, 0.028, −1.451, −0.984, 0.327, −0.563)
#
# The first three are the query of head 0, and the others are the query of head 1.
#
# **Your line.** Now the heads need their own axis, before the last two, because `@` multiplies those. Bring the
# queries of all rows into the shape (H, T, D).

# %%
q_flat = example["cross.x"] @ example["cross.W_q"] + example["cross.b_q"]  # (T, C) = (5, 6)
q_heads = ...  # your line: (H, T, D) = (2, 5, 3)
lesson.judge("q_heads", q_heads)

# %% [markdown]
# That takes two steps: a reshape that cuts each row into H pieces, and a transpose that brings the pieces of one head
# together:
#
#     (T, C)  reshape →  (T, H, D)  transpose →  (H, T, D)
#
# In code there is one more axis, B, for the batch.


# %%
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H).transpose(0, 2, 1, 3)  # (B, H, T, D)


def merge_heads(x):
    B, H, T, D = x.shape
    return x.transpose(0, 2, 1, 3).reshape(B, T, H * D)


# %% [markdown]
# ## The reshape that mixes the letters
#
# Why not reshape the keys to (H, S, D) at once? A reshape doesn't move a single number: it reads the same numbers in
# the same order, and only starts new rows in different places. The keys of "stop" begin with the six numbers of «s»,
# then come the six of «t». Head 0 gets the first half of all the numbers, which is all of «s» and «t»:
#
# ![The right split, and the reshape without a transpose](../plots/08_multi_head.png)
#
# **Each head needs a part of the features of all letters, never all features of a part of the letters.** This head 0
# will never see «o» and «p», and it takes the two halves of «s» for two letters.
#
# [In the explorer: change the entry of W_k in row 0 and column 4. Which keys move if the split is right?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.k[1,2,1]&turn=cross.W_k[0,4])
#
# ## W_o adds what the heads found
#
# Each head returns its answers, o_0 and o_1 (T, D), which the paper puts side by side again and multiplies by W_o. With
# W_o0 for the first D rows of W_o, and W_o1 for the rest,
#
#     y = [o_0 | o_1] W_o = o_0 W_o0 + o_1 W_o1         (T, C)
#
# "Concatenate, then multiply" means that each head writes C numbers, and the results are added (and then the bias b_o).
# To switch head 1 off, we set W_o1 to 0.
#
# Attention itself is the library's (lessons 06 and 07). (`split_heads` and `merge_heads` are arguments, because
# we will try wrong ones.)


# %%
def forward(x, M, layer, H, allowed=None, split_heads=split_heads, merge_heads=merge_heads):
    """x (B, T, C), M (B, S, C), a layer {"W_q": ..., "b_q": ..., ...} -> y (B, T, C), and what backward needs."""
    q = split_heads(x @ layer["W_q"] + layer["b_q"], H)
    k = split_heads(M @ layer["W_k"] + layer["b_k"], H)
    v = split_heads(M @ layer["W_v"] + layer["b_v"], H)
    o, inside = scaled_dot_product_attention(q, k, v, allowed)
    merged = merge_heads(o)
    return merged @ layer["W_o"] + layer["b_o"], (merged, inside)


# %% [markdown]
# ## What do eight heads cost?
#
# **Your guess.** By what factor does the number of parameters of a layer with C = 512 grow from 1 head to 8?

# %%
guess_factor = ...  # parameters with 8 heads over those with 1
parameters = {heads: SelfAttention(512, heads, rng=None).num_parameters() for heads in (1, 8)}
lesson.compare("parameters with 8 heads over those with 1", guess_factor, parameters[8] / parameters[1])

# %% [markdown]
# W_q, W_k, W_v and W_o are (C, C) each, with a bias (C) each. That makes 4 C² + 4 C parameters, and there is no H in
# it: with C = 512 it is 1,050,624, for 1 head and for 8. Now count multiplications, for T queries and S keys:
#
#     W_q and W_o       T C² each                       W_k and W_v       S C² each
#     s of all heads    H · T S D = T S C               o of all heads    H · T S D = T S C
#
# Again there is no H, because more heads means thinner heads. Only the number of attention weights grows: there are H T
# S of them to compute and remember.
#
# > **2019.** Voita, Talbot, Moiseev, Sennrich and Titov cut 38 of the 48 heads off a translator's encoder, and lost no
# > more than 0.15 BLEU. The ones that stayed had jobs with a name: looking at the neighbor, at the verb's object, or at
# > rare words.
#
# ## Backward: every number goes home
#
# Split and merge only move numbers around, so each gradient goes back to the place where its number came from. The
# backward pass of merge is split, and the backward pass of split is merge. In between, each head does what lesson 06
# says.
#
#     do = split(dy W_oᵀ)
#     dx = merge(dq) W_qᵀ
#     dM = merge(dk) W_kᵀ + merge(dv) W_vᵀ              M is used twice, so two gradients add (lesson 04)


# %%
def flat(x):
    return x.reshape(-1, x.shape[-1])  # all tokens of all sequences, one below the other


def backward(dy, x, M, layer, H, cache, split_heads=split_heads, merge_heads=merge_heads):
    """dy (B, T, C) -> the gradients of x, M and all parameters, by name."""
    merged, inside = cache
    do = split_heads(dy @ layer["W_o"].T, H)
    dq, dk, dv, _ = scaled_dot_product_attention_backward(do, inside)
    dq, dk, dv = merge_heads(dq), merge_heads(dk), merge_heads(dv)
    gradients = {"x": dq @ layer["W_q"].T, "M": dk @ layer["W_k"].T + dv @ layer["W_v"].T}
    for name, given, gradient in (("q", x, dq), ("k", M, dk), ("v", M, dv), ("o", merged, dy)):
        gradients[f"W_{name}"] = flat(given).T @ flat(gradient)  # lesson 02
        gradients[f"b_{name}"] = flat(gradient).sum(axis=0)
    return gradients


# %% [markdown]
# We compare it with a loop over small matrices, with the complex step, and with the library.


# %%
def by_the_loop(x, M, layer, H):
    """One head after another, each with its own columns of W_q, W_k and W_v, and its own rows of W_o."""
    y, D = layer["b_o"], x.shape[-1] // H
    for head in range(H):
        own = slice(head * D, (head + 1) * D)
        q = x @ layer["W_q"][:, own] + layer["b_q"][own]
        k = M @ layer["W_k"][:, own] + layer["b_k"][own]
        v = M @ layer["W_v"][:, own] + layer["b_v"][own]
        y = y + scaled_dot_product_attention(q, k, v)[0] @ layer["W_o"][own]
    return y


rng = np.random.default_rng(8)
B, T, S, H, C = 2, 3, 4, 3, 6
NAMES = ["W_q", "b_q", "W_k", "b_k", "W_v", "b_v", "W_o", "b_o"]
layer = {name: rng.standard_normal((C, C) if name[0] == "W" else C) for name in NAMES}
x, M, dy = (rng.standard_normal((B, length, C)) for length in (T, S, T))
inputs = {"x": x, "M": M, **layer}


def loss(name, value):
    """The loss with `value` instead of the input called `name`."""
    given = {**inputs, name: value}
    return (dy * forward(given["x"], given["M"], given, H)[0]).sum()


y, cache = forward(x, M, layer, H)
gradients = backward(dy, x, M, layer, H, cache)
wrong = [np.abs(gradients[name] - complex_step(partial(loss, name), inputs[name])).max() for name in inputs]
lesson.check("all heads at once, against a loop", error(y, by_the_loop(x, M, layer, H)), 1e-13)
lesson.check("all ten gradients, against the complex step", max(wrong), 1e-12)

cross = {name: example[f"cross.{name}"] for name in NAMES}
x_cross, M_cross = example["cross.x"][None], example["M"][None]
library = load_example().model.decoder.layers[0].cross_attention.sublayer  # with the same parameters
y_cross, _ = forward(x_cross, M_cross, cross, 2)
lesson.check("y of our model, against the library's layer", error(y_cross, library(x_cross, M_cross)), 1e-13)

# %% [markdown]
# ## Two heads by hand
#
# For the «t» that needs two letters, let's set the matrices of two heads by hand. A token of "stop" gets C = 8
# features, four for its letter and four for its position, each time a single 1 and three zeros. Each head has its own
# D = 4:
#
#     keys of both heads      the position of the token
#     values of both heads    the letter of the token
#     queries of head 0       20 at the position before mine
#     queries of head 1       20 at the mirrored position
#
# Where the positions match, the score is 20/√D = 10, and elsewhere it is 0, so the match gets the weight exp(10) /
# (exp(10) + 3) = 0.99986. W_o is the identity: head 0 writes the first four features, head 1 the last four.

# %%
word = np.hstack([np.eye(4), np.eye(4)])[None]  # (1, 4, 8): row t has letter t and position t
nothing, one = np.zeros((4, 4)), np.eye(4)
before, mirror = np.eye(4, k=-1), np.eye(4)[::-1]  # row t has its 1 at t − 1, and at 3 − t
by_hand = {
    "W_q": np.block([[nothing, nothing], [20 * before, 20 * mirror]]),  # rows: letter, position; columns: the heads
    "W_k": np.block([[nothing, nothing], [one, one]]),
    "W_v": np.block([[one, one], [nothing, nothing]]),
    "W_o": np.eye(8),
    **dict.fromkeys(["b_q", "b_k", "b_v", "b_o"], 0.0),
}
y_hand, (_, inside) = forward(word, word, by_hand, 2)
for head, part in enumerate(np.split(y_hand[0], 2, axis=-1)):
    letters = [SOURCE[row.argmax()] if row.max() > 0.5 else "?" for row in part]
    print(f"head {head} reads", "".join(letters))

# %% [markdown]
# Head 0 reads "?sto", and head 1 "pots". (The "?" is position 0. There is nobody before it, so its query is 0, and it
# gets one quarter of each letter: a softmax can't say "nothing".) Now the «t» holds «s» and «o» in different features.
#
# ## Which test notices?
#
# How would you find such bare reshapes in your own code? Here are three tests that you can try:
#
# * gradient: the backward pass is compared with the complex step.
# * leak: with a causal mask, we change the last token, and no earlier output may change.
# * permutation: we shuffle the tokens, without a mask. The outputs must be the same, in the new order, because each
#   query adds up the same terms.
#
# **Your guess.** How many of the three notice the bare reshapes?

# %%
guess_tests = ...  # of the three


# %%
def bare_split(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def bare_merge(x):
    B, H, T, D = x.shape
    return x.reshape(B, T, H * D)


encoder = {name: example[f"encoder.self.{name}"] for name in NAMES}
tokens, upstream = rng.standard_normal((2, 1, 8, 6))
changed = tokens.copy()
changed[0, -1] += 1
causal, order = np.tril(np.ones((8, 8), dtype=bool)), rng.permutation(8)


def three_tests(split_heads, merge_heads):
    """Error of dx, change of earlier outputs with the last token, change of the outputs under a permutation."""

    def run(x, allowed=None):
        return forward(x, x, encoder, 2, allowed, split_heads, merge_heads)

    y, cache = run(tokens)
    gradients = backward(upstream, tokens, tokens, encoder, 2, cache, split_heads, merge_heads)
    true = complex_step(lambda x: (upstream * run(x)[0]).sum(), tokens)
    leak = np.abs(run(changed, causal)[0] - run(tokens, causal)[0])[:, :-1].max()
    moved = error(run(tokens[:, order])[0], y[:, order])
    dx = gradients["x"] + gradients["M"]  # in self-attention, M is x too
    return error(dx, true), leak, moved


found = {"right": three_tests(split_heads, merge_heads), "bare": three_tests(bare_split, bare_merge)}
print("        gradient       leak  permutation")
for name, values in found.items():
    print(f"{name:5}", *(f"{value:10.1e}" for value in values))
lesson.compare("tests that notice the bare reshapes", guess_tests, sum(value > 1e-9 for value in found["bare"]))


# %% [markdown]
# ![Two heads by hand, and which letter reaches which output](../plots/08_multi_head_tests.png)
#
# Above are the weights of the two heads made by hand; below is the self-attention of our model's encoder: how far the
# output of each row moves when we move the letter of each column. You should see a line below the diagonal, a line that
# runs the other way, a full square, and two squares of 2 × 2 with exact zeros elsewhere. If the last picture is full,
# your wrong split still has its transpose; if the third has zeros, your right split has none.
#
# ## What the leak test cannot see
#
# With bare reshapes, the gradient test passes, because the backward pass is right, for the wrong function. The leak
# test passes too, although we had expected a layer that mixes up letters to leak.
#
# To see why it doesn't, go down the rows of a head: the pieces never go back to an earlier letter. The causal mask
# lets a row see itself and the rows above it, and those hold pieces of the same letter or of earlier ones, so nothing
# comes from the future. What is lost is the past: "op" never hears about "st". No leak test asks about that, and only
# the permutation test notices.
#
# If only one of the two is a bare reshape, pieces land on other letters, and the leak test notices. But a colleague who
# forgets one transpose may well forget both, so keep all three tests: each is blind to something that another one
# catches.
#
# **In papers:** this is *multi-head attention* (MHA), one product for all of q, k and v a *fused* or *packed QKV
# projection*, D the *head dimension*, and cutting heads off *head pruning* (Michel et al. 2019).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 09.
#
# ### Switch a head off
#
# This is how we counted the words in the first section.


# %%
def words_right(head_off=None):
    """How many of the 340 words of one to four letters our model reverses, if one of its heads writes only zeros."""
    right = 0
    for length in (1, 2, 3, 4):
        for letters in itertools.product("opst", repeat=length):
            word = load_example("".join(letters))
            if head_off is not None:
                W_o = word.model.decoder.layers[0].cross_attention.sublayer.output.W.data
                W_o[3 * head_off : 3 * head_off + 3] = 0
            right += (numbers(word)["output.p"].argmax(axis=-1) == word.target_out[0]).all()
    return int(right)


right = {"both heads": words_right(), "head 0": words_right(head_off=1), "head 1": words_right(head_off=0)}
print("words that are reversed right, of 340, with", right)

# %% [markdown]
# "Each head learns one relation that can be named" is true of head 0, at best. Head 1 does our row p→o no good: without
# it, the «o» gets 0.95 instead of 0.70. And yet it makes the difference between 139 and 332 words. One word tells you
# little about what a head is for.
#
# ### Where a bare reshape puts each number
#
# Think of the rows of all heads as one list. Row i of the list has the numbers iD to iD + D − 1 of the array, and the
# token in place t has the numbers tC to tC + C − 1, with C = H D. So row i is piece i mod H of token ⌊i/H⌋, which never
# falls as i grows. Head 0 has the rows 0 to T − 1, so the tokens 0 to about T/H.
#
# ### The clock and the memory
#
# "Many heads cost nothing" is true of parameters and multiplications. Let's look at the clock, in float32, with a
# batch of 4, T = 128 and C = 256. Each time is the best of several.

# %%
sizes = {"x": (4, 128, 256), **{name: (256, 256) if name[0] == "W" else 256 for name in NAMES}}
big = {name: rng.standard_normal(size).astype("float32") / 16 for name, size in sizes.items()}
seconds = dict.fromkeys((1, 2, 4, 8, 16, 32), np.inf)
for _ in range(lesson.pick(full=5, fast=2)):
    for heads in seconds:  # in turns, so that a slow moment meets all
        start = time.perf_counter()
        y_big, cache = forward(big["x"], big["x"], big, heads)
        backward(y_big, big["x"], big["x"], big, heads, cache)
        seconds[heads] = min(seconds[heads], time.perf_counter() - start)
for heads, best in seconds.items():
    print(f"{heads:3} heads: {4 * heads * 128 * 128:10,} weights to compute and remember, {1e3 * best:6.1f} ms")

# %% [markdown]
# The times should hardly change for a few heads, and then grow. There are H times as many exponentials, and a processor
# is less efficient with thin matrices than with thick ones.
#
# ### A copied line
#
# Three lines look alike: q, k, v. A colleague copies one, forgets to edit it, and makes the values with W_k. The layer
# runs, and its gradients are right for what it computes, but W_v never changes, because no gradient reaches it. So ask
# every new model, after one backward pass, whether each parameter has a gradient that isn't 0. The honest exception is
# b_k (lesson 06). In the layer with the copied line even b_k has a gradient, because there it is also the bias of the
# values.
#
# ## Exercise
#
# 1. Keyboard, 10 minutes. Give "stop" a third head, which reads the next letter: "top?".
# 2. Pencil, 10 minutes. Head 0 adds p x W_v0 W_o0 to the output, without biases. How large can the rank of W_v0 W_o0
#    be? What does that mean for one head of the paper's base model, with C = 512 and H = 8?
#
# Exercises with a checker: `minitransformer start 08`.
#
# ## Questions
#
# 1. Why don't the shapes ever tell you that the bare reshape is wrong?
# 2. How many parameters does a layer with C = 512 have for H = 16? And for H = 16 if D stays at 64?
# 3. Why is the backward pass of merge a split, and not one of the many other maps that restore the shape?
# 4. The W_v of your model has a gradient of exactly 0, and the gradient check passes. What do you look for?
# 5. *Somewhere else.* A picture has the shape (height, width, 3), with three colors for each pixel. A colleague needs
#    (3, height, width), and writes `picture.reshape(3, height, width)`. What is in the first of the three planes? What
#    should the line be?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Only that column of y is gone. Each column of a product needs its own column of W, and no other.
# 2. The sum of the gradients of both places, because a change of the matrix acts in both.
# 3. It may hide too much. The test looks for the future in what a row sees, and doesn't ask for the past.
#
# ### To the questions
#
# 1. A reshape needs the same number of entries, H T D = T C, and nothing else. All the lines after it get what they
#    expect.
# 2. 4 · 512² + 4 · 512 = 1,050,624, as for any H. With D = 64 and H = 16 it is 2,100,736: W_q, W_k and W_v are (512,
#    1024) with biases of 1024, and W_o is (1024, 512) with a bias of 512.
# 3. Merge is a permutation of entries. The backward pass of a linear map is its transpose, and the transpose of a
#    permutation is its inverse.
# 4. A line that should use W_v and doesn't. The gradient check can't see it: 0 is the right gradient of a parameter
#    that nobody uses.
# 5. The upper third of the picture, in all three colors, one after another. A plane must have a part of the colors of
#    all pixels, and not all colors of a part of the pixels: `picture.transpose(2, 0, 1)`.
#
# ### To the exercise
#
# First: D stays 4, W_q, W_k and W_v get 12 columns, and the new queries are 20 at the position after mine,
# `np.eye(4, k=1)`. W_o is the identity of 12. Second: at most D, because the product passes through D features. In the
# base model a head reads at most 64 of the 512 dimensions, and writes into at most 64. It takes all the heads to move
# everything.


# %%
# the pictures of this lesson
def influence(split_heads, merge_heads):
    """How far output t moves with letter j of "stop", along a random direction (S, S)."""
    x, direction = example["encoder.self.x"][None], np.random.default_rng(80).standard_normal(6)
    columns = []
    for j in range(4):
        moved = x.astype(complex)
        moved[0, j] += 1e-30j * direction
        columns.append(
            np.abs(forward(moved, moved, encoder, 2, None, split_heads, merge_heads)[0][0].imag).max(axis=-1) / 1e-30
        )
    return np.stack(columns, axis=-1)


figure, axes = plt.subplots(2, 2, figsize=(5.6, 4.6))
reach, islands = influence(split_heads, merge_heads), influence(bare_split, bare_merge)
by_title = {
    "head 0, by hand: the letter before": inside.weights[0, 0],
    "head 1, by hand: the mirror image": inside.weights[0, 1],
    "influence: right split": reach,
    "influence: bare reshape": islands,
}
for axis, (title, values) in zip(axes.flat, by_title.items(), strict=True):
    grid(axis, values, rows=SOURCE, columns=SOURCE, title=title)
lesson.save(figure, "tests")

weights = {"head 0 (T, S)": example["cross.p"][0], "head 1 (T, S)": example["cross.p"][1]}
lesson.save(grids(weights, labels={"T": ROWS, "S": SOURCE}), "heads")

keys = np.concatenate(list(example["cross.k"]), axis=-1)  # (S, C), the two heads side by side
pieces = keys.reshape(8, 3)  # two for each letter
figure, axes = canvas(8.0, 3.5)


def draw_pieces(chosen, x, y, columns, title):
    """Pieces of keys in rows, the first at (x, y); strong blue are features 0 to 2, pale blue features 3 to 5."""
    axes.text(x + 0.66 * columns, y + 0.4, title, ha="center", weight="bold", color=BLUE, size=9)
    for place, piece in enumerate(chosen):
        left, low = x + 1.32 * (place % columns), y - 0.3 * (place // columns)
        fill = mix(BLUE, 0.15 if piece % 2 else 0.45)
        axes.add_patch(plt.Rectangle((left, low), 1.32, 0.3, facecolor=fill, edgecolor="white", linewidth=2))
        axes.text(
            left + 0.66, low + 0.15, "  ".join(number(x) for x in pieces[piece]), ha="center", va="center", size=8
        )
        if place % columns == 0:
            axes.text(left - 0.08, low + 0.15, SOURCE[piece // 2], ha="right", va="center", size=9)


draw_pieces(range(8), 0.4, 2.0, 2, "keys (S, C) = 4 × 6")
draw_pieces((0, 2, 4, 6), 4.5, 2.75, 1, "right split, head 0")
draw_pieces((1, 3, 5, 7), 6.4, 2.75, 1, "right split, head 1")
draw_pieces((0, 1, 2, 3), 4.5, 0.95, 1, "bare reshape, head 0")
draw_pieces((4, 5, 6, 7), 6.4, 0.95, 1, "bare reshape, head 1")
for height in (2.3, 0.7):
    axes.annotate("", (4.1, height), (3.2, 1.7), arrowprops={"arrowstyle": "-|>", "color": BLUE})
axes.text(1.72, 0.85, "strong blue: features 0 to 2\npale blue: features 3 to 5", ha="center", va="top", size=9)
lesson.save(figure)
lesson.finish(globals())
