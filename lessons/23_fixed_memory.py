# %% [markdown]
# # Lesson 23: What does a fixed memory forget?
#
# [![The Transformer, with self-attention lit](../plots/23_fixed_memory_map.png)](../plots/00_reverse_whole.png)
#
# **A model keeps one matrix instead of all the keys and values. What can it still find?**
#
# 10 min, with a pencil 30, going deeper 7 · runs in 40 s (fast: 10 s) · needs 02, 04, 05, 06, 07, 16, 19 · difficulty 3
# of 5 · paper: Katharopoulos et al. 2020, section 3
#
# ## A book on a phone
#
# An engineer wants a phone to read a whole book, 200,000 tokens, with Llama 3.2 1B. Attention keeps a key and a value
# for each token, 32,768 bytes in this model (lesson 19). For the book that is 6.6 GB, which is more than the phone has.
#
# Her colleague proposes not to keep any keys and values, but a *sum* over them: one matrix of 64 × 64 numbers for each
# head. It takes 16 layers · 8 heads · 64 · 64 numbers · 2 bytes = 1,048,576 bytes, after ten tokens or ten million. The
# model writes as fast on the last page as on the first.
#
# "A megabyte for a book is what 32 tokens take now," she says. "Where does the rest go?" He doesn't know.

# %% Imports
from functools import partial

from support.lab import BLUE, GREEN, GREY, ORANGE, begin, error, plt, running_example, show
from support.pictures import grids

import numpy as np

from minitransformer.config import Windowed
from minitransformer.core import Parameter
from minitransformer.functional import linear_attention, linear_attention_backward, softmax
from minitransformer.gradcheck import complex_step
from minitransformer.models import GPT, gpt_config
from minitransformer.training import Adam

lesson = begin("23_fixed_memory")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (16) A decoder keeps old keys and values, and never computes them again. Why do they stay right?
# 2. (05) What does a softmax need to know before it can say what a single score is worth?
# 3. (04) A row of E is used for three tokens of a sentence. What is its gradient made of?
#
# (The answers are at the end.)

# %% [markdown]
# ## How many of 32 pairs?
#
# We will store 32 pairs, each a random key and a random value of 16 numbers, in one matrix of 16 × 16. Then we ask with
# each key, and see whether its own value, among all 32, is nearest to the answer. How many of the answers are right?

# %%
guess = ...  # per cent of 32 pairs that a matrix of 16 × 16 finds again

# %% [markdown]
# ## Move the brackets
#
# Leave out the softmax for a moment, and √D too. Then a row weights each value by its score, and nothing else:
#
#     o_t = Σ_j (q_t·k_j) v_j                            over all keys j ≤ t, as the causal mask wants it
#         = Σ_j (q_t k_jᵀ) v_j                           a product of a row and a column
#         = Σ_j q_t (k_jᵀ v_j)                           brackets may be moved
#         = q_t Σ_j k_jᵀ v_j                             q_t does not depend on j
#         = q_t Z_t
#
# What was a sum for each query is now one matrix for all. k_jᵀ v_j is a column times a row, so it has the shape (D, D),
# and so has Z_t. The next token adds its own product:
#
#     Z_t = Z_(t−1) + k_tᵀ v_t
#
# So the only thing kept from the tokens is one running sum, whose size doesn't depend on how many there are. It is
# called the state, as in a recurrent network.
#
# The softmax doesn't allow this. Its exp(q·k) is 1 + q·k + (q·k)²/2 + ..., and each power needs its own state, so
# there would be infinitely many. Linear attention puts φ(q)·φ(k) in its place, a dot product of as many features as q
# and k have.
#
# Here is head 0 of our decoder's self-attention (lesson 08), with the softmax and with a state.


# %%
def causal_state(q, k, v):
    """q, k (..., T, D), v (..., T, width) -> o (..., T, width) and all states Z (..., T, D, width)."""
    Z = np.cumsum(k[..., :, None] * v[..., None, :], axis=-3)
    return np.einsum("...td,...tde->...te", q, Z), Z


