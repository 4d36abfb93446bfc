# %% [markdown]
# # Lesson 09: Where am I?
#
# * Question: how does a Transformer know the order of its tokens, and why with sines and cosines?
# * You derive: attention is permutation-equivariant; PE(p + k) is a rotation of PE(p); PE(p)·PE(q) depends on p − q
# * Reading: 25 min, going deeper 0 min
# * Run: 60 s (fast: 4 s)
# * Needs: 01, 04, 05
# * Difficulty: 3 of 5
# * Paper: section 3.5

# %%
from lab import BLUE, GREEN, GREY, ORANGE, PINK, begin, error, plt
from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer, Parameter
from minitransformer.functional import sinusoidal_positions
from minitransformer.layers import (
    Encoder,
    InputEmbedding,
    LearnedPositions,
    OutputProjection,
    PositionalEncoding,
    SelfAttention,
)
from minitransformer.models.config import TransformerConfig
from minitransformer.progress import tqdm
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, training_step

lesson = begin("09_positions")
rng = np.random.default_rng(9)

# %% [markdown]
# "the dog bites the man" and "the man bites the dog" have the same words. What tells them apart is order, and nothing
# that we have built so far knows of order: a token is looked up by its id (lesson 04), and attention compares vectors
# (lesson 05). The paper adds to each token's vector a second one that says where it stands:
#
#     PE(p, 2i)     = sin(p / 10000^(2i/C))
#     PE(p, 2i + 1) = cos(p / 10000^(2i/C))                              (paper section 3.5)
#
# p = 0, 1, 2, ... is the position, C = d_model is the number of features of a token (even, here), and i = 0 ... C/2 − 1
# counts PAIRS of features. Below, x (B, T, C) are the vectors of B sequences with T tokens each, PE (T, C) is the table
# of this formula, and what enters the model is y = x + PE.
#
# ## Predict
#
# Write down your guesses.
#
# 1. Attention without positions, and the tokens get shuffled. What happens to the outputs: nothing, are they shuffled
#    as well, or do they change? (Part 1)
# 2. How many different frequencies are in the vector of position 0, and how many in that of position 1? (Part 2)
# 3. Many published programs have wrong exponents in this formula. Do their models learn? (The surprise)

# %% [markdown]
# ## Small numbers
#
# C = 4 has two pairs, i = 0 and i = 1. Call the frequency of a pair ω_i = 10000^(−2i/C). Then ω_0 = 1, and
# ω_1 = 10000^(−2/4) = 1/100. A row is [sin p, cos p, sin(p/100), cos(p/100)]:
#
#     PE(0) = [0,     1,     0,     1    ]
#     PE(1) = [0.841, 0.540, 0.010, 1.000]
#
# The first pair is the second hand of a clock, and goes round in 2π = 6.28 positions. The other is an hour hand, and
# needs 628. The dot product of two rows is printed beside them: PE(0)·PE(1) = 0 · 0.841 + 1 · 0.540 + ... = 1.540.

# %%
p = np.arange(5.0)
small = np.stack([np.sin(p), np.cos(p), np.sin(p / 100), np.cos(p / 100)], axis=1)
print(" p      PE(p)                             PE(p)·PE(p+1)")
for t in range(4):
    print(f" {t}   " + "".join(f"{value:8.3f}" for value in small[t]) + f"        {small[t] @ small[t + 1]:.6f}")
lesson.quote("PE(1) = [0.841, 0.540, 0.010, 1.000]", 1, *small[1])
lesson.quote("0 · 0.841 + 1 · 0.540 + ... = 1.540", 0, small[1, 0], 1, small[1, 1], small[0] @ small[1])

# %% [markdown]
# The last column does not change: neighbours are equally alike everywhere. Part 4 shows why.

