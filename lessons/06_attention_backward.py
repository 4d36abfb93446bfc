# %% [markdown]
# # Lesson 06: Attention backward, or "better than the average I attend to"
#
# [![Cross-attention and its gradients](../plots/06_attention_backward_map.png)](../plots/00_reverse_whole.png)
#
# **The model hesitates. How does the gradient know where it should have looked?**
#
# 10 min, with a pencil 25, going deeper 9 · runs in 5 s (fast: 5 s) · needs 01, 02, 03, 05 · difficulty 3 of 5 · paper:
# section 3.2.1, equation 1
#
# ## Who is to blame?
#
# Our model has read "p" and must write "o". It gives the o a probability of 0.70, and the loss wants more.
#
# In lesson 05 we watched row p→o look at the source: 56 % at o, but also 22 % at t and 17 % at p. You and I know what
# it should have done: look at o, and only at o. But the gradient cannot read. All that the layers above send back is
# the gradient of what the row got from head 0. That is three numbers, and no letter is among them:
#
#     do = (0.189, 0.122, 0.018)
#
# From these, the backward pass has to find out who is to blame. Did the row look in the wrong place? Then its query
# should change, or the keys. Or did it find the wrong thing in the right place? Then the values should change.
#
# One line of the backward pass will say in seven words what attention learns.

# %% Imports
from functools import partial
from graph import Graph
from lab import BLUE, GREY, ORANGE, ROWS, SOURCE, begin, error, plt, running_example, show
from pictures import grids, number

import numpy as np

from minitransformer.functional import scaled_dot_product_attention, scaled_dot_product_attention_backward
from minitransformer.gradcheck import complex_step

lesson = begin("06_attention_backward")
example = running_example()

# %% [markdown]
# ## Guess first
#
# The first step back puts a price on each letter. The price says how fast the loss grows if row p→o gives that letter
# more weight. A negative price is a gain:
#
#     letter       s        t        o        p
#     weight    0.044    0.218    0.564    0.173
#     price    −0.152    0.205   −0.354    0.621
#
# Write your guesses down.
#
# 1. Gradient descent will now change the four scores. Which go up, and which go down?
# 2. Keep the prices, and let descent take many steps. Will the score of s always rise, always fall, or neither?
# 3. Another row is sure, and wrong: it gives all its weight to p, the most expensive letter. How large is the gradient
#    of its scores?

# %% [markdown]
# ## The price of a look
#
# The last step of the forward pass was o = p v. Entry by entry:
#
#     o_td = Σ_j p_tj v_jd
#
# The chain rule says: go to every entry that a number reaches, multiply the gradient there by the derivative, and add
# up. The weight p_tj reaches the D entries of its own row o_t, and in o_td its factor is v_jd. So the price is
#
#     dp_tj = Σ_d do_td v_jd = do_t·v_j               dp = do vᵀ       (T, S)
#
# The entry v_jd of a value reaches feature d of *every* row t, with the factor p_tj:
#
#     dv_jd = Σ_t p_tj do_td                          dv = pᵀ do       (S, D)
#
# (Both are lesson 02: o = p v is a linear layer with the input p and the matrix v.)
#
# Back to row p→o. The letter o is key 2. It handed over the value v_2 = (−0.816, −1.482, −1.020), so its price is
#
#     do·v_2 = 0.189 · (−0.816) + 0.122 · (−1.482) + 0.018 · (−1.020) = −0.354
#
# (We print three digits and compute with all, so your last digit may differ.)
#
# This is how three numbers can judge four letters. do is the direction in which the loss grows, and the dot product
# asks each letter whether its value points that way. The value of o points the other way, so more weight on o lowers
# the loss.
#
# And a value hears from every row that looked at it. The more a row looked, the louder it speaks. From row p→o, the
# value of o hears 0.564 · do = (0.107, 0.069, 0.010). The other rows add their shares.

