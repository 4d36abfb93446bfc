# %% [markdown]
# # Lesson 09: Where am I?
#
# [![The Transformer, both additions of positions lit](../plots/09_positions_map.png)](../plots/00_reverse_whole.png)
#
# **How does a Transformer know the order of its tokens, and why from sines and cosines?**
#
# 11 min, with a pencil 35, going deeper 7 · runs in 60 s (fast: 9 s) · needs 01, 04, 05, 08 · difficulty 3 of
# 5 · paper: section 3.5
#
# ## Six words, one bag of letters
#
# stop, tops, spot, post, pots, opts: six words, made of the same four letters. Our model writes each of them backwards
# without a mistake, which takes six different answers.
#
# But a lookup (lesson 04) gives «o» the same vector wherever it is, and attention (lesson 05) compares vectors and
# takes means without ever asking who comes first. To such a model a word is a bag of letters, and the six words are the
# same bag.

# %% Imports
import itertools
from typing import NamedTuple

from support.lab import BLUE, GREEN, GREY, ORANGE, PINK, SOURCE, begin, error, plt, running_example, show
from support.pictures import grid

import numpy as np

from minitransformer.core import Layer, Parameter
from minitransformer.data.tasks import make_batch
from minitransformer.decoding import greedy_decode
from minitransformer.example import load_example
from minitransformer.functional import sinusoidal_positions
from minitransformer.layers import (
    EncoderLayer,
    FeedForward,
    InputEmbedding,
    LayerNorm,
    LearnedPositions,
    OutputProjection,
    PositionalEncoding,
    Residual,
    SelfAttention,
)
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import TrainingSettings, train

lesson = begin("09_positions")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (04) A token appears three times in a sentence. How many rows of dE does that affect, and what is in them?
# 2. (05) Two source tokens have the same key and different values. How does a row divide its weight between them?
# 3. (08) Why doesn't the number of heads change the number of parameters?
#
# (The answers are at the end.)

# %% [markdown]
# ## Shuffled letters, and hands of a clock
#
# 1. Take away the positions, and give the encoder "post" instead of "stop". What happens in self-attention to the
#    weights p and the answers o: do they stay, are they shuffled like the letters, or do they get new values?
# 2. The paper makes a vector for each position from sines and cosines. How many different frequencies are in the vector
#    of position 0, and how many in the vector of position 1?
#
# ## What a shuffle does
#
# We give head 1 of the encoder's self-attention (lesson 08) x = √C e, without positions, first for "stop" and then for
# "post". For each letter of "post", `order` says where that letter is in "stop".

# %%
stop, order = example["source.e"] * np.sqrt(6), [3, 2, 0, 1]
post = stop[order]


def self_attention(x):
    """Head 1 of the encoder's self-attention -> weights p, answers o (lesson 05)."""
    q, k, v = (x @ example[f"encoder.self.W_{name}"] + example[f"encoder.self.b_{name}"] for name in "qkv")
    q, k, v = q[:, 3:], k[:, 3:], v[:, 3:]  # the features of head 1
    s = q @ k.T / np.sqrt(3)  # D = 3
    p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
    return p, p @ v


p_stop, o_stop = self_attention(stop)
show('weights p of "stop"', p_stop, SOURCE, SOURCE)

# %% [markdown]
# **Your line.** Before the head has seen "post", write down its weights, without any attention. Row t belongs to the
# query at place t, and column j to the key at place j.

# %%
weights = ...  # your line: the weights p of "post", from p_stop and order, (4, 4)
lesson.judge("weights", weights)

# %% Ours
p_post, o_post = self_attention(post)
lesson.check("the weights: shuffled in rows and in columns", error(p_post, p_stop[order][:, order]), 1e-14)
lesson.check("self-attention shuffles its outputs as its inputs", error(o_post, o_stop[order]), 1e-14)

