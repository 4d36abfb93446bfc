# %% [markdown]
# # Lesson 06: Attention backward, or "better than the average I attend to"
#
# [![Cross-attention and its gradients](../plots/06_attention_backward_map.png)](../plots/00_reverse_whole.png)
#
# **The model hesitates. How does the gradient know where the model should have looked?**
#
# 10 min, with a pencil 35, going deeper 11 · runs in 5 s (fast: 5 s) · needs 01, 02, 03, 05 · difficulty 3 of 5 ·
# paper: section 3.2.1, equation 1
#
# ## Who is to blame?
#
# Our model has read «p» and must write «o», to which it gives a probability of 0.70. The loss wants more.
#
# In lesson 05 we watched row p→o look at the source: 56 % at «o», but also 22 % at «t» and 17 % at «p». You know that
# it should have looked only at «o», but the gradient can't read. All the layers above send back is the gradient of what
# the row got from head 0, three numbers and not a single letter:
#
#     do = (0.1894, 0.1222, 0.0180)
#
# From these, the backward pass has to find out who is to blame. If the row looked in the wrong place, its query should
# change, or the keys; if it found the wrong thing in the right place, the values should.

# %% Imports
from functools import partial

from support.graph import Graph
from support.lab import BLUE, GREY, ORANGE, ROWS, SOURCE, begin, error, plt, running_example, show
from support.pictures import canvas, grids, mix, number

import numpy as np

from minitransformer.functional import scaled_dot_product_attention, scaled_dot_product_attention_backward
from minitransformer.gradcheck import complex_step

lesson = begin("06_attention_backward")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) In y = x W, an entry of x reaches all outputs of its row. How does its gradient follow from theirs?
# 2. (03) Why is the derivative of a softmax a whole matrix, and not one number for each score?
# 3. (05) A colleague adds the same vector to all keys. Which attention weights change?
#
# (The answers are at the end.)

# %% [markdown]
# ## The price of a look
#
# The last step of the forward pass was o = p v, entry by entry
#
#     o_td = Σ_j p_tj v_jd
#
# By the chain rule, the gradient of a number is a sum over everything that depends on it. The weight p_tj enters the D
# entries of its own row o_t, and its factor in o_td is v_jd, so its gradient is
#
#     dp_tj = Σ_d do_td v_jd = do_t·v_j               dp = do vᵀ       (T, S)
#
# We call dp_tj the *price* of letter j for row t: how fast the loss grows if the row gives the letter more weight. A
# low price is good, and a negative one lowers the loss.
#
# The entry v_jd of a value enters feature d of *every* row t, with the factor p_tj:
#
#     dv_jd = Σ_t p_tj do_td                          dv = pᵀ do       (S, D)
#
# (Both come from lesson 02, with input p and matrix v.)
#
# In row p→o, the letter «o» is key 2, and it handed over the value v_2 = (−0.8163, −1.4823, −1.0204), so its price is
#
#     do·v_2 = 0.1894 · (−0.8163) + 0.1222 · (−1.4823) + 0.0180 · (−1.0204) = −0.3541
#
# This is how three numbers can judge four letters. do is the direction in which the loss grows, and the dot product
# asks each value whether it points that way. The value of «o» points the other way, so more weight on «o» lowers the
# loss. A value hears from every row that looked at it, and the more a row looked, the louder: from row p→o, the value
# of «o» hears 0.564 · do = (0.107, 0.069, 0.010).

# %% [markdown]
# ## Better than the average I attend to
#
# Row p→o has these weights and prices:
#
#     letter       s        t        o        p
#     weight    0.044    0.218    0.564    0.173
#     price    −0.152    0.205   −0.354    0.621
#
# A price by itself isn't a reason to move, because the weights of a row sum to 1, and more for one letter means less
# for the others. Lesson 03 has the derivative of the softmax: ∂p_i/∂s_j = p_i (1[i = j] − p_j).
#
# **Your line.** Write the gradient of the row's four scores from its weights p[1] and its prices dp[1]. Which scores
# should rise?