# %% [markdown]
# ## The derivation
#
# ### Part 1: without positions, attention is permutation-equivariant
#
# Let Π (T, T) be a permutation matrix: Πx has the rows of x in another order, and ΠᵀΠ = I. Take one head, with
# q = x W^Q, k = x W^K, v = x W^V (lesson 05). Shuffle the tokens, x → Πx:
#
#     q → Πx W^Q = Πq,    k → Πk,    v → Πv                     each row of a product is made from one row of x
#     scores:   s = q kᵀ / √D → (Πq)(Πk)ᵀ / √D = Π s Πᵀ         rows and columns shuffled alike; D is the width of q
#     weights:  P = softmax(s) → Π P Πᵀ                         softmax works within a row: shuffling the columns
#                                                               shuffles its terms, and their sum stays the same
#     output:   y = P v → (Π P Πᵀ)(Π v) = Π P (ΠᵀΠ) v = Π y
#
# The outputs are shuffled as the inputs were. This is called equivariance: f(Πx) = Π f(x). INVARIANCE would be
# f(Πx) = f(x), and is what many texts say. It is true of what forgets the rows' order: the mean of all outputs, or the
# answer to a query from elsewhere (1/√D left out), softmax(q (Πk)ᵀ) Πv = softmax(q kᵀ) ΠᵀΠ v = softmax(q kᵀ) v.
#
# All that treats each token alone (a linear layer, ReLU, adding x itself) is equivariant, too; so are several heads,
# and so is a stack of equivariant layers. "dog" gets the same vector in both sentences of the beginning. So order has
# to be put in.

# %% [markdown]
# ### Part 2: frequencies belong to pairs of features, and every position has them all
#
# Read one COLUMN of the table: feature 2i over all p is sin(ω_i p), one sine wave. Its neighbour 2i + 1 is cos(ω_i p),
# the same wave a quarter turn ahead. Read one ROW: it holds a sample of every wave. So "position 0 uses one frequency
# and position 1 another" mixes up rows and columns: there are C/2 frequencies, and each position has all of them.
#
# A wave with ω needs 2π/ω positions to come round. The pairs go from 2π to 2π · 10000^((C−2)/C). The paper says "from
# 2π to 10000 · 2π", which is 62,832; the last pair of C = 512 has the wavelength 60,611. The exponent 1 is not reached.

# %% [markdown]
# ### Part 3: k positions further is a rotation, and it is the same everywhere
#
# Take one pair, (s, c) = (sin ωp, cos ωp), and the two addition formulas from school:
#
#     sin(ω(p + k)) = sin ωp cos ωk + cos ωp sin ωk
#     cos(ω(p + k)) = cos ωp cos ωk − sin ωp sin ωk
#
# On the right, (s, c) appear once each, with factors in which there is no p:
#
#     (s, c) at p + k  =  (s, c) at p  ×  [ cos ωk   −sin ωk ]
#                                         [ sin ωk    cos ωk ]
#
# That matrix is a rotation by the angle ωk: its rows have length 1 and are orthogonal, as cos² + sin² = 1. Put one such
# block for each pair on the diagonal of a (C, C) matrix R_k, with zeros elsewhere:
#
#     PE(p + k) = PE(p) R_k                 for every p; R_k R_kᵀ = I; R_j R_k = R_(j+k)
#
# Here is the use of it. A query made from PE(p) is PE(p) W^Q, and W^Q can hold R_k: then the query of position p IS the
# vector of position p + k, for all p at once. "Look k to the right" is one matrix. That is what the paper hoped for:
# PE(p + k) "can be represented as a linear function of" PE(p). It takes both of a pair: sin(ω(p + k)) needs cos ωp.

# %% [markdown]
# ### Part 4: the dot product knows the distance, and not the place
#
#     PE(p)·PE(q) = Σ_i [ sin ω_i p sin ω_i q + cos ω_i p cos ω_i q ] = Σ_i cos(ω_i (p − q))
#
# by the addition formula for cos(a − b). Three things can be read off:
#
# * p = q: C/2 cosines of 0. Every PE(p) has the length √(C/2), 16 for C = 512. (A token's vector, multiplied by √C as
#   in lesson 04, has about √C = 22.6, so the sum hears both.)
# * It is even: cos(−a) = cos a. The plain dot product cannot tell left from right. Learnt W^Q and W^K can, by Part 3.
# * Its shape: at the distance k, pairs that turn slowly (ω_i k small) still add 1, and the fast ones, whose angles are
#   spread all over, add about 0 together. ω_i k = 1 where 2i/C = ln k / ln 10000, so about 1 − ln k / ln 10000 of all
#   pairs are still slow: it falls with the LOGARITHM of the distance.
#
# ### Part 5: backward
#
# y[b, t, c] = x[b, t, c] + PE[t, c], so ∂y[b, t, c]/∂x[b, t, c] = 1 and all else is 0: dx = dy. The table is fixed, and
# what is fixed needs no gradient. The token's vector gets the gradient as if there were no positions.
#
# GPT-2 and BERT LEARN a table P (max_len, C) in its place. Then each sequence b has used the row P[t], and the
# gradients of several uses add (lesson 04):
#
#     ∂loss/∂P[t, c] = Σ_b dy[b, t, c] · 1         dP[t] = Σ_b dy[b, t] for t < T, and 0 for positions not in the batch