# %% [markdown]
# ## Better than the average I attend to
#
# A price alone is no reason to move. The weights of a row sum to 1, so more for one letter means less for the others.
# Lesson 03 has the derivative of the softmax: ∂p_i/∂s_j = p_i (1[i = j] − p_j). A row of s acts on its own row of p
# only, so we leave out the row's index t:
#
#     ds_j = Σ_i dp_i ∂p_i/∂s_j                       the score s_j reaches all weights of its row
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
#     p_j           0.044    0.218    0.564    0.173
#     dp_j − p·dp  −0.098    0.259   −0.300    0.675
#     ds_j         −0.004    0.056   −0.169    0.117

# %% [markdown]
# Read the formula aloud: *how much I look at it, times how much more it costs than the average I attend to*. Descent
# goes against the gradient. It raises the score of each letter that is **better than the average I attend to**, and
# lowers the others. The score of o goes up, and that of s a little; t and p go down. (That was guess 1.)
#
# [In the explorer: set the score of p to 8. What is ds of o then?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.ds[0,1,2]&turn=cross.s[0,1,3])
#
# Three facts follow:
#
# * **A row of ds sums to 0**: Σ_j p_j dp_j − (Σ_j p_j) p·dp = p·dp − p·dp. What one score gains, the others lose.
# * **A letter with the weight 0 gets ds_j = 0.** The first factor is 0. Nobody looks there, however good it would be.
# * **A letter with the weight 1 gets ds_j = 0.** It *is* the average, so the second factor is 0. The scores of a row
#   that is sure get no gradient, right or wrong. Only its values still learn. (That was guess 3.)

# %% [markdown]
# ## Query and key turn towards each other
#
# The first step forward was s_tj = Σ_d q_td k_jd / √D. The entry q_td reaches the scores of its own row, with all
# keys. The entry k_jd reaches the scores of its own column, with all queries:
#
#     dq_td = Σ_j ds_tj k_jd / √D                     dq = ds k / √D       (T, D)
#     dk_jd = Σ_t ds_tj q_td / √D                     dk = dsᵀ q / √D      (S, D)
#
# Descent moves the query of row p→o along −Σ_j ds_j k_j. The key of o pulls with 0.169; the keys of p and t push with
# 0.117 and 0.056. And the query pulls at the key of o, also with 0.169. Both turn.
#
# The gradients of the keys sum to Σ_j dk_j = Σ_t (Σ_j ds_tj) q_t / √D = 0. No wonder: add one vector to all keys, and
# all scores of a row change by the same amount, so no weight changes. The bias b_k of lesson 05 is such a vector. It
# never learns.
#
# Here is the whole backward pass of attention. ∘ is the product entry by entry:
#
#     dv = pᵀ do
#     dp = do vᵀ
#     ds = p ∘ (dp − p·dp)                            p·dp is one number for each row
#     dq = ds k / √D
#     dk = dsᵀ q / √D
#
# ![Row p→o, forward and backward](../plots/06_attention_backward.png)
#
# This is row p→o, forward in blue and backward in orange. Of the keys and values you see only those of o, with what
# this one row sends to them.

# %% [markdown]
# ## In code
#
# The same five lines. `swapaxes` transposes the last two axes, so the code also takes batches and heads: `@` does one
# matrix product for each.


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


q, k, v, do = (example[f"cross.{name}"][0] for name in ("q", "k", "v", "do"))
o, s, p = attention(q, k, v)
dv, dp, ds, dq, dk = attention_backward(do, q, k, v, p)
show("prices dp (T, S)", dp, ROWS, SOURCE)
show("gradient of the scores ds (T, S)", ds, ROWS, SOURCE)
lesson.check("rows of ds sum to 0", np.abs(ds.sum(axis=-1)).max(), 1e-15)
lesson.check("the gradients of the keys sum to 0", np.abs(dk.sum(axis=0)).max(), 1e-15)

# %% [markdown]
# ![Prices, and gradients of the scores, of all rows](../plots/06_attention_backward_numbers.png)
#
# Row p→o gets by far the largest gradients. The last row has next to nothing to learn: it gives eos a probability of
# 0.999.
#
# Are the five lines right? We try them on random numbers. All lengths differ, so no wrong shape fits by accident. The
# loss is the sum of do ∘ o for a random do, because its gradient with respect to o is that do.