# %% [markdown]
# ![Weights and answers of "stop" and of "post"](../plots/09_positions_shuffle.png)
#
# Not a single number is new (guess 1). In "stop", «p» looks at itself with the weight 0.53, and its answer begins with
# 0.70; in "post" it does the same in a different place. The answers are shuffled like the letters, and the weights in
# their rows *and* in their columns.
#
# To see why, let order(t) be the old place of the letter that is now at place t, and mark the new word with a prime:
#
#     x'_t  = x_order(t)
#     q'_t  = q_order(t), and so are k and v                    each row is made from one row of x
#     s'_tj = q'_t·k'_j / √D = s_order(t),order(j)              the same products in other places
#     p'_tj = p_order(t),order(j)                               the same scores in the softmax
#     o'_t  = Σ_j p'_tj v'_j = Σ_j p_order(t),order(j) v_order(j)
#           = Σ_i p_order(t),i v_i = o_order(t)                 the same terms, added in another order

# %% [markdown]
# **Shuffle the inputs of attention, and its outputs are shuffled in the same way.** Such a layer is called
# *equivariant*; "invariant", as many texts say, would mean the same outputs in the same places.
#
# Everything else in the encoder works on each row separately, so the memory M is shuffled too. Cross-attention sums
# over the rows of M, and a sum doesn't care about the order of its terms. So the decoder *is* invariant: it gives the
# same answer to all 24 orders of the four letters.

# %%
words = ["stop", "tops", "spot", "post", "pots", "opts"]
model, tokens, source, target_in, _ = load_example()
ids = np.array([[tokens.index(letter) for letter in word] for word in words])


def answers():
    return ["".join(tokens[i] for i in row if tokens[i] in "opst") for row in greedy_decode(model, ids, 6)]


with_positions = answers()
model.source_embedding.positions.table[...] = 0  # the target has the same table
without_positions = answers()
print("words:            ", *words)
print("with positions:   ", *with_positions)
print("without positions:", *without_positions)
logits = np.array([model(source[:, list(places)], target_in) for places in itertools.permutations(range(4))])
lesson.check("without positions, 24 orders have the same logits", np.ptp(logits, axis=0).max(), 1e-12)

# %% [markdown]
# ## A clock for positions
#
# With positions the model reverses all six words, and without them it writes "stp" six times. So the paper adds to each
# letter a vector that says where it is:
#
#     x = √C e + PE                                             (T, C)
#
# The number t itself would be a bad choice: in a long text it becomes 1,000, next to letters of size 1. A better one
# hangs on the wall: a clock has a fast hand, which tells nearby times apart but soon comes around again, and slow
# hands, which tell distant times apart. PE has C/2 hands. From one position to the next, hand i rotates by the angle
# ω_i, and we store where its tip is, how far right and how far up:
#
#     PE_t,2i     = sin(ω_i t)
#     PE_t,2i+1   = cos(ω_i t)            ω_i = 1 / 10000^(2i/C)          i < C/2
#
# In our example, C = 6 gives three hands, with the angles 1, 0.0464 and 0.00215 (in radians).