# %%
q, k, v, do, p = (example[f"cross.{name}"][0] for name in ("q", "k", "v", "do", "p"))
dp = do @ v.T
ds_row = ...  # your line: from p[1] and dp[1], each (S,)
lesson.judge("ds_row", ds_row)

# %% [markdown]
# A score acts only on the weights of its own row, so we leave out the index t:
#
#     ds_j = Σ_i dp_i ∂p_i/∂s_j                       s_j reaches all weights
#          = Σ_i dp_i p_i (1[i = j] − p_j)
#          = p_j dp_j − p_j Σ_i p_i dp_i              1[i = j] keeps the term i = j
#          = p_j (dp_j − p·dp)
#
# The number p·dp = Σ_i p_i dp_i is the average price, in which each letter counts as much as the row looks at it. It is
# what the row pays. Ours pays
#
#     p·dp = 0.044 · (−0.152) + 0.218 · 0.205 + 0.564 · (−0.354) + 0.173 · 0.621 = −0.054
#
# and its scores get these gradients:
#
#     letter            s        t        o        p
#     dp_j − p·dp  −0.098    0.259   −0.300    0.675
#     ds_j         −0.004    0.056   −0.169    0.117
#
# Read the formula aloud: *how much I look at it, times how much more it costs than the average I attend to*. Descent on
# the scores themselves raises those whose ds is negative, «o» and a little «s», and lowers «t» and «p».

# %% [markdown]
# > **1992.** Williams trained networks that choose at random: a choice becomes more likely if its reward was better
# > than a baseline, such as the average. In 2014 Mnih, Heess, Graves and Kavukcuoglu used this to teach a network where
# > to look in a picture. Bahdanau, Cho and Bengio looked everywhere at once, with weights, and the chain rule did the
# > rest, with −dp_j as the reward and −p·dp as the baseline.
#
# [In the explorer: set the score of «p», which costs most, to 8. The row is sure now, and wrong. What is ds of «o»?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.ds[0,1,2]&turn=cross.s[0,1,3])
#
# Three facts follow:
#
# * *A row of ds sums to 0*: Σ_j p_j dp_j − (Σ_j p_j) p·dp = p·dp − p·dp. What one score gains, the others lose.
# * *A letter with the weight 0 gets ds_j = 0*, because the first factor is 0.
# * *A letter with the weight 1 gets ds_j = 0*, because it *is* the average, and the second factor is 0. Right or wrong,
#   a row that is sure teaches only the values it looks at.
#
# **Descent raises the score of each letter that is better than the average I attend to, in proportion to how much I
# look at it, and a row that is sure no longer moves.**

# %% [markdown]
# ## Query and key turn towards each other
#
# The first step forward was s_tj = Σ_d q_td k_jd / √D. The entry q_td enters the scores of its own row, with all keys,
# and k_jd enters the scores of its own column, with all queries:
#
#     dq_td = Σ_j ds_tj k_jd / √D                     dq = ds k / √D       (T, D)
#     dk_jd = Σ_t ds_tj q_td / √D                     dk = dsᵀ q / √D      (S, D)
#
# Descent moves the query of row p→o along −Σ_j ds_j k_j. The key of «o» pulls with the factor 0.169, while the keys of
# «p» and «t» push with 0.117 and 0.056, and «s» hardly counts. In return the query pulls at the key of «o», also with
# 0.169, so both turn:
#
# ![A step of descent turns a query and a key towards each other](../plots/06_attention_backward_turn.png)
#
# With a learning rate of 2, the angle between the two falls from 67° to 48°, and their score rises from 1.84 to 3.77.
# But one query serves four scores, and its step also raises the score of «p» (question 1).
#
# The gradients of the keys sum to Σ_j dk_j = Σ_t (Σ_j ds_tj) q_t / √D = 0, since a vector added to all keys changes no
# weight. The bias b_k of lesson 05 is such a vector, and this is its gradient, so it never learns.
#
# ![Row p→o, forward and backward](../plots/06_attention_backward.png)
#
# Here is row p→o, with what it sends to the key and value of «o».