q, k, v = (example[f"decoder.self.{name}"][0] for name in "qkv")
T, D = q.shape
s = np.where(np.tril(np.ones((T, T))), q @ k.T / np.sqrt(D), -np.inf)
p, _ = softmax(s)
o = p @ v
o_state, Z = causal_state(q, k, v)
lesson.check("one state for each token, against the sum of all", error(o_state, np.tril(q @ k.T) @ v), 1e-14)
show("o, with the softmax", o)
show("o, from the state", o_state)

# %% [markdown]
# ![The last token adds its product to the state](../plots/23_fixed_memory_states.png)
#
# The last token adds a column times a row to the state (blue is positive, gray negative). The two tables of o have
# little in common, since this model was trained with a softmax, and nothing here divides by a sum.
#
# ## The sum from the other end
#
# Each state reaches the loss in two ways: through its own output o_t = q_t Z_t, and through the next state, Z_(t+1) =
# Z_t + k_(t+1)ᵀ v_(t+1). So
#
#     dZ_t = q_tᵀ do_t + dZ_(t+1)
#
# **Your line.** `outer` holds the products q_tᵀ do_t of all tokens, (T, D, D), in the order of the tokens. Write dZ,
# which has the same shape, without a loop.

# %%
do = example["decoder.self.do"][0]
outer = q[:, :, None] * do[:, None, :]
dZ = ...  # your line: from outer, (T, D, D)
lesson.judge("dZ", dZ)

# %% [markdown]
# Substitute the equation into itself until you reach the last token:
#
#     dZ_t = q_tᵀ do_t + q_(t+1)ᵀ do_(t+1) + dZ_(t+2)
#          = Σ_i q_iᵀ do_i                               over all i ≥ t
#
# Forward, the state hears from the past; backward, its gradient hears from the future, and the running sum begins at
# the last token. The rest is lesson 02, because o_t = q_t Z_t is a product, and so is k_tᵀ v_t:
#
#     dq_t = do_t Z_tᵀ
#     dk_t = v_t dZ_tᵀ                                   from Z_t = ... + k_tᵀ v_t
#     dv_t = k_t dZ_t
#
# So the backward pass also needs only one matrix at a time, in two passes over the text: forward it adds up Z again,
# for dq, and backward it adds up dZ, for dk and dv.


# %% Ours
def causal_state_backward(do, q, k, v, Z):
    outer = q[..., :, None] * do[..., None, :]
    dZ = np.cumsum(outer[..., ::-1, :, :], axis=-3)[..., ::-1, :, :]
    dq = np.einsum("...te,...tde->...td", do, Z)
    dk = np.einsum("...te,...tde->...td", v, dZ)
    return dq, dk, np.einsum("...td,...tde->...te", k, dZ)


rng = np.random.default_rng(23)
inputs = {"q": rng.standard_normal((2, 6, 3)), "k": rng.standard_normal((2, 6, 3)), "v": rng.standard_normal((2, 6, 4))}
upstream = rng.standard_normal((2, 6, 4))


def loss(name, x):
    return (upstream * causal_state(**{**inputs, name: x})[0]).sum()


found = causal_state_backward(upstream, **inputs, Z=causal_state(**inputs)[1])
for name, gradient in zip("qkv", found, strict=True):
    true = complex_step(partial(loss, name), inputs[name])
    lesson.check(f"d{name}, against the complex step", error(gradient, true), 1e-14)

# %% [markdown]
# > **1972.** Teuvo Kohonen and, independently, James Anderson stored pairs of patterns by adding up their outer
# > products in one matrix, as a model of human memory. John Hopfield's network of 1982 is also such a sum. In 2020
# > Katharopoulos and colleagues found it inside attention, and a year later Schlag, Irie and Schmidhuber pointed to its
# > limit: a matrix with D rows has room for D keys that don't disturb each other.
#
# ## What the matrix can hold
#
# Store S pairs whose keys have length 1, and ask with key i:
#
#     o = k_i Z = Σ_j (k_i·k_j) v_j
#       = v_i + Σ_j (k_i·k_j) v_j                        j ≠ i in the sum, and k_i·k_i = 1
#
# The answer is the right value, plus noise. If all keys are at right angles, the noise is 0, but there is room for only
# D such keys. For random keys, k_i·k_j has size 1/√D (lesson 05), so each term, with a value of length 1, has the
# squared length 1/D on average. In the square of the sum, products of different terms are 0 on average, because random
# values point in all directions. So the squared length of the noise is (S − 1)/D on average. For D = 16 it is 0.44 for
# 8 pairs, 1.94 for 32, and 7.94 for 128.