# %% [markdown]
# ## From scratch


# %%
def sinusoids(length, C):
    """The paper's formula, entry by entry -> (length, C)."""
    PE = np.zeros((length, C))
    for p in range(length):
        for i in range(C // 2):
            PE[p, 2 * i] = np.sin(p / 10000 ** (2 * i / C))
            PE[p, 2 * i + 1] = np.cos(p / 10000 ** (2 * i / C))
    return PE


def rotation(k, C):
    """R_k (C, C): PE(p + k) = PE(p) R_k."""
    R = np.zeros((C, C))
    for i in range(C // 2):
        angle = k * 10000 ** (-2 * i / C)
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        R[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = block
    return R


def add_positions(x, table):
    """x (B, T, C), table (max_len, C) -> y (B, T, C)."""
    return x + table[: x.shape[1]]


def add_positions_backward(dy, max_len):
    """dy (B, T, C) -> dx (B, T, C), and dP (max_len, C) if the table is learnt."""
    dP = np.zeros((max_len, dy.shape[2]))
    dP[: dy.shape[1]] = dy.sum(axis=0)
    return dy, dP


# %% [markdown]
# ## Checked
#
# First the table, against the library's, then each claim of Parts 2 to 4. A sine wave of frequency ω is known by
# f(p + 1) + f(p − 1) = 2 cos(ω) f(p) (add the two formulas of Part 3 with k = 1 and k = −1): each column obeys it with
# the ω of its pair. Angles go up to 300, and the rounding of an angle grows with it; hence 1e-12 and not 1e-16.

# %%
length, C = 300, 64
PE = sinusoids(length, C)
omega = np.repeat(10000.0 ** (-2 * np.arange(C // 2) / C), 2)  # the frequency of each column
lesson.check("the table equals the library's", error(PE, sinusoidal_positions(length, C, np.float64)), 1e-12)
lesson.check("each column is one wave", error(PE[2:] + PE[:-2], 2 * np.cos(omega) * PE[1:-1]), 1e-12)
for k in (1, 7, -20):
    here, there = (PE[:-k], PE[k:]) if k > 0 else (PE[-k:], PE[:k])
    lesson.check(f"PE(p + k) = PE(p) R_k for all p, k = {k}", error(here @ rotation(k, C), there), 1e-12)
R = rotation(7, C)
lesson.check("R_k is a rotation: R_k R_kᵀ = I", error(R @ R.T, np.eye(C)), 1e-15)
lesson.check("R_3 R_4 = R_7", error(rotation(3, C) @ rotation(4, C), R), 1e-14)

distance = np.arange(length)[:, None] - np.arange(length)
by_distance = np.cos(distance[..., None] * omega[::2]).sum(axis=-1)  # Part 4's sum of cosines
lesson.check("PE(p)·PE(q) = Σ cos(ω (p − q))", error(PE @ PE.T, by_distance), 1e-12)
lesson.check("every row has the length √(C/2)", error(np.linalg.norm(PE, axis=1), np.sqrt(C / 2)), 1e-14)
lesson.quote("which is 62,832", 10000 * 2 * np.pi)
lesson.quote("the last pair of C = 512 has the wavelength 60,611", 512, 2 * np.pi * 10000 ** (510 / 512))
lesson.claim(
    "position 0 uses one frequency, position 1 another",
    "wrong",
    f"each column is one wave (to {error(PE[2:] + PE[:-2], 2 * np.cos(omega) * PE[1:-1]):.0e}) and each position has "
    f"all C/2 of them: frequencies belong to pairs of features",
)

# %% [markdown]
# Now Part 1, with the library's attention: 2 heads, biases, order-one weights, no mask. The mean of the outputs is
# invariant, the outputs are not; and with positions added there is no equivariance any more, which was the purpose.

# %%
B, T, C = 3, 7, 6
attention = SelfAttention(C, 2, rng=rng, dtype="float64")
for parameter in attention.parameters():
    parameter.data[...] = rng.standard_normal(parameter.data.shape)
x, order = rng.standard_normal((B, T, C)), rng.permutation(T)
y, y_shuffled = attention(x), attention(x[:, order])
lesson.check("equivariant: f(Πx) = Π f(x)", error(y_shuffled, y[:, order]), 1e-14)
lesson.check("the mean over tokens is invariant", error(y_shuffled.mean(axis=1), y.mean(axis=1)), 1e-14)
changed = error(y_shuffled, y)
lesson.check("f(Πx) is not f(x): change", changed, at_least=0.1)
table = sinusoids(T, C)
with_positions = error(attention(x[:, order] + table), attention(x + table)[:, order])
lesson.check("with positions: distance from equivariance", with_positions, at_least=0.1)
lesson.claim(
    "self-attention is permutation-invariant",
    "half right",
    f"shuffled inputs change the outputs (by {changed:.0%}), namely into the shuffled outputs (to 1e-15): it is "
    "equivariant; only what forgets the order, such as the mean over tokens, is invariant",
)

# %% [markdown]
# And Part 5, through a learnt table that is longer than the batch, against the complex step of lesson 01:
# f'(x) = Im f(x + ih) / h with h = 1e-30. The loss is Σ u tanh(y) with a random u, so dy = u (1 − tanh²(y)).

# %%
max_len = 9


def complex_step(loss, z, h=1e-30):
    derivative = np.zeros(z.shape)
    for index in np.ndindex(z.shape):
        moved = z.astype(complex)
        moved[index] += 1j * h
        derivative[index] = loss(moved).imag / h
    return derivative


P, u = rng.standard_normal((max_len, C)), rng.standard_normal((B, T, C))
dy = u * (1 - np.tanh(add_positions(x, P)) ** 2)
dx, dP = add_positions_backward(dy, max_len)
numeric_dx = complex_step(lambda z: (u * np.tanh(add_positions(z, P))).sum(), x)
numeric_dP = complex_step(lambda z: (u * np.tanh(add_positions(x, z))).sum(), P)
lesson.check("dx = dy", error(dx, numeric_dx), 1e-14)
lesson.check("dP[t] = Σ_b dy[b, t]", error(dP, numeric_dP), 1e-14)
lesson.check("dP of positions not in the batch", np.abs(numeric_dP[T:]).max(), 0.0)

learned = LearnedPositions(max_len, C, rng=rng, dtype="float64")
learned.P.data[...] = P
y_learned, cache = learned.forward(x)
dx_library = learned.backward(dy, cache)
lesson.check("learned positions: forward as the library's", error(add_positions(x, P), y_learned), 1e-15)
lesson.check("dx and dP as the library's", max(error(dx, dx_library), error(dP, learned.P.grad)), 1e-14)
fixed = PositionalEncoding(max_len, C, dtype="float64")
lesson.check("fixed positions: forward as the library's", error(x + table, fixed(x)), 1e-15)
lesson.check("fixed positions: dx = dy", error(fixed.backward(dy, None), dy), 0.0)

# %% [markdown]
# ## Tables that look right
#
# The commonest mistake in the wild loops over `i = 0, 2, 4, ...`, the feature's index, which is already the 2i of the
# formula, and doubles it once more. Let j be the feature, 0 ... C − 1. Four tables, of which the first is the paper's:
#
#     name        exponent of feature j       range    what a pair (sin, cos) shares
#     right       2 floor(j/2) / C            0 to 1   one frequency
#     unpaired    j / C                       0 to 1   nothing: sin and cos have different frequencies
#     doubled     2j / C                      0 to 2   nothing                                 (the commonest)
#     half right  4 floor(j/2) / C            0 to 2   one frequency, but they fall twice as fast
#
# All four show the well-known picture, stripes that get wider to the right. What have they lost? Count the columns that
# move by more than 0.1 over 100 positions. And look for Part 3: the matrix M with PE(p) M = PE(9 − p) for all of ten
# positions, "look at your mirror image", from which a head could be made. For ten vectors in 32 dimensions there nearly
# always is one. The question is how large it must be. Of all such M `lstsq` gives the smallest; its norm is the most
# that it stretches a vector.


# %%
def table_of(name, length, C):
    j = np.arange(C)
    exponents = {"right": j // 2 * 2 / C, "unpaired": j / C, "doubled": 2 * j / C, "half right": j // 2 * 4 / C}
    angles = np.arange(length)[:, None] * 10000.0 ** -exponents[name]
    return np.where(j % 2 == 0, np.sin(angles), np.cos(angles))


names = ("right", "half right", "unpaired", "doubled")
C, T = 32, 10
norms, moving = {}, {}
print("              columns that move    norm of M    PE(p)·PE(p+1), least and most over p")
for name in names:
    PE = table_of(name, 101, C)
    M = np.linalg.lstsq(PE[:T], PE[:T][::-1], rcond=1e-12)[0]  # what is 1e-12 times smaller than the rest is dropped
    norms[name], moving[name] = np.linalg.norm(M, 2), (np.ptp(PE, axis=0) > 0.1).sum()
    next_one = (PE[:-1] * PE[1:]).sum(axis=1)
    print(
        f"  {name:10}   {moving[name]:6} of {C}          {norms[name]:9.1e}        "
        f"{next_one.min():.2f}  {next_one.max():.2f}"
    )
library = sinusoidal_positions(101, C, np.float64)
lesson.check("the table called right equals the library's", error(table_of("right", 101, C), library), 1e-12)
lesson.check("right and half right: norm of M", max(norms["right"], norms["half right"]), 1.01)
lesson.check("unpaired and doubled: norm of M", min(norms["unpaired"], norms["doubled"]), at_least=10_000)

# %% [markdown]
# Half of the moving columns are lost to the doubled exponents: they stand still over any text of ordinary length. But
# the two unpaired tables have lost more: the mirror takes a matrix of norm 1 where pairs are whole, and of more than
# 10,000 where they are not, because sin(ω(9 − p)) = sin 9ω cos ωp − cos 9ω sin ωp needs the partner that is not there.
# (Doubled, rounding even hides the worst: the norm printed is that of an M which is slightly off.)
#
# Does training care? Take a small encoder from the library: C = 32, 4 heads, one layer of attention and feed-forward
# (its other parts, built in lessons 10 to 12, treat each token alone). It reads words of ten letters, in an alphabet of
# eight, and is to say them backwards, all at once: output t is letter 9 − t. Same initial weights, same data; only the
# table differs, and one model has none.
#
# The one without has a ceiling that we can compute. By Part 1, output t knows its own letter and WHICH other letters
# there are, not where. Its mirror image is any of the other nine with equal chance, so the best guess is the commonest
# of the nine, right with probability (its count)/9. The mean of that over random words is the ceiling.

# %%
LETTERS, FIRST = 8, 3  # ids 0, 1 and 2 mean padding, begin and end (lesson 14), and do not occur here


class Words(NamedTuple):
    """A batch as the library's `training_step` wants it."""

    source: np.ndarray
    targets: np.ndarray

    @property
    def inputs(self):
        return (self.source,)


def words(rng, count):
    source = rng.integers(FIRST, FIRST + LETTERS, size=(count, T))
    return Words(source, source[:, ::-1].copy())


class Reader(Layer):
    """ids (B, T) -> logits (B, T, V): token vectors + positions, an encoder of one layer, the output projection."""

    def __init__(self, table, seed):
        V = FIRST + LETTERS
        self.config = TransformerConfig(V, C, 4, 64, 1, dropout=0.0)
        rng = np.random.default_rng(seed)
        E = Parameter((rng.standard_normal((V, C)) / np.sqrt(C)).astype("float32"))
        positions = None if table is None else PositionalEncoding(T, C)
        if positions:
            positions.table = table.astype("float32")
        self.tokens = InputEmbedding(E, positions, 0.0)
        self.encoder = Encoder(self.config, rng=rng)
        self.output = OutputProjection(E)

    def forward(self, ids, rng=None):
        x, cache_tokens = self.tokens.forward(ids)
        y, cache_encoder = self.encoder.forward(x)
        logits, cache_output = self.output.forward(y)
        return logits, (cache_tokens, cache_encoder, cache_output)

    def backward(self, dlogits, cache):
        dx = self.encoder.backward(self.output.backward(dlogits, cache[2]), cache[1])
        self.tokens.backward(dx, cache[0])


# %%
steps, every = lesson.pick(full=1200, fast=100), 50
test = words(np.random.default_rng(99), 1000)
curves = {}  # name -> (seeds, steps / every), the share of letters that are right
runs = [(name, seed) for name in (*names, "none") for seed in range(lesson.pick(full=2, fast=1))]
for name, seed in tqdm(runs, unit="run", disable=None):
    reader = Reader(None if name == "none" else table_of(name, T, C), seed)
    optimizer, workers = Adam(reader.parameters()), DataParallel(reader, CrossEntropyLoss(), num_threads=1)
    data = np.random.default_rng([seed, 1])
    shares = []
    for step in range(1, steps + 1):
        optimizer.lr = 3e-3 * min(1, step / 50)
        training_step(words(data, 64), optimizer, workers)
        if step % every == 0:
            shares.append((reader(test.source).argmax(axis=-1) == test.targets).mean())
    curves.setdefault(name, []).append(shares)
curves = {name: np.array(shares) for name, shares in curves.items()}
marks = [step for step in (50, 100, 150, 300, 450, 600, 900, 1200) if step <= steps]
print("  letters right (%), mean of seeds, after how many steps")
print(f"  {'':10}" + "".join(f"{step:7}" for step in marks))
for name, shares in curves.items():
    print(f"  {name:10}" + "".join(f"{100 * shares.mean(axis=0)[step // every - 1]:7.1f}" for step in marks))
counts = (test.source[:, :, None] == np.arange(FIRST, FIRST + LETTERS)).sum(axis=1)  # (1000, 8)
others = counts[:, None] - (test.source[:, :, None] == np.arange(FIRST, FIRST + LETTERS))  # (1000, 10, 8)
ceiling = (others.max(axis=-1) / (T - 1)).mean()
print(f"  ceiling without positions: {100 * ceiling:.1f} %")
lesson.check("no positions: letters right beyond the ceiling", curves["none"].max() - ceiling, 0.02)
lesson.quote("its ceiling is 31.1 %", 100 * ceiling)
final = {name: 100 * shares[:, -1].mean() for name, shares in curves.items()}
middle = {name: 100 * shares.mean(axis=0)[min(450, steps) // every - 1] for name, shares in curves.items()}

# %% [markdown]
# ## The picture

# %%
figure, axes = plt.subplots(2, 2, figsize=(6.6, 5.8))
for axis, name in zip(axes[0], ("right", "doubled"), strict=True):
    image = axis.imshow(table_of(name, 40, C), vmin=-1, vmax=1, cmap="PuOr", aspect="auto")
    axis.set(title=f"{name}: {moving[name]} of {C} columns move", xlabel="feature", ylabel="position")
figure.colorbar(image, ax=axes[0, 1], label="entry of the table")

wide, far = 128, 300
k = np.arange(1, far)
for name, color in (("right", BLUE), ("doubled", ORANGE)):
    PE = table_of(name, 2 * far, wide)
    alike = np.array([(PE[:far] * PE[d : d + far]).sum(axis=1) for d in k]) / (wide / 2)  # (distance, place)
    if name == "right":
        at_distance = alike[:, 0]
        lesson.check("right: spread of the dot product over 300 places", np.ptp(alike, axis=1).max(), 1e-12)
    axes[1, 0].fill_between(k, alike.min(axis=1), alike.max(axis=1), color=color, alpha=0.6, label=f"{name}, all p")
axes[1, 0].plot(k, 1 - np.log(k) / np.log(10000), color=GREY, linestyle="--", label="1 − ln k / ln 10000")
axes[1, 0].set(xscale="log", xlabel="distance k", ylabel="PE(p)·PE(p+k) / (C/2)", ylim=(0, 1.15))
axes[1, 0].set_title("dot product of two positions")
axes[1, 0].legend(fontsize=8, loc="lower left")

at = every * np.arange(1, steps // every + 1)
colors = {"right": BLUE, "half right": GREEN, "unpaired": PINK, "doubled": ORANGE, "none": GREY}
for name, shares in curves.items():
    axes[1, 1].plot(at, 100 * shares.mean(axis=0), color=colors[name], label=name)
axes[1, 1].axhline(100 * ceiling, color="black", linestyle=":", linewidth=1, label="ceiling without positions")
axes[1, 1].set(xlabel="training step", ylabel="letters right (%)", ylim=(0, 105), title="reversing words")
figure.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=8)
figure.suptitle("Sinusoidal tables with right and with broken pairs of columns", fontsize=11)
lesson.save(figure)

# %% [markdown]
# You should see stripes above, broken by waves that reach twice as far to the right in the right table; below on the
# left one blue line near the dashed one, and an orange band above it; below on the right, blue and green ahead of pink
# and orange, and grey flat at its ceiling. If you see the blue line as a band, the pairs of your table are not whole.
# If the grey curve rises above its ceiling, order leaks in somewhere: look for a mask, or for a table that was added
# after all.
#
# The blue line goes down with the logarithm of the distance, as Part 4 said, but not at every step.

# %%
rises = k[1:][np.diff(at_distance) > 0]
lesson.quote("it first rises from the distance 11 to 12", rises[0] - 1, rises[0])
lesson.claim(
    "the dot product of two positions falls steadily with their distance",
    "half right",
    f"roughly as 1 − ln k / ln 10000, with ripples: at d_model = 128 it first rises from distance {rises[0] - 1} to "
    f"{rises[0]}",
)

# %% [markdown]
# (At C = 128 it first rises from the distance 11 to 12: ripples of the fast pairs.)
#
# ## The surprise
#
# Wrong tables train. We measured it: after 1,200 steps the doubled table knows 99 % of the letters. The loss goes down,
# the samples look right, and nobody looks at the table again. That answers guess 3, and it may be why the
# mistake has lived so long.
#
# The surprise was WHICH error costs. We expected the doubled exponents to hurt, as they switch off half of the columns.
# But the table with doubled exponents and whole pairs is nearly as good as the right one, and the one with the right
# exponents and broken pairs is not. After 450 steps the right table knows 100 % of the letters, the half right one
# 100 %, the unpaired one 87 % and the doubled one 68 % (means of two seeds; other machines differ a little). What the
# model needs is Part 3, a small matrix from "here" to "there". Take the sine's partner away, and that matrix must be
# more than 10,000 times larger, or a mere approximation. That this is the reason is our reading of the two tables; that
# pairs matter more than range, for this task and size, is measured.
#
# Without positions the model learnt all that it can: it ends at 31 %, and its ceiling is 31.1 %.

# %%
if not lesson.fast:
    lesson.check("all four tables learn: least share in the end (%)", min(final[name] for name in names), at_least=95)
    broken = max(middle["unpaired"], middle["doubled"])
    lesson.check("half right is ahead of both broken ones (points)", middle["half right"] - broken, at_least=3)
lesson.quote("the doubled table knows 99 % of the letters", final["doubled"], within=0.03, full_only=True)
lesson.quote(
    "After 450 steps the right table knows 100 % of the letters, the half right one 100 %, "
    "the unpaired one 87 % and the doubled one 68 %",
    450,
    *(middle[name] for name in names),
    within=0.12,
    full_only=True,
)
lesson.quote("it ends at 31 %", final["none"], within=0.05, full_only=True)
lesson.claim(
    "a wrong exponent in the table of positions shows in training",
    "half right",
    f"after {steps} steps the commonest wrong table has {final['doubled']:.0f} % of the letters and the right one "
    f"{final['right']:.0f} %; it learns more slowly, which only a comparison tells",
)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 15 minutes. Find the 2 x 2 block that takes the pair at p to the pair at L − p, for all p (the mirror of a
#    text with L + 1 tokens). Is it a rotation? It passes if (PE(p) times your blocks) equals PE(9 − p) to 1e-14.
# 2. Keyboard, 15 minutes. Does the gap stay in a larger model? In a copy of this file, beside it, set C, T = 128, 10,
#    two layers (the fifth argument of `TransformerConfig`), steps = 500 and one seed, and end it after the table of
#    letters with `raise SystemExit`. The check on the unpaired norm of M will fail: look at the norms, write down a
#    guess, then take the check out.
# 3. Keyboard, 20 minutes. Write learned positions as a layer `MyPositions` with max_len = 5 and C = 4 and check it:
#    `minitransformer gradcheck my.py:MyPositions --shape 2 3 4`. Then take dy[0] in place of the sum over b, and see
#    what it says.
#
# Checked exercises on this lesson: `minitransformer start 09`.

# %% [markdown]
# ## Questions
#
# 1. The model is shown a shuffled text without positions. Which of these change: the set of outputs, their order, the
#    mean of all outputs?
# 2. How far must a pair with the frequency ω move to come back, and why does a table need slow pairs as well as fast?
# 3. Why does PE(p)·PE(q) not tell whether p stands before q, and how can attention still look to the left?
# 4. Why has PositionalEncoding no backward to speak of, while learned positions have one with a sum over the batch?
# 5. Somebody's table has all sines in the first C/2 columns and all cosines in the rest. Is that a mistake?

# %% [markdown]
# ## In the wild
#
# * The doubled, unpaired table (`2 * i` for the sine and `2 * (i + 1)` for the cosine, with i = 0, 2, 4, ...) stands in
#   public repositories. It was pointed out in 2019 and is still there in forks, courses and printed books. Others had
#   2j / C, too; one of them mended it in 2017. People trained models with all of these.
# * tensor2tensor, the authors' own code, puts all sines before all cosines, and divides by C/2 − 1, not C/2: its
#   slowest pair does have the exponent 1. Both are as good; only weights trained with one do not fit the other.
# * PyTorch has no layer for positions in `nn.Transformer`. Who forgets to add one gets the grey curve.
# * GPT-2 and BERT learn the table: 1,024 and 512 rows. Beyond the last row they cannot read at all.
# * A causal mask (lesson 07) breaks equivariance by itself: token 0 sees one token and token 5 sees six. Language
#   models without any positions do learn order from that (Haviv et al. 2022). An encoder has no such mask, and cannot.

# %%
halves = np.concatenate([table_of("right", 50, C)[:, 0::2], table_of("right", 50, C)[:, 1::2]], axis=1)
gram = table_of("right", 50, C) @ table_of("right", 50, C).T
lesson.check("sines first, then cosines: the same dot products", error(halves @ halves.T, gram), 1e-14)
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. Their order only. Each token gets the same output as before, so the set and the mean stay.
# 2. By 2π/ω positions. Fast pairs tell neighbours apart but repeat soon; slow ones tell far places apart but hardly
#    change from one position to the next. Together they are like the digits of a number.
# 3. It is a sum of cosines of p − q, and a cosine is even. W^Q and W^K stand between: with R_(−1) in W^Q the query of p
#    is the vector of p − 1, and its dot product is largest with the token on the left.
# 4. The table is fixed and is added, so dx = dy and there is nothing to learn. A learnt row P[t] is used once by each
#    sequence of the batch, and gradients of all uses add.
# 5. No. It is a permutation of columns, which W^Q, W^K and W^V can undo: the dot products are the same to rounding.
#
# The exercise: [[−cos ωL, sin ωL], [sin ωL, cos ωL]], a reflection: its determinant is −1. And in the larger model
# the gap shrinks to a small part of what it was. So does the norm of M: with four times as many waves, ten positions
# can be told apart by far smaller numbers.