# %%
def sinusoids(length, C):
    PE = np.zeros((length, C))
    for t in range(length):
        for i in range(C // 2):
            angle = t / 10000 ** (2 * i / C)
            PE[t, 2 * i], PE[t, 2 * i + 1] = np.sin(angle), np.cos(angle)
    return PE


PE = sinusoids(5, 6)
show("PE (T, C)", PE, range(5))

# %% [markdown]
# ![Three hands at positions 0 to 4](../plots/09_positions_clocks.png)
#
# In the printed table a column is one wave over all positions, and a row is one moment, which shows *all* hands. So a
# frequency belongs to a pair of features, and every position has all C/2 of them (guess 2).
#
# > **2015.** Sukhbaatar, Szlam, Weston and Fergus let a network answer questions by attending to stored sentences, and
# > had to add to each one when it was said. In 2017, Gehring and his colleagues learned a vector for each position. A
# > few weeks later the paper tried both, found them nearly equal, and chose sines, hoping that they would extend beyond
# > the longest sentence in training.

# %% [markdown]
# ## The same step is the same matrix
#
# **Your line.** From one position to the next, hand 0 rotates by an angle of 1, and you have its tips at positions 1
# and 2. Where is it at position 3? Use only products, sums and differences of these four numbers.

# %%
(s1, c1), (s2, c2) = PE[1, :2], PE[2, :2]  # s1 is sin 1, c1 is cos 1
tip = ...  # your line: sin 3 and cos 3, from s1, c1, s2 and c2, (2,)
lesson.judge("tip", tip)

# %% [markdown]
# This takes two formulas from high school. For one hand and a step of j positions:
#
#     sin(ω(t + j)) = sin ωt cos ωj + cos ωt sin ωj
#     cos(ω(t + j)) = cos ωt cos ωj − sin ωt sin ωj
#
# The new tip is the old tip times numbers that don't contain t. As a matrix, for the row (sin ωt, cos ωt):
#
#     (sin ω(t + j), cos ω(t + j)) = (sin ωt, cos ωt) [ cos ωj   −sin ωj ]
#                                                     [ sin ωj    cos ωj ]
#
# This is a rotation by ωj, wherever the hand was. With the blocks of all hands on the diagonal of a (C, C) matrix
# turn(j),
#
#     PE_(t+j) = PE_t turn(j)                                     for every t
#
# A rotation keeps lengths and angles. So all PE_t have the same length, and the dot product of two positions depends
# only on their distance j:
#
#     PE_t·PE_(t+j) = Σ_i cos(ω_i j)                             one cosine from each pair of features
#
# In our example, all neighbors have 0.540 + 0.999 + 1.000 = 2.539. A position with itself has 3, more than any pair.

# %% [markdown]
# What is the rotation good for? Suppose that W_q is turn(j), and that W_k leaves PE as it is. Then the query at t
# contains PE_(t+j), and the key at t + j is its best match. So "look j to the right" is *one* matrix for all t, which a
# linear layer can learn. It needs both coordinates, because no matrix makes sin(ω(t + j)) from sin ωt by itself.
#
# The way back is the shortest in the whole course: PE is fixed and is added, so dx goes to √C e as it is.


# %%
def turn(j, C):
    matrix = np.zeros((C, C))
    for i in range(C // 2):
        angle = j / 10000 ** (2 * i / C)
        cos, sin = np.cos(angle), np.sin(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, -sin], [sin, cos]]
    return matrix


wide = sinusoids(300, 64)
lesson.check("the table equals the library's", error(wide, sinusoidal_positions(300, 64, np.float64)), 1e-12)
for j in (1, 20):
    lesson.check(f"PE_t turn({j}) = PE_(t+{j}) for all t", error(wide[:-j] @ turn(j, 64), wide[j:]), 1e-12)

# %% [markdown]
# ## A wrong table that looks right
#
# Many published programs have this:
#
#     for i in range(0, C, 2):
#         PE[t, i] = sin(t / 10000 ** (2 * i / C))
#         PE[t, i + 1] = cos(t / 10000 ** (2 * (i + 1) / C))
#
# Here i is already the 2i of the formula, so the exponent grows to 2 instead of 1, and the hands become slow too soon.
# Besides, the sine and the cosine of a hand are no longer partners. We try each mistake by itself, and then both;
# feature c has the angle t / 10000^exponent:
#
#     name          exponent          grows to      sin and cos
#     right         2 (c // 2) / C    1             partners
#     slow          4 (c // 2) / C    2             partners
#     unpaired      c / C             1             two frequencies
#     both          2 c / C           2             two frequencies
#
# We train small Transformers to write words of eight letters backwards, with each table and without positions. After
# 200 steps the right table has a loss of 0.03 nats. Guess, in the cell, what the table with both mistakes has.

# %%
guess = ...  # nats of the table with both mistakes after 200 steps


def table_of(name, length, C):
    c = np.arange(C)
    if name == "none":
        return np.zeros((length, C))
    exponents = {"right": 2 * (c // 2), "slow": 4 * (c // 2), "unpaired": c, "both": 2 * c}[name] / C
    angles = np.arange(length)[:, None] / 10000**exponents
    return np.where(c % 2 == 0, np.sin(angles), np.cos(angles))


class Backwards:
    def batch(self, rng, size):
        letters = rng.integers(3, 7, (size, 8))  # the ids of o, p, s, t
        return make_batch(letters, letters[:, ::-1])


def rate(step):
    return 3e-3 * min(1, step / 50)


steps, starts = lesson.pick(full=400, fast=50), lesson.pick(full=2, fast=1)
losses = {}
for name, start in itertools.product(("right", "slow", "unpaired", "both", "none"), range(starts)):
    config = TransformerConfig(7, 32, 4, 64, 1, dropout=0.0, max_len=9)  # V, C, H, F, layers
    model = Transformer(config, seed=start, dtype="float64")
    model.source_embedding.positions.table[...] = table_of(name, 9, 32)
    settings = TrainingSettings(steps=steps, batch_size=32, seed=start)
    losses[name, start] = train(model, Backwards(), schedule=rate, settings=settings, num_threads=1).losses


def loss_after(name, step):
    """The mean of 25 steps and of the random starts."""
    return np.mean([losses[name, start][step - 25 : step] for start in range(starts)])


for name in dict.fromkeys(name for name, _ in losses):
    half, end = loss_after(name, steps // 2), loss_after(name, steps)
    print(f"{name:8s} loss {half:.2f} after {steps // 2} steps, {end:.2f} after {steps}")
lesson.compare(f"nats with both mistakes after {steps // 2} steps", guess, loss_after("both", steps // 2))

# %% [markdown]
# ![A right and a wrong table, dot products of positions, and learning curves](../plots/09_positions.png)
#
# Both tables above are stripes (white is −1, dark is 1), and each looks right on its own. Below on the left you should
# see a thin blue *line*, the same for every t; if yours is a band like the orange one, your pairs are broken. On the
# right, four colors go down, and gray stays above the floor, 0.733 nats: without positions, the best model gives the
# same probability to all orders of a bag.
#
# ## Wrong tables learn
#
# Wrong tables learn. After 400 steps all four have a loss below 0.2 nats, while without positions it is 0.82. The table
# with both mistakes only takes longer: after 200 steps it has 0.34, and the right one 0.03. When the loss falls and the
# answers are right, who checks the table again?
#
# The second surprise is *which* mistake costs. We had expected the unpaired table to suffer, because without pairs
# there are no rotations, but it learns about as fast as the right one, with 0.05 after 200 steps. The slow table has
# all its rotations, but a loss of 0.16, the mean of two starts that differ widely: in nine positions, only 7 of its 32
# features move by more than 0.1, where in the right table 13 do. The rotation is beautiful, but this model didn't need
# it.
#
# **In papers:** PE is an *absolute*, *sinusoidal* positional encoding, a learned one a *position embedding* (Gehring et
# al. 2017), and scores that see the distance alone use *relative positions* (Shaw et al. 2018).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 10.
#
# ### How alike are two positions?
#
# The blue line is the mean of cos(ω_i j) over all hands. Hands with ω_i j well below 1 have hardly moved, and their
# cosine is 1. Fast hands point anywhere, and their cosines average 0. The border ω_i j = 1 is where
#
#     2i/C = ln j / ln 10000
#
# All hands from there on count as 1, and the others as 0, so the mean is about 1 − ln j / ln 10000. It falls with the
# *logarithm* of the distance, but not steadily, because the fast hands make ripples: with 128 features it first rises
# from the distance 11 to 12.
#
# Note that cos(ω_i j) is the same for j and −j. The plain dot product can't tell left from right, but with turn(j) in
# W_q or W_k it can.
#
# ### The floor without positions
#
# All orders of a bag look the same, so the best model gives each of them the same probability, and "stop" with its 24
# orders costs −ln(1/24) = 3.18 nats. Eight letters have 8! orders, divided by n! for each letter that comes n times.
# The logarithm of this has the mean 6.60, which is 0.733 nats for each of nine tokens (with eos). If your gray curve
# falls below that, positions are leaking in somewhere.
#
# ### Another model, another verdict
#
# Do pairs never matter? Take just an encoder, which reads ten letters of eight kinds. Its output t must be the letter
# at position 9 − t, for all t at once.


# %%
class Words(NamedTuple):
    source: np.ndarray
    targets: np.ndarray

    @property
    def inputs(self):
        return (self.source,)


class Mirror:
    def batch(self, rng, size):
        letters = rng.integers(3, 11, (size, 10))
        return Words(letters, letters[:, ::-1])


class EncoderAlone(Layer):
    """ids (B, T) -> logits (B, T, V): embeddings and positions, one encoder layer, the tied output."""

    def __init__(self, name):
        rng = np.random.default_rng(0)
        E, positions = Parameter(rng.standard_normal((11, 32)) / np.sqrt(32)), PositionalEncoding(10, 32, dtype=float)
        positions.table[...] = table_of(name, 10, 32)
        self.embed, self.output = InputEmbedding(E, positions, 0.0), OutputProjection(E)
        parts = SelfAttention(32, 4, rng=rng, dtype=float), FeedForward(32, 64, rng=rng, dtype=float)
        self.encoder = EncoderLayer(*(Residual(part, LayerNorm(32, dtype=float)) for part in parts))

    def forward(self, ids, rng=None):
        x, cache_embed = self.embed.forward(ids)
        y, cache_encoder = self.encoder.forward(x)
        logits, cache_output = self.output.forward(y)
        return logits, (cache_embed, cache_encoder, cache_output)

    def backward(self, dz, cache):
        dy = self.output.backward(dz, cache[2])
        self.embed.backward(self.encoder.backward(dy, cache[1]), cache[0])


alone = {}
for name in ("right", "unpaired"):
    settings = TrainingSettings(steps=lesson.pick(full=300, fast=20), batch_size=64)
    curve = train(EncoderAlone(name), Mirror(), schedule=rate, settings=settings, num_threads=1).losses
    alone[name] = np.mean(curve[-50:])
    print(f"encoder alone, {name}: loss {alone[name]:.2f} in the last 50 steps")

# %% [markdown]
# After 300 steps the right table has a loss of 0.09 nats, and the unpaired one 0.79. Here broken pairs cost a lot. So
# the loss of one model tells you little about a table, while a test against the formula tells you everything.
#
# ### Learned positions
#
# GPT-2 and BERT learn the table instead, so there PE has a gradient. All sequences of a batch use the same row PE_t,
# and the gradients of all uses add (lesson 04): row t of dPE is the sum of dx_t over the sequences of the batch.

# %%
rng = np.random.default_rng(9)
x, upstream = rng.standard_normal((2, 3, 7, 6))  # 3 sequences of 7 tokens
learned = LearnedPositions(9, 6, std=1.0, rng=rng, dtype="float64")
y, cache = learned.forward(x)
dx = upstream * (1 - np.tanh(y) ** 2)  # for the loss Σ upstream ∘ tanh(y)
learned.backward(dx, cache)
dPE = np.zeros((9, 6))
dPE[:7] = dx.sum(axis=0)

true = np.zeros((9, 6))
for index in np.ndindex(true.shape):
    moved = learned.P.data.astype(complex)
    moved[index] += 1e-30j
    true[index] = (upstream * np.tanh(x + moved[:7])).sum().imag / 1e-30
lesson.check("dPE of learned positions, against the complex step", error(dPE, true), 1e-14)
lesson.check("and equal to the library's", error(learned.P.grad, dPE), 1e-14)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 15 minutes. To write a word of eight letters backwards, position t must find position 7 − t. Which 2 × 2
#    block takes the hand at t to the hand at 7 − t, for all t? Is it a rotation?
# 2. Keyboard, 20 minutes. Write learned positions as a layer `MyPositions`, for up to 5 positions and C = 4, and check
#    it with `minitransformer gradcheck my.py:MyPositions --shape 2 3 4`. Then take dy[0] instead of the sum over the
#    batch. What does the check say?
#
# Exercises with a checker: `minitransformer start 09`.
#
# ## Questions
#
# 1. A text is shuffled, and there are no positions. Which of these change in the encoder: the set of its output rows,
#    their order, their mean?
# 2. Why does PE need slow hands, and why fast ones?
# 3. Why does PE have no backward, while learned positions need a sum over the batch?
# 4. All PE_t have the same length. How long are they for C = 512?
# 5. *Somewhere else.* A model gets the hour of the day, 0 to 23. What is wrong with the number itself, and which two
#    features would you give it instead? Is "three hours later" the same matrix at every hour?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. One row. Each of the three uses sends its own gradient, and the row of dE is their sum.
# 2. Into equal parts: the weights come only from the scores, and equal keys have equal scores. The values have no say,
#    so the row gets the average of the two.
# 3. Heads share the columns of W_q, W_k and W_v between them. H heads of C/H features each still make (C, C) matrices.
#
# ### Questions
#
# 1. Only their order.
# 2. A fast hand tells neighbors apart, but soon repeats itself. A slow one tells distant positions apart, but hardly
#    moves from one to the next. Together they are like the digits of a number.
# 3. A fixed table gets no gradient. A learned row is used once by each sequence, and gradients of uses add.
# 4. The square of the length is Σ_i cos(0) = C/2 = 256, so 16. A letter's √C e has about √512 = 22.6.
# 5. The hours 23 and 0 are neighbors, and their numbers are 23 apart. Give it a hand that goes around once a day,
#    sin(2π hour/24) and cos(2π hour/24). Then any two neighbors are 0.261 apart, and so are these two. Three hours
#    later is a rotation by 45°, whatever the hour.
#
# ### Exercise
#
# First part: the rows of the block are (−cos 7ω, sin 7ω) and (sin 7ω, cos 7ω). Its determinant is −1, so it is a
# reflection. Second part: it says that the gradient of the table is wrong and the gradient of the input is right.

# %%
# the pictures of this lesson
figure, axes = plt.subplots(2, 2, figsize=(5.4, 4), width_ratios=(4, 3))
for (left, right), word, p, o in zip(axes, ("stop", "post"), (p_stop, p_post), (o_stop, o_post), strict=True):
    place = word.index("p")
    grid(left, p, [*word], [*word], f"weights p of {word}", highlight=[(place, place)])
    grid(right, o, [*word], title=f"answers o of {word}", highlight=[(place, 0)])
lesson.save(figure, "shuffle")

figure, axes = plt.subplots(1, 3, figsize=(7.2, 3))
labels = [{t: str(t) for t in range(5)}, {0: "0", 4: "4"}, {0: "0 to 4"}]  # where there is room for them
for i, axis in enumerate(axes):
    axis.add_patch(plt.Circle((0, 0), 1, fill=False, color=GREY))
    for t, (right, up) in enumerate(PE[:, 2 * i : 2 * i + 2]):
        axis.plot([0, right], [0, up], color=BLUE, linewidth=2)
        axis.text(1.15 * right, 1.15 * up, labels[i].get(t, ""), ha="center", va="center")
    axis.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), aspect="equal", xticks=[], yticks=[])
    axis.set(xlabel=f"sin, feature {2 * i}", ylabel=f"cos, feature {2 * i + 1}")
    axis.set_title(f"hand {i}\none round: {2 * np.pi * 10000 ** (2 * i / 6):,.1f} positions")
lesson.save(figure, "clocks")

# %%
colors = {"right": BLUE, "slow": GREEN, "unpaired": PINK, "both": ORANGE, "none": GREY}
figure, axes = plt.subplots(2, 2, figsize=(7.2, 5.6))
distances, dots = np.arange(1, 300), {}
for axis, name in zip(axes[0], ("right", "both"), strict=True):
    axis.imshow(table_of(name, 40, 32), vmin=-1, vmax=1, cmap="Blues", aspect="auto")
    axis.set(title=f"PE, {name}", xlabel="feature", ylabel="position")
    table = table_of(name, 600, 128)
    dots[name] = np.array([(table[:300] * table[j : j + 300]).sum(axis=1) for j in distances]) / 64
    least, most = dots[name].min(axis=1), dots[name].max(axis=1)  # of all t
    axes[1, 0].fill_between(distances, least, most, color=colors[name], alpha=0.7, label=name)
axes[1, 0].set(xscale="log", xlabel="distance j", ylabel="PE_t·PE_(t+j) / (C/2)", ylim=(0, 1.2))
axes[1, 0].set_title("dot products, for all t")
axes[1, 0].legend(loc="lower left")
for (name, start), curve in losses.items():
    smooth = np.convolve(curve, np.ones(20) / 20, mode="valid")
    style, label = ("--", None) if start else ("-", name)
    axes[1, 1].semilogy(np.arange(20, steps + 1), smooth, style, color=colors[name], label=label, linewidth=1.2)
floor = 6.60 / 9  # see the core
axes[1, 1].axhline(floor, color="black", linestyle=":", label="floor without positions")
axes[1, 1].set(xlabel="training step", ylabel="loss (nats)", ylim=(5e-4, 4), title="writing backwards, two starts each")
axes[1, 1].legend(fontsize=7, ncols=2, loc="lower left")
lesson.save(figure)
lesson.finish(globals())