# %%
def unit(rng, rows, D):
    x = rng.standard_normal((rows, D))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def by_state(k, v):
    return k @ (k.T @ v)


def by_softmax(k, v):
    return softmax(64 * k @ k.T)[0] @ v


def by_window(k, v, window=8):
    return softmax(64 * k @ k[-window:].T)[0] @ v[-window:]


def right(S, D, read, trials):
    """Which of S pairs are found again, the share over many trials -> (S,), from the oldest to the newest."""
    rng, found = np.random.default_rng(S), np.zeros(S)
    for _ in range(trials):
        k, v = unit(rng, S, D), unit(rng, S, D)
        found += (read(k, v) @ v.T).argmax(axis=1) == np.arange(S)
    return found / trials


counts, trials = (4, 8, 16, 32, 64, 128), lesson.pick(full=400, fast=40)
readers = {"softmax": by_softmax, "state": by_state, "window": by_window}
shares = {name: [100 * right(S, 16, read, trials).mean() for S in counts] for name, read in readers.items()}
show("per cent found again, D = 16", list(shares.values()), list(shares), counts, digits=1)
lesson.compare("per cent of 32 pairs that the state finds again", guess, shares["state"][3])

# %% [markdown]
# ![How many pairs are found again](../plots/23_fixed_memory.png)
#
# Of 8 pairs the state finds 98.6 %, of 32 it finds 60 %, and of 128 only 10 %. Softmax, which keeps all keys and
# values, finds all of them at every length. (Its scores are 64 q·k here, sharp enough to pick one key. The state would
# gain nothing from a factor, which only makes its whole answer longer.) If your curve for the state stays at 100 %,
# your answers have seen v_i itself, and not only Z.
#
# Nothing breaks at 16 pairs, where the right angles end. The memory doesn't overflow the way a disk does. **All pairs
# lie in one sum of a fixed size, so each new pair adds noise to all the others**, the first as much as the last,
# because a sum has no order.
#
# ## A window instead
#
# There is another fixed-size memory: the last few keys and values as they are, and none of the older ones. The D²
# numbers of a state are enough for D/2 tokens, for D = 16 a window of 8. It always finds the last 8 pairs, and none of
# the others.
#
# In a stack, a window reaches further than it looks. A token sees itself and the window − 1 tokens before it, and what
# it reads there has seen window − 1 tokens before that:
#
#     reach of one layer   = window − 1
#     reach of all layers  = layers · (window − 1)       added, not multiplied
#
# Mistral 7B has 32 layers with windows of 4,096, so its reach is 131,040 tokens.

# %%
sizes = {"d_model": 8, "num_heads": 2, "num_layers": 3, "max_len": 20}
model = GPT(gpt_config(9, **sizes, attention=Windowed(4)), dtype="float64")
ids = rng.integers(9, size=(1, 20))
before, moved = model(ids), []
for place in range(20):
    other = ids.copy()
    other[0, place] = (other[0, place] + 1) % 9
    moved.append(np.abs(model(other) - before)[0, -1].max())
reach = 19 - int(np.flatnonzero(moved)[0])
print(f"3 layers with windows of 4: the last token depends on the {reach} tokens before it")
lesson.check("... and not on any token further away", max(moved[: 19 - reach]), 0.0)