# %%
rng = np.random.default_rng(6)
shapes = {"q": (4, 5), "k": (6, 5), "v": (6, 2)}  # T = 4, S = 6, D = 5; the values may have a width of their own
inputs = {name: rng.standard_normal((2, 3, *shape)) for name, shape in shapes.items()}  # 2 sequences, 3 heads
upstream = rng.standard_normal((2, 3, 4, 2))


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
# Take row p→o, keep its prices, and let gradient descent move the scores by −ds, again and again. Then do the same
# from a worse start, in which the score of p leads all others by 2, 4, 6 or 8.


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
print("steps until o has more than half of the weight:", steps)

# %% [markdown]
# ![Descent on the scores of one row](../plots/06_attention_backward_descent.png)
#
# On the left you should see the average price fall from −0.054 towards −0.354, the price of o, and cross the line of s
# on its way. If it rises, you walk along the gradient instead of against it. On the right you should see four curves
# that first wait and then rise, each later than the one before. If they all rise at once, the factor p_j is missing.
#
# ## The surprise
#
# Look at s. Its price is −0.152 all the time. At first the row pays −0.054, so s is better than the average, and its
# score rises. After three steps the row pays −0.168. Now the same s is *worse* than the average, and its score falls
# from then on. Nothing happened to s. The row found something better. (That was guess 2.)
#
# Now look at the rows that are sure and wrong, at the same prices. With a lead of 2 it takes 12 steps until o has more
# than half of the weight, with 4 it takes 30, with 6 it takes 148, and with 8 it takes 1,010. Each further 2 makes the
# weight of o, a factor of its gradient, about e² = 7.39 times smaller. Attention learns quickly while it hesitates, and
# hardly at all once it is sure.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 07.
#
# ### The average without the weights
#
# The average p·dp needs a whole row of weights and prices. Or does it? Put in dp_tj = do_t·v_j:
#
#     p·dp = Σ_j p_tj Σ_d do_td v_jd
#          = Σ_d do_td Σ_j p_tj v_jd                  the order of finite sums is free
#          = Σ_d do_td o_td = do_t·o_t                the inner sum is the forward pass
#
# The average price of what I look at is the price of what I got. It needs D numbers and no key, and it gives
# ds_tj = p_tj do_t·(v_j − o_t), each entry by itself. The backward pass of FlashAttention (Dao et al. 2022) rests on
# this. Forward keeps o and, for each row, what the softmax divided by. Backward computes the weights again, for one
# block of keys after another, and the (T, S) arrays never exist as a whole.
#
# ### Three tests that need no formula
#
# If a gradient is wrong, these often say where. Write q·dq for the sum of all entries of q ∘ dq, and so for the others.
#
# * Each row of ds sums to 0.
# * q·dq = k·dk. Multiply q by 1 + ε and divide k by it: no score changes, nor does the loss. To first order the loss
#   changes by ε q·dq − ε k·dk, so this is 0.
# * v·dv = o·do. Multiply v by 1 + ε, and o grows by the same factor. Counted at v, the loss changes by ε v·dv; counted
#   at o, by ε o·do.

# %% [markdown]
# ### Mistakes and their signatures
#
# Here are the five lines as text, so that a mistake is one changed line. Each mistake runs on the shapes above, which
# all differ, and on square ones (T = S = D = 4). The table has the errors of dv, dq and dk, and how far the three tests
# fail. A dot means below 1e-12.

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
# * One factor everywhere is a constant. A forgotten scale makes dq and dk √D = 2.2361 times too large, for D = 5. None
#   of the three tests sees it, because both grow alike.
# * "dk by reshape" is treacherous. Its shape is always right, and only dk is wrong. A reshape reads the same numbers in
#   rows of another length; a transpose exchanges the axes.
# * NumPy refuses four of the eleven when the lengths differ, and none when all are 4. In self-attention S = T, always.
# * With square shapes, "v not transposed in dp" passes all three tests. Its ds is the right formula for wrong prices.
#   The tests are quick. The proof is the complex step.
#
# ### How much gets through
#
# We often read that attention eliminates the vanishing gradient. It is true that from any token to any other it is one
# step. But two things still shrink the gradient. With equal weights, each of S values gets only 1/S of do; all of them
# together get do, because the weights sum to 1. And the scores of a sure row get nothing. On paper no weight is ever
# exactly 1. But with two keys in float64, a lead of 37 is enough: 1 + exp(−37) is stored as 1. (The other weight is
# then 8.5e-17. It becomes exactly 0 much later: exp(−750) is stored as 0.) In float32, a lead of 17 is enough.
#
# Equal weights are not best for the scores, either. Lesson 05's ‖J‖ is 0.124 for 64 equal weights, 0.5 for two, and 0
# for a single one. The row that hesitates between two keys gets the most.