# %% [markdown]
# ## Five lines, and a check
#
# The whole backward pass of attention is five lines. They also handle heads and batches, since `swapaxes` transposes
# the last two axes.


# %%
def softmax(s):
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))  # .real for the complex step
    return p / p.sum(axis=-1, keepdims=True)


def attention(q, k, v):
    s = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    p = softmax(s)
    return p @ v, s, p


def attention_backward(do, q, k, v, p):
    dv = np.swapaxes(p, -1, -2) @ do
    dp = do @ np.swapaxes(v, -1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dq = ds @ k / np.sqrt(q.shape[-1])
    dk = np.swapaxes(ds, -1, -2) @ q / np.sqrt(q.shape[-1])
    return dv, dp, ds, dq, dk


o, s, p = attention(q, k, v)
dv, dp, ds, dq, dk = attention_backward(do, q, k, v, p)
show("prices dp (T, S)", dp, ROWS, SOURCE)
show("gradient of the scores ds (T, S)", ds, ROWS, SOURCE)
lesson.check("rows of ds sum to 0", np.abs(ds.sum(axis=-1)).max(), 1e-15)
lesson.check("the gradients of the keys sum to 0", np.abs(dk.sum(axis=0)).max(), 1e-15)

# %% [markdown]
# ![Prices, and gradients of the scores, of all rows](../plots/06_attention_backward_numbers.png)
#
# Row p→o gets by far the largest gradients, while the last row, which gives eos a probability of 0.999, has little to
# learn.
#
# Are the five lines right? We try them on random numbers, with all lengths different. The loss is the sum of do ∘ o
# for a random do, which is its gradient with respect to o.

# %%
rng = np.random.default_rng(6)
shapes = {"q": (4, 5), "k": (6, 5), "v": (6, 7)}  # T = 4, S = 6, D = 5; the values may have a width of their own
inputs = {name: rng.standard_normal((2, 3, *shape)) for name, shape in shapes.items()}  # 2 sequences, 3 heads
upstream = rng.standard_normal((2, 3, 4, 7))


def loss(name, x):
    """The loss with x instead of the input called `name`."""
    return (upstream * attention(**{**inputs, name: x})[0]).sum()


found_v, _, _, found_q, found_k = attention_backward(upstream, **inputs, p=attention(**inputs)[2])
_, cache = scaled_dot_product_attention(**inputs)
library_q, library_k, library_v, _ = scaled_dot_product_attention_backward(upstream, cache)
for name, found in (("q", found_q), ("k", found_k), ("v", found_v)):
    true = complex_step(partial(loss, name), inputs[name])
    lesson.check(f"d{name}, against the complex step", error(found, true), 1e-14)
worst = max(error(found_q, library_q), error(found_k, library_k), error(found_v, library_v))
lesson.check("all three, against the library's", worst, 1e-13)

# %% [markdown]
# ## Let descent run
#
# Take row p→o, keep its prices fixed, and let descent move the scores by −ds. Then do the same from a worse start,
# where «p» has a score of 2, 4, 6 or 8, and the others 0.
#
# **Your guess.** From a lead of 2 it takes 12 steps until «o» has more than half. How many does it take from a lead of
# 8?

# %%
guess_steps = ...  # until «o» has more than half, from a lead of 8


# %%
def descend(s, dp, steps):
    """The row's weights before each step (steps, S), while its prices stay as they are."""
    path = []
    for _ in range(steps):
        p = softmax(s)
        path.append(p)
        s = s - p * (dp - p @ dp)
    return np.array(path)


prices = dp[1]
paid = descend(s[1], prices, 13) @ prices  # the average price before each step
wrong = {lead: descend(np.array([0.0, 0.0, 0.0, lead]), prices, 3000) for lead in (2, 4, 6, 8)}
# argmax of booleans: the place of the first True
steps = {lead: int((path[:, 2] > 0.5).argmax()) for lead, path in wrong.items()}
print("average price before each step:", *(f"{price:.3f}" for price in paid))
print("steps until «o» has more than half of the weight:", steps)
lesson.compare("steps from a lead of 8", guess_steps, steps[8])

# %% [markdown]
# ![Descent on the scores of one row](../plots/06_attention_backward_descent.png)
#
# On the left the average price falls from −0.054 towards −0.354, the price of «o», and crosses the line of «s». If
# yours rises, it moves along the gradient instead of against it. On the right, the larger the lead, the longer a curve
# waits before it rises; if all four rise at once, the factor p_j is missing.
#
# ## The same letter, first better and then worse
#
# Look at «s», whose price is −0.152 all the time. At first the row pays −0.054, so «s» is better than the average, and
# its score rises. After three steps the row pays −0.168, and now the same «s» is *worse*, so its score falls from then
# on. Nothing happened to «s»: the row found something better.
#
# And the rows that are sure and wrong? From leads of 2, 4, 6 and 8 it takes 12, 30, 148 and 1,010 steps until «o» has
# more than half of the weight. Each further 2 makes the weight of «o», a factor of its gradient, about e² = 7.39 times
# smaller, and in the end the wait grows by nearly as much. With fixed prices, a row learns quickly while it hesitates,
# and hardly at all once it is sure.
#
# **In papers:** p_j (dp_j − p·dp) is the *vector-Jacobian product* (VJP) of the softmax, p·dp − dp_j an *advantage* in
# reinforcement learning, and p·dp the D_i of FlashAttention (Dao et al. 2022).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 07. How to check your own gradients of attention, and of all other
# pieces, against PyTorch's is in docs/pytorch.md.
#
# ### The average without the weights
#
# The average p·dp needs a whole row of weights and prices. Or does it? Substitute dp_tj = do_t·v_j:
#
#     p·dp = Σ_j p_tj Σ_d do_td v_jd
#          = Σ_d do_td Σ_j p_tj v_jd                  the order of finite sums is free
#          = Σ_d do_td o_td = do_t·o_t                the inner sum is the forward pass
#
# The average price of what I look at is the price of what I got. It needs D numbers and no key, and it gives ds_tj =
# p_tj do_t·(v_j − o_t), each entry separately. The backward pass of FlashAttention (Dao et al. 2022) rests on this:
# forward keeps o and, for each row, what the softmax divided by, and backward computes the weights again, for one block
# of keys after another, so that the (T, S) arrays never exist as a whole.
#
# ### Three tests that need no formula
#
# If a gradient is wrong, these often tell you where. Write q·dq for the sum of all entries of q ∘ dq, over all rows,
# and likewise for the others.
#
# * Each row of ds sums to 0.
# * q·dq = k·dk. Multiply q by 1 + h and divide k by it: no score changes, so the loss doesn't either. To first order
#   in h it changes by h q·dq − h k·dk, so this is 0.
# * v·dv = o·do. Multiply v by 1 + h, and o grows by the same factor. Computed at v, the loss changes by h v·dv;
#   computed at o, by h o·do.

# %% [markdown]
# ### Mistakes and their signatures
#
# Here are the five lines as text, so that a mistake is one changed line. Each mistake runs on the shapes above, which
# are all different, and on square ones (T = S = D = 4). The table has the errors of dv, dq and dk, and how far the
# three tests fail, with a dot for less than 1e-12.

# %%
LINES = {
    "dv": "p.T @ do",
    "dp": "do @ v.T",
    "ds": "p * (dp - (p * dp).sum(axis=-1, keepdims=True))",
    "dq": "ds @ k / root",
    "dk": "ds.T @ q / root",
}
MISTAKES = {
    "softmax taken entry by entry": {"ds": "p * (1 - p) * dp"},
    "average forgotten": {"ds": "p * dp"},
    "average not weighted by p": {"ds": "p * (dp - dp.mean(axis=-1, keepdims=True))"},
    "average over the queries": {"ds": "p * (dp - (p * dp).sum(axis=0, keepdims=True))"},
    "scale forgotten": {"dq": "ds @ k", "dk": "ds.T @ q"},
    "scale twice in dk": {"dk": "ds.T @ (q / root) / root"},
    "dk by reshape": {"dk": "ds.reshape(len(k), len(q)) @ q / root"},
    "ds not transposed in dk": {"dk": "ds @ q / root"},
    "q and k swapped": {"dq": "ds @ q / root", "dk": "ds.T @ k / root"},
    "v not transposed in dp": {"dp": "do @ v"},
    "p not transposed in dv": {"dv": "p @ do"},
}


def run_lines(changes, q, k, v, do):
    """All arrays by name, with some of the five lines changed."""
    o, _, p = attention(q, k, v)
    known = {"np": np, "root": np.sqrt(q.shape[-1]), "q": q, "k": k, "v": v, "do": do, "o": o, "p": p}
    for name, line in {**LINES, **changes}.items():
        known[name] = eval(line, known)
    return known


def signature(changes, arrays):
    """Errors of dv, dq, dk, then what is left of the three tests; None if NumPy refuses the shapes."""
    right = run_lines({}, *arrays)
    try:
        wrong = run_lines(changes, *arrays)
    except ValueError:
        return None
    q_dq, k_dk, v_dv, o_do = ((wrong[name] * wrong[f"d{name}"]).sum() for name in "qkvo")
    rows = np.abs(wrong["ds"].sum(axis=-1)).max()
    return [error(wrong[name], right[name]) for name in ("dv", "dq", "dk")] + [rows, abs(q_dq - k_dk), abs(v_dv - o_do)]


signatures = {}
first_head = [values[0, 0] for values in (*inputs.values(), upstream)]
kinds = {"different": first_head, "square": rng.standard_normal((4, 4, 4))}
for kind, arrays in kinds.items():
    print(f"lengths {kind:24}    dv    dq    dk  rows  q·dq  v·dv")
    for name, changes in MISTAKES.items():
        signatures[kind, name] = values = signature(changes, arrays)
        if values is None:
            print(f"  {name:30} NumPy refuses")
        else:
            print(f"  {name:30}", *("    ." if x < 1e-12 else f"{x:5.2f}" for x in values))

# %% [markdown]
# * dv right, dq and dk wrong, rows of ds not 0: the mistake is in the softmax. All four mistakes in ds fail this test.
# * If a gradient is wrong by the same factor everywhere, a constant is missing. A forgotten scale makes dq and dk √D =
#   2.2361 times too large, for D = 5, and none of the three tests sees it, because both grow by the same factor.
# * "dk by reshape" is treacherous, because its shape is always right, and only dk is wrong. A reshape reads the same
#   numbers in rows of a different length, while a transpose swaps the axes.
# * NumPy refuses four of the eleven when the lengths differ, and none when all are 4. In self-attention S = T, always.
# * With square shapes, "v not transposed in dp" passes all three tests, because its ds is the right formula for wrong
#   prices. The tests are quick, but the proof is the complex step.
#
# ### How much gets through
#
# We often read that attention eliminates the vanishing gradient. It's true that any token is one step from any other,
# but two things still shrink the gradient. With equal weights, each of S values gets only 1/S of do, although all of
# them together get do, because the weights sum to 1. And the scores of a row that is sure get nothing. On paper no
# weight is ever exactly 1, but with two keys in float64, a lead of 37 is enough: 1 + exp(−37) is stored as 1. (The
# other weight is then 8.5e-17, and becomes exactly 0 much later, since exp(−750) is stored as 0.) In float32, a lead of
# 17 is enough.
#
# Equal weights aren't best for the scores, either: ‖J‖, in lesson 05 the size of the softmax's derivative, is 0.124
# for 64 equal weights, 0.5 for two, and 0 for a single one. The row that hesitates between two keys gets the most.

# %%
ones = np.ones((1, 3))
*_, p256 = attention(ones, np.ones((256, 3)), np.ones((256, 3)))
shares = attention_backward(ones, ones, np.ones((256, 3)), np.ones((256, 3)), p256)[0]  # dv, where do is 1
p40 = softmax(np.array([0.0, 0.0, 0.0, 40.0]))
deaf = np.abs(p40 * (prices - p40 @ prices)).max()
print(f"256 equal keys: each value gets {shares.min():.5f} to {shares.max():.5f} of do")
print(f"a lead of 40: the largest gradient of a score is {deaf:.1e}")

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. Show that √D dq_t = Σ_j p_tj (dp_tj − p·dp) (k_j − Σ_i p_ti k_i). What is the right side called
#    in statistics?
# 2. Keyboard, 20 minutes. Write the backward pass for two keys at a time, from do, q, k, v, o and the logarithm of each
#    row's denominator. No array may have the shape (T, S).
#
# Exercises with a checker: `minitransformer start 06`.
#
# ## Questions
#
# 1. A step along −dq raises not only the score of «o» in row p→o, but also, a little less, that of «p». How can that
#    be?
# 2. A row has two keys. Show that ds_0 = p_0 p_1 (dp_0 − dp_1) = −ds_1. For which p_0 is it largest?
# 3. A colleague adds one vector to all values, and do stays the same. Which of o, dp, p·dp, ds, dq, dk and dv change?
# 4. What must forward remember for backward? Must it keep s? And o?
# 5. Count the multiplications in the matrix products, forward and backward. What is the ratio? And if backward computes
#    the weights again?
# 6. *Somewhere else.* A mixture of experts returns y = Σ_i p_i f_i, where f_i is what expert i says, and p the softmax
#    of a gate's scores s. For one token p = (0.7, 0.2, 0.1), and the products dy·f_i are 1, −2 and 0. Which scores
#    should rise? What does an expert with p_i = 0 learn?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The gradient of each output, times the weight that led there, added up: dx_nc = Σ_j dy_nj W_cj, or dx = dy Wᵀ.
# 2. All weights share one denominator. If a score rises, its own weight grows and all others shrink.
# 3. None: all scores of a row t change by the same q_t·(that vector)/√D, and a softmax doesn't see what they all have
#    in common.
#
# ### To the questions
#
# 1. The keys of «o» and «p» point nearly the same way (the cosine is 0.88), so a query that rotates toward one also
#    rotates toward the other.
# 2. p·dp = p_0 dp_0 + p_1 dp_1 and 1 − p_0 = p_1, so dp_0 − p·dp = p_1 (dp_0 − dp_1). The row sums to 0, so ds_1 is the
#    negative of that. p_0 p_1 is largest, 1/4, for p_0 = 1/2.
# 3. o gains the vector. All dp of a row gain the same number, and so does p·dp, so ds, dq and dk stay the same. So does
#    dv.
# 4. q, k, v and p are enough. The five lines use neither s nor o.
# 5. Each product has T S D multiplications: 2 forward, 4 backward, so twice as many. If the weights are computed again,
#    it is 2.5 times as many.
# 6. The average price is 0.7 · 1 − 0.2 · 2 = 0.3, and ds_i = p_i (dy·f_i − 0.3), which is (0.49, −0.46, −0.03). So the
#    second score should rise, and the third a little. With p_i = 0 the score gets no gradient, and the expert gets none
#    either, as df_i = p_i dy: nobody calls on it, so it never learns.
#
# ### To the exercise
#
# First: the rows of ds sum to 0, so you may subtract one vector from all keys in Σ_j ds_tj k_j, and the row's average
# key is one. This is a covariance, of price and key, under the weights of the row. Second: for a block of keys, p =
# exp(s − log denominator), dv = pᵀ do, ds = p ∘ (do vᵀ − do·o), dk = dsᵀ q / √D, and dq adds ds k / √D.

# %%
# the pictures of this lesson
graph = Graph()
graph.node("rest", (0, 3.4), "the rest of the model, and the loss L")
graph.node("o", (0, 2.45), "o = p v")
graph.node("p", (0, 1.45), "p = softmax(s)")
graph.node("s", (0, 0.45), "s = q kᵀ / √D")
graph.node("q", (-3.3, 0.45), "query of row p→o")
graph.node("k", (3.3, 0.45), "key of «o»")
graph.node("v", (3.3, 2.45), "value of «o»")


def vector(name, values):
    return f"{name} = ({', '.join(number(value, 3) for value in values)})"


def letters(name, values):
    """Two lines: the letters, and the number of each."""
    above, below = ("".join(text.rjust(7) for text in line) for line in (SOURCE, [number(x, 3) for x in values]))
    return f"{name}:{above[len(name) + 1 :]}\n{below}"


graph.edge("o", "rest", vector("o", o[1]), vector("do", do[1]))
graph.edge("p", "o", letters("p", p[1]), letters("dp", dp[1]))
graph.edge("s", "p", letters("s", s[1]), letters("ds", ds[1]))
graph.edge("v", "o", vector("v", v[2]), vector("dv", p[1, 2] * do[1]))
graph.edge("q", "s", vector("q", q[1]), vector("dq", dq[1]))
graph.edge("k", "s", vector("k", k[2]), vector("dk", ds[1, 2] * q[1] / np.sqrt(3)))
lesson.save(graph.draw())

row = [(1, j) for j in range(4)]
names, marked = {"T": ROWS, "S": SOURCE}, {"dp": row, "ds": row}
lesson.save(grids({"dp (T, S)": dp, "ds (T, S)": ds}, names, {"dp", "ds"}, marked, digits=3), "numbers")

figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4))
for letter, price in zip(SOURCE, prices, strict=True):
    left.axhline(price, color=GREY, linewidth=1)
    left.text(12.3, price, letter, va="center")