# %% [markdown]
# ## Blurred, or cut off?
#
# State and window have the same 256 numbers. With 32 pairs the window finds the newest 8 and no other, which is 25 %;
# the state finds 60 %. So blurring keeps more than cutting off, if all pairs are asked for equally often, but the two
# fail differently. The window is perfect for what was just said and blind to the rest. The state has an answer for
# everything, and its wrong answers, four out of ten, look just like the right ones.
#
# Would it help to write more cleverly? Give the writer what no running memory has: all pairs at once, and 2,000 steps
# of Adam (lesson 13) on the matrix. The logits of a question are the products of its answer with all values, and lesson
# 03 gives their gradient, p − 1[i = j].


# %%
def by_training(k, v, written=None):
    """Answers of a matrix that was trained on the first `written` pairs, or on all."""
    Z = Parameter(np.zeros((k.shape[1], v.shape[1])))
    adam = Adam([Z], lr=0.3)
    asked, own = k[:written], np.eye(len(k))[:written]
    for _ in range(lesson.pick(full=2000, fast=200)):
        p, _ = softmax(asked @ Z.data @ v.T)
        Z.grad[...] = asked.T @ (p - own) @ v / len(asked)
        adam.step()
    return k @ Z.data


shares["trained"] = [100 * right(S, 16, by_training, 3).mean() for S in counts]
show("per cent found again", [shares["state"], shares["trained"]], ["state", "trained"], counts, digits=1)
part = 100 * right(128, 16, partial(by_training, written=48), 3)
print(f"of 128 pairs, trained on the first 48: {part.mean():.1f} % of all, {part[:48].mean():.1f} % of the 48")

# %% [markdown]
# The trained matrix finds all of 64 pairs, of which the sum finds 27 %. So 256 numbers have more room than a running
# sum uses. With 128 pairs the room is too small, and the same training finds only 14 %, hardly more than the sum;
# trained until the gradient is 0, it finds no more. Train it on 48 of the 128 pairs alone, and it finds them all among
# the 128 values. That is 37.5 %, and with a few lucky others 38.8 %. So a memory that is too small loses most by trying
# to keep everything.
#
# A running memory has to write each pair in one step, before it knows the next. But a model can learn keys that disturb
# each other less than random ones do. In the library's own experiment (docs/benchmarks.md) a small decoder with linear
# attention learns to find one of 26 pairs in 82 % of the texts, and with full attention in all of them.
#
# **In papers:** Z is a matrix of *fast weights* (Schmidhuber 1992) or an *associative memory*, finding a value by its
# key is *associative recall*, the noise *interference*, and a window *sliding-window* or *local attention* (Beltagy et
# al. 2020).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with the next lesson. What each kind of attention costs is in docs/attention.md.
#
# ### Positive features, and a denominator
#
# Attention is a mean: its weights are positive and sum to 1. Linear attention gets the first property from features
# φ(x) = elu(x) + 1, which is x + 1 for positive x and exp(x) otherwise, and the second from a division. The denominator
# is the same sum with the value 1, so the values get one more feature, which is 1 everywhere, and the state one more
# column:
#
#     (sums, total) = φ(q_t) Z_t                         Z_t = Σ_j φ(k_j)ᵀ (v_j, 1)
#     o_t = sums / total
#     dsums = do_t / total
#     dtotal = −(do_t·o_t) / total                       o_t falls as the total grows
#
# With these, and our own state forward and backward, we have the library's linear attention.


# %%
def features(x):
    return np.where(x.real > 0, x + 1, np.exp(np.where(x.real > 0, 0, x)))


def linear(q, k, v):
    values = np.concatenate([v, np.ones((*v.shape[:-1], 1))], axis=-1)
    both, Z = causal_state(features(q), features(k), values)
    return both[..., :-1] / both[..., -1:], (q, k, values, both, Z)


def linear_backward(do, cache):
    q, k, values, both, Z = cache
    total = both[..., -1:]
    o = both[..., :-1] / total
    dboth = np.concatenate([do / total, -(do * o).sum(axis=-1, keepdims=True) / total], axis=-1)
    dq, dk, dvalues = causal_state_backward(dboth, features(q), features(k), values, Z)
    return dq * np.minimum(features(q), 1), dk * np.minimum(features(k), 1), dvalues[..., :-1]