# %%
ones = np.ones((1, 3))
*_, p256 = attention(ones, np.ones((256, 3)), np.ones((256, 3)))
shares = attention_backward(ones, ones, np.ones((256, 3)), np.ones((256, 3)), p256)[0]  # dv, where do is 1
p40 = softmax(np.array([0.0, 0.0, 0.0, 40.0]))
deaf = np.abs(p40 * (prices - p40 @ prices)).max()
print(f"256 equal keys: each value gets {shares.min():.5f} to {shares.max():.5f} of do")
print(f"a lead of 40: the largest gradient of a score is {deaf:.1e}")

# %% [markdown]
# ### In the wild
#
# * llm.c's reference on the CPU writes the softmax's derivative out, as a double loop over keys with 1[i = j]. It is
#   easy to read, and costs S times as much as p ∘ (dp − p·dp).
# * PyTorch's softmax backward is our line for ds: grad · output − output · sum(grad · output).
# * In public NumPy Transformers we found dk with a reshape instead of a transpose, and a softmax backward that divides
#   by the size of the batch. A model may well train with either. A direction that is partly right still leads downhill.
#
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
# 1. A step along −dq raises not only the score of o in row p→o, but that of p too, a little less. How can that be?
# 2. A row has two keys. Show that ds_0 = p_0 p_1 (dp_0 − dp_1) = −ds_1. For which p_0 is it largest?
# 3. Somebody adds one vector to all values, and do stays the same. Which of o, dp, p·dp, ds, dq, dk and dv change?
# 4. What must forward remember for backward? Must it keep s? And o?
# 5. Count the multiplications in the matrix products, forward and backward. What is the ratio? And if backward computes
#    the weights again?

# %% [markdown]
# ## Answers
#
# 1. The keys of o and p point nearly the same way (the cosine is 0.88). A query that turns towards one also turns
#    towards the other. One vector cannot grant four wishes.
# 2. p·dp = p_0 dp_0 + p_1 dp_1 and 1 − p_0 = p_1, so dp_0 − p·dp = p_1 (dp_0 − dp_1). The row sums to 0, so ds_1 is the
#    opposite. p_0 p_1 is largest, 1/4, for p_0 = 1/2.
# 3. o gains the vector. All dp of a row gain the same number, and p·dp gains it too, so ds, dq and dk stay. dv stays.
# 4. q, k, v and p are enough. The five lines use neither s nor o.
# 5. Each product has T S D multiplications: 2 forward, 4 backward, so twice as many. With the weights computed again it
#    is 2.5 times as many.
#
# The exercise. First: the rows of ds sum to 0, so you may subtract one vector from all keys in Σ_j ds_tj k_j, and the
# row's average key is one. This is a covariance, of price and key, under the weights of the row. Second: for a block of
# keys, p = exp(s − log denominator), dv = pᵀ do, ds = p ∘ (do vᵀ − do·o), dk = dsᵀ q / √D, and dq adds ds k / √D.

# %%
# the pictures of this lesson
graph = Graph()
graph.node("rest", (0, 3.4), "the rest of the model, and the loss L")
graph.node("o", (0, 2.45), "o = p v")
graph.node("p", (0, 1.45), "p = softmax(s)")
graph.node("s", (0, 0.45), "s = q kᵀ / √D")
graph.node("q", (-3.3, 0.45), "query of row p→o")
graph.node("k", (3.3, 0.45), "key of the letter o")
graph.node("v", (3.3, 2.45), "value of the letter o")


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
right.set(title="If p leads by 2, 4, 6 or 8", xlabel="step", ylabel="weight of o")
lesson.save(figure, "descent")
lesson.finish(globals())