left.plot(paid, "o-", color=ORANGE, markersize=4, label="average price p·dp")
left.set(title="What row p→o pays", xlabel="step", ylabel="price of each letter", xlim=(-0.4, 12.1))
left.legend(loc="center right")
for lead, path in wrong.items():
    right.semilogx(1 + np.arange(3000), path[:, 2], color=BLUE, alpha=1.1 - lead / 10)
    right.text(1.1 * steps[lead], 0.42, str(lead), color=BLUE)
right.set(title="If «p» leads by 2, 4, 6 or 8", xlabel="step", ylabel="weight of «o»")
lesson.save(figure, "descent")

size = 2.0  # of the step
turned_q, turned_k = q[1] - size * dq[1], k[2] - size * ds[1, 2] * q[1] / np.sqrt(3)
along = k[2] / np.sqrt(k[2] @ k[2])  # two directions at right angles, in the plane of the query and the key
across = q[1] - (q[1] @ along) * along
plane = np.stack([along, across / np.sqrt(across @ across)], axis=-1)
figure, axes = canvas(8.0, 2.75)


def arrow(start, end, color, text="", at=(0.0, 0.0), linewidth=1.8):
    """An arrow between two vectors (3,), as seen in the plane, with a text beside its end."""
    start, end = ([0.7, 0.3] + 1.32 * (vector @ plane) for vector in (start, end))
    style = {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0, "linewidth": linewidth}
    axes.annotate("", end, start, arrowprops=style)
    axes.text(*(end + at), text, color=color, ha="center", va="center", fontsize=9)


arrow(0 * q[1], q[1], mix(BLUE, 0.55), "query before", (-0.75, -0.5))
arrow(0 * q[1], k[2], mix(BLUE, 0.55), "key of «o» before", (-0.9, -0.15))
end = q[1]
for j, text, at in (
    (2, "pull of «o»", (0.5, 0.0)),
    (3, "push of «p»", (0.72, 0.08)),
    (1, "push of «t»", (-0.72, 0.22)),
):
    start, end = end, end - size * ds[1, j] * k[j] / np.sqrt(3)
    arrow(start, end, ORANGE, text, at, linewidth=1.2)
arrow(0 * q[1], turned_q, BLUE, "query after", (0.1, -0.7))
arrow(0 * q[1], turned_k, BLUE, "key of «o» after", (-0.9, 0.13))
lesson.save(figure, "turn")
lesson.finish(globals())