arrays = rng.standard_normal((3, 2, 3, 70, 5))  # q, k and v: 2 sequences, 3 heads, 70 tokens, D = 5
ours, cache = linear(*arrays)
library, library_cache = linear_attention(*arrays, causal=True)
lesson.check("linear attention, against the library's", error(ours, library), 1e-12)
lesson.check("its last state, too", error(cache[-1][..., -1, :, :], library_cache.state), 1e-12)
upstream = rng.standard_normal(ours.shape)
pairs = zip(linear_backward(upstream, cache), linear_attention_backward(upstream, library_cache), strict=True)
lesson.check("its three gradients, too", max(error(mine, theirs) for mine, theirs in pairs), 1e-11)

# %% [markdown]
# Ours keeps a state for every token, T D² numbers, to be easy to read. The library keeps only one, which it carries
# from each chunk of 64 tokens to the next, and inside a chunk it computes the scores as attention does. With a chunk of
# one token this is a recurrent network, with a chunk of T tokens it is attention without a softmax, and all are the
# same function.
#
# ### A larger matrix
#
# Twice the width means four times the numbers. Does it hold four times the pairs? We add pairs, a tenth more each time,
# until fewer than 60 % are found.

# %%
limits = {}
for width in (8, 16, 32, 64):
    S = 4
    while right(S, width, by_state, 1 + lesson.pick(full=4000, fast=400) // S).mean() >= 0.6:
        S += 1 + S // 10
    limits[width] = S
print("pairs of which fewer than 60 % are found, by D:", limits)

# %% [markdown]
# It holds 2.3, 3.2 and 3.2 times as many. The noise of S pairs has length √((S − 1)/D) and spreads over D directions,
# so in any one direction it is √(S − 1)/D, and that would allow four times. But there are also more values that can be
# mistaken for the right one.
#
# ### Forgetting on purpose
#
# A sum treats all pairs alike. If the recent ones matter more, let the state fade before each new pair, with a factor
# below 1: Z_t = decay Z_(t−1) + k_tᵀ v_t. RetNet has a fixed factor for each head, and Mamba 2 computes it from the
# token. Or clean up first: the delta rule looks up what the state says for the new key, and stores only the difference
# from the new value.
#
#     Z_t = Z_(t−1) + k_tᵀ (v_t − k_t Z_(t−1))
#
# After this step the newest pair is found exactly, as k_t Z_t = v_t shows for a key of length 1.


# %%
def by_decay(k, v, decay=0.9):
    fade = decay ** np.arange(len(k))[::-1]
    return k @ ((fade[:, None] * k).T @ v)


def by_delta_rule(k, v):
    Z = np.zeros((k.shape[1], v.shape[1]))
    for key, value in zip(k, v, strict=True):
        Z = Z + np.outer(key, value - key @ Z)
    return k @ Z


by_age = {"state": by_state, "window": by_window, "decay 0.9": by_decay, "delta rule": by_delta_rule}
by_age = {name: 100 * right(32, 16, read, trials) for name, read in by_age.items()}
for name, found in by_age.items():
    new, old, every = found[-8:].mean(), found[:8].mean(), found.mean()
    print(f"{name:10}  newest 8 of 32: {new:5.1f} %, oldest 8: {old:5.1f} %, all: {every:5.1f} %")

# %% [markdown]
# ![Which of 32 pairs are found again, by their age](../plots/23_fixed_memory_age.png)
#
# Both methods pay for the newest pairs with the oldest. Of the newest 8 of 32 pairs, the plain state finds 59 %, with
# decay 91 %, with the delta rule 88 %; of the oldest 8 the numbers are 60 %, 3 % and 8 %. Over all pairs both are worse
# than the plain sum. Writing each pair once, a memory of this size can only choose what to lose.
#
# ## Exercise
#
# 1. Pencil, 10 minutes. Show that the delta rule's step makes k_t Z_t = v_t for a key of length 1. What does it do to
#    the answers for keys at right angles to k_t?
# 2. Keyboard, 15 minutes. Give all pairs keys at right angles (rows of an identity matrix), for S = 8, 16 and 17. Where
#    is the first mistake?
#
# Exercises with a checker: `minitransformer start 23`. In 23_causal_state you write the states and the way back, and in
# 23_window_reach how far a stack of windows sees.
#
# ## Questions
#
# 1. The backward pass needs the state at each t, and not just the final state. Why?
# 2. A colleague says that linear attention has an unlimited context, since no token is ever thrown away. Is he right?
# 3. How many numbers must the state have so that 200,000 random pairs can be found? Take the squared noise of 8 pairs
#    with D = 16 as the goal.
# 4. In a model that alternates full attention and windows, how far does the last token see?
# 5. Softmax finds 128 pairs with keys of 16 numbers. Where does it keep them all?
# 6. *Somewhere else.* A text is kept as the sum of the vectors of its words, which are random, with 100 numbers and
#    length 1. To ask whether a word is in it, you multiply the sum with the word's vector. What comes out if it is, and
#    what if it isn't? At how many words does the noise become as large as 1/2?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The causal mask: an old token sees no newer one, so nothing that comes later changes its x, its key or its value.
# 2. All the other scores in its row. It divides by a sum over the row, so no score has a weight by itself.
# 3. The gradients of all three uses, added up.
#
# ### The questions
#
# 1. dq_t = do_t Z_tᵀ contains the state that the query met. The later tokens weren't in it, so they must not matter.
#    You can get back to it by subtracting products from the last state, at the price of rounding.
# 2. Half right. Every token is in the sum, but with D = 16 and 128 pairs only 10 % can be found. Nothing is thrown
#    away, but how much can be found again is limited by D.
# 3. (S − 1)/D stays at 0.44 for D = 457,141. Only the keys must be that wide. With values of 16 numbers the state has
#    7,314,256 numbers, and a cache of all pairs, with keys and values of 16 numbers, has 6,400,000, so nothing is
#    saved.
# 4. To the first token: one layer of full attention has no limit, and the others add nothing to that.
# 5. In the T rows of k and v: it keeps 2 · 128 · 16 = 4,096 numbers, where the state has 256.
# 6. 1 plus noise, and noise alone. Each of the S − 1 other words adds a product of size 1/√100, so the noise has size
#    √(S − 1)/10, which is 1/2 for 26 words. Again they all lie in one sum, and each is in the way of all the others.
#
# The exercise. First: k_t Z_t = k_t Z_(t−1) + (k_t k_tᵀ)(v_t − k_t Z_(t−1)) = v_t, since k_t k_tᵀ = 1. For a key at
# right angles the product with k_tᵀ is 0, so its answer stays as it was. Second: up to 16 there is no mistake. A
# seventeenth key must repeat one of the others, and then the two answers are the sum of two values.

# %%
# the pictures of this lesson
step = {"Z after «t» (D, D)": Z[3], "kᵀ (D, 1)": k[4][:, None], "v (1, D)": v[4][None], "Z after «s» (D, D)": Z[4]}
lesson.save(grids(step, between="+×="), "states")

colors = {"softmax": GREEN, "trained": GREY, "state": BLUE, "window": ORANGE}
figure, axis = plt.subplots(figsize=(7.2, 3.2))
for name, color in colors.items():
    axis.semilogx(counts, shares[name], "o-", color=color, markersize=4, label=name)
axis.plot(128, part.mean(), "x", color=GREY, label="trained on 48")
axis.set_xticks(counts, [str(count) for count in counts])
axis.minorticks_off()
axis.set(xlabel="pairs stored", ylabel="found again (%)", ylim=(-3, 105), title="Keys and values of 16 numbers")
figure.legend(loc="outside right center")
lesson.save(figure)

figure, axis = plt.subplots(figsize=(7.2, 3.2))
for (name, found), color in zip(by_age.items(), (BLUE, ORANGE, GREEN, GREY), strict=True):
    axis.plot(np.arange(1, 33), found, "o-", color=color, markersize=3, label=name)
axis.set(
    xlabel="pair, from the oldest to the newest", ylabel="found again (%)", ylim=(-3, 105), title="32 pairs, D = 16"
)
figure.legend(loc="outside right center")
lesson.save(figure, "age")
lesson.finish(globals())
