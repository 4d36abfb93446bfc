# %% [markdown]
# # Lesson 04: From tokens to vectors and back, with one shared matrix
#
# * Question: how does a token id become a vector that can be learnt, and why is it multiplied by √d_model?
# * You derive: lookup as a one-hot product; its backward as a scatter-add; tied gradients; where √d_model comes from
# * Reading: 25 min, going deeper 0 min
# * Run: 60 s (fast: 5 s)
# * Needs: 02, 03
# * Difficulty: 2 of 5
# * Paper: section 3.4

# %%
from lab import BLUE, GREEN, GREY, ORANGE, begin, error, plt

import numpy as np

from minitransformer.progress import tqdm

lesson = begin("04_embeddings")

# %% [markdown]
# A token is a piece of text with a number, its id. The number says nothing about the token: id 7 is not closer to id 8
# than to id 8000. So each token gets a vector of its own, which is learnt, and all these vectors are the rows of one
# table E. The letters of this lesson:
#
#     V, C       how many tokens there are; how long each vector is (C is the paper's d_model, 512 in its base model)
#     E (V, C)   the table, with the shape in brackets; E_vc is feature c of token v
#     ids (N,)   the ids of N tokens in a row; n counts them
#     x (N, C)   their vectors, the input of the model
#     h (N, C)   what comes out of the model's last layer, one vector for each token
#     z (N, V)   the logits: a score for each token of the vocabulary (lesson 03 made a loss of them)
#     1[...]     1 if what stands in the brackets is true, and 0 if not
#     dE         the derivative of the loss with respect to E, of E's shape; and so for every other letter
#
# ## Predict
#
# 1. ids = [2, 0, 2], and the gradients of the three vectors are dx = [[1, 1], [10, 10], [100, 100]]. What is row 2 of
#    dE? And what will NumPy's `dE[ids] += dx` put there? (Answer: Small numbers.)
# 2. Draw 25,000 tokens as they come in text, where a few words are very common. With the line of guess 1, what share of
#    the 25,000 gradient vectors is lost? (Answer: part 2.)
# 3. Train the same small model to copy words, once with the factor √d_model and once without. Which one ends with the
#    lower loss? (Answer: The surprise.)

# %% [markdown]
# ## Small numbers
#
# A vocabulary of V = 4 tokens with vectors of C = 2 features, and the ids [2, 0, 2]. Looking up is indexing: take
# row 2, row 0, row 2. The same can be written as a matrix product, if each id is written as a row of zeros with a
# single one, in the column of the id. Multiplying such a one-hot row with E picks one row of E, as every other row is
# multiplied by 0.
#
# Backward, token 2 was used twice. If its vector moves a little, the loss moves through the first place AND through the
# third. So its gradient is the sum, [1, 1] + [100, 100] = [101, 101].

# %%
E = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
ids = np.array([2, 0, 2])
dx = np.array([[1.0, 1.0], [10.0, 10.0], [100.0, 100.0]])
O = np.eye(4)[ids]  # the one-hot matrix (N, V)
print("O =", O.astype(int).tolist())
print("O @ E  =", (O @ E).tolist(), "  E[ids] =", E[ids].tolist())

right = O.T @ dx
wrong = np.zeros_like(E)
wrong[ids] += dx
print("right, O.T @ dx      ", right.tolist())
print("wrong, dE[ids] += dx ", wrong.tolist())
lesson.quote("[1, 1] + [100, 100] = [101, 101]", *dx[0], *dx[2], *right[2])
lesson.check("lookup = one-hot product", error(O @ E, E[ids]), 0.0)

# %% [markdown]
# ## The derivation
#
# ### Part 1: lookup is a product with a one-hot matrix
#
# Let O_nv = 1[ids_n = v], a matrix (N, V) of zeros with a single one in each row. Then
#
#     x_nc = Σ_v O_nv E_vc = E[ids_n, c]                in matrix form x = O E
#
# In the sum over v only the term v = ids_n is not 0. This is a linear layer (lesson 02) with the input O and the
# weights E, and that is why E may be called the weights of a layer. But nobody multiplies: at the paper's size (a batch
# of 25,000 tokens, V = 37,000, C = 512) it would be 474 thousand million multiplications, all but 12.8 million of them
# by zero.

# %% [markdown]
# ### Part 2: backward is a scatter-add
#
# From x_nc = E[ids_n, c] the derivative is 1 where the token and the feature are the same, and 0 elsewhere:
#
#     ∂x_nd/∂E_vc = 1[ids_n = v] 1[d = c]               d is any feature, as c is
#
# The entry E_vc reaches the loss through every x_nd, so the chain rule sums over n and d:
#
#     dE_vc = Σ_n Σ_d dx_nd 1[ids_n = v] 1[d = c]
#           = Σ_n 1[ids_n = v] dx_nc                    in matrix form dE = Oᵀ dx
#
# In words: row v of dE is the sum of dx over all places where token v stood. A token that did not come has gradient 0.
# The ids themselves have no gradient: there is no id 7.001. With a factor s in front, x = s O E, the same s stands in
# front of dE.

# %%
N, V, C = 25000, 37000, 512
print(f"as a product: {N * V * C:.3g} multiplications, {N * C:.3g} of them not by zero")
lesson.quote("it would be 474 thousand million multiplications, all but 12.8 million", N * V * C / 1e9, N * C / 1e6)
rng = np.random.default_rng(4)
frequency = 1 / np.arange(1, V + 1)  # the r-th most common token comes 1/r as often as the first
drawn = rng.choice(V, size=N, p=frequency / frequency.sum())
distinct = len(np.unique(drawn))
print(f"{N} tokens drawn: {distinct} are different, and the most common one comes {np.bincount(drawn).max()} times")

# %% [markdown]
# THE MISTAKE. `dE[ids] += dx` looks like this sum, and is not. Python turns it into three steps: read the rows dE[ids]
# into a new array (N, C), add dx, write the N rows back. When an id comes twice, both copies start from the same old
# row, and the second write covers the first. One gradient is lost, and nothing is reported. In a batch in which no
# token comes twice it is right, so a small test passes.
#
# How much is lost? In text the second most common word comes about half as often as the first, the third a third as
# often, and so on (Zipf's law). Of 25,000 tokens drawn so from 37,000, only 7,310 are different. One gradient for each
# of them survives, and 71 % of all gradient vectors are thrown away. The most common token came 2,245 times and keeps
# one of them. The bug is worst where there was most to learn.
#
# Right are `np.add.at(dE, ids, dx)`, which adds one row after the other, and the product Oᵀ dx, where the table is
# small. (Faster: sort the ids, so that equal ones stand together, and sum each run. The library does that.)

# %%
sentence = "Of 25,000 tokens drawn so from 37,000, only 7,310 are different"
lesson.quote(sentence, N, V, distinct)
lesson.quote("71 % of all gradient vectors are thrown away", 100 * (1 - distinct / N))
lesson.quote("The most common token came 2,245 times", np.bincount(drawn).max())

# %% [markdown]
# ### Part 3: the way out, and one matrix for three uses
#
# At the other end the model has a vector h_n and must score all V tokens. Take the dot product with each token's
# vector:
#
#     z_nv = Σ_c h_nc E_vc                              in matrix form z = h Eᵀ
#
# This is a linear layer with the weights Eᵀ. From lesson 02, or in two lines from ∂z_nu/∂h_nc = E_uc and
# ∂z_nu/∂E_vc = 1[u = v] h_nc:
#
#     dh_nc = Σ_v dz_nv E_vc                            dh = dz E
#     dE_vc = Σ_n dz_nv h_nc                            dE = dzᵀ h
#
# Here every row of dE gets something, whether its token came or not. By lesson 03, dz = p − q, the predicted
# probability less the target: row v of dE is a sum of the vectors h, weighted by how much too probable v was.
#
# The paper uses ONE matrix for the source's tokens, the target's tokens and the output (section 3.4). What is its
# gradient? Pretend that there are three tables, E1, E2 and E3, and that the loss is L(E1, E2, E3). Now set all three to
# E. If E moves by a small δ, all three move by δ, and to first order
#
#     L(E + δ, E + δ, E + δ) − L(E, E, E) = (dE1 + dE2 + dE3) · δ          · sums the products of all entries
#
# So dE = dE1 + dE2 + dE3: the gradients of all uses add. In code: each backward does `dE += ...`, and never `dE = ...`.
# (Both languages share one vocabulary in the paper. Otherwise source and target could not share a table.)

# %% [markdown]
# ### Part 4: two sizes for one matrix, and so √d_model
#
# The paper multiplies by √d_model on the way in and gives no reason, nor its initial weights. Let us look for a reason.
# Var stands for the variance, which for a mean of 0 is the mean square. Let all entries of E be drawn independently,
# with mean 0 and Var(E_vc) = σ².
#
# The way out wants small entries. Let h have C entries with mean square 1, so that Σ_c h_c² = C. (In the model a
# normalisation sees to that, which lesson 10 treats.) Take h as given, so that only E is random. The E_vc are
# independent, so the variances of the terms add:
#
#     Var(z_v) = Var(Σ_c h_c E_vc) = Σ_c h_c² Var(E_vc) = σ² Σ_c h_c² = σ² C
#
# Logits of order 1 need σ² C = 1, that is σ = 1/√C. For C = 512 it is 0.0442. This is what the library draws, and what
# the authors' own code drew.
#
# The way in wants entries of order 1. A model that reads x cannot know the order of its tokens, so to each x_n a vector
# is added that depends on the position n only. Its features come in pairs, the sine and the cosine of one angle. That
# is all we need here (lesson 09 has the rest): sin² + cos² = 1 for each pair, so the mean square of its entries is
# exactly 1/2. A token vector with entries of mean square σ² = 1/C would be a whisper next to it:
#
#     token's share of the mean square        without a factor    (1/C) / (1/C + 1/2) = 2 / (2 + C)
#                                             with the factor s   (s²/C) / (s²/C + 1/2)
#
# For C = 512 the share without a factor is 0.39 %. With s = √C the entries have the variance s²/C = 1, and the share is
# 1 / 1.5, which is 66.7 %. One table, two sizes: σ = 1/√C for the way out, times √C for the way in.

# %%
C, V, N = 512, 37000, 256
table = rng.standard_normal((V, C), dtype=np.float32)
h = rng.standard_normal((N, C), dtype=np.float32)
h /= np.sqrt((h**2).mean(axis=1, keepdims=True))  # mean square 1
answers = rng.integers(V, size=N)


def plain_loss(z, targets):
    """Mean of −ln p_t, as in lesson 03."""
    shifted = z - z.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return -log_p[np.arange(len(z)), targets].mean()


first_loss = {}
for name, size in (("1/√C", 1 / np.sqrt(C)), ("1", 1.0)):
    z = (size * h) @ table.T
    first_loss[name] = plain_loss(z.astype(np.float64), answers)
    print(
        f"entries of size {name:5s} logits of size {z.std():6.2f}, loss {first_loss[name]:6.2f}; ln V = {np.log(V):.2f}"
    )
position = np.arange(60)[:, None] / 10000 ** (np.arange(C // 2) / (C // 2))  # the paper's angles
mean_square = (np.sin(position) ** 2 + np.cos(position) ** 2).mean() / 2
shares = [100 * token / (token + mean_square) for token in (1 / C, 1.0)]
print(f"token's share of the input: {shares[0]:.2f} % without the factor, {shares[1]:.1f} % with it")
lesson.quote("For C = 512 it is 0.0442", C, 1 / np.sqrt(C))
lesson.quote("For C = 512 the share without a factor is 0.39 %", C, shares[0])
lesson.quote("1 / 1.5, which is 66.7 %", 1, 1.5, shares[1])

# %% [markdown]
# The table of size 1, which PyTorch's layer draws unless told otherwise, makes logits of size √C = 22.6 when it is tied
# to the output. The first loss is then 93 nats, with ln V = 10.5: the model is sure of nonsense. (Lesson 03: look at
# the first loss.) The right size begins at 11.0, half a nat above ln V. That half can be derived: a normal logit of
# mean 0 and variance 1 has on average exp(z) = exp(1/2), so ln Σ_u exp(z_u) is about ln V + 1/2, while the right
# token's own logit is 0 on average.
#
# ## From scratch
#
# Two pairs of functions. The backward functions ADD to the dE that they are given, so that all uses of a tied table can
# be sent to one array. Leading axes may be any: B sequences of T tokens each, as (B, T).

# %%
lesson.quote("makes logits of size √C = 22.6 when", z.std(), within=0.005)
lesson.quote("The first loss is then 93 nats, with ln V = 10.5", first_loss["1"], np.log(V))
lesson.quote("The right size begins at 11.0", first_loss["1/√C"])


def embed(ids, E, s=1.0):
    """x = s E[ids]"""
    return s * E[ids]


def embed_backward(dx, ids, dE, s=1.0):
    """dE_v += s Σ dx, over all places where ids = v"""
    np.add.at(dE, ids, s * dx)


def project(h, E):
    """z = h Eᵀ"""
    return h @ E.T


def project_backward(dz, h, E, dE):
    """dE += dzᵀ h, and return dh = dz E"""
    V, C = E.shape
    dE += dz.reshape(-1, V).T @ h.reshape(-1, C)
    return dz @ E


# %% [markdown]
# ## Checked
#
# A toy model that uses E three times: the mean m of the S source tokens' vectors is added to each target token's
# vector, then tanh, then the projection. Its backward reads the forward from the end to the beginning. (The derivative
# of tanh is 1 − tanh²; each source token gets 1/S of what all target tokens send to the mean.)
#
#     m = mean of s E[source]          a = m + s E[target]          h = tanh(a)          z = h Eᵀ
#
# The judge is the complex step of lesson 01: move one entry of E by 1e-30·√−1; the imaginary part of the loss, divided
# by 1e-30, is the derivative, exact to rounding. The loss is Σ dz ∘ z for a random dz (∘: entry by entry).

# %%
B, S, T, V, C, s = 2, 5, 4, 7, 6, 2.5
rng = np.random.default_rng(5)
E = rng.standard_normal((V, C))
source, target = rng.integers(V, size=(B, S)), rng.integers(V, size=(B, T))
dz = rng.standard_normal((B, T, V))


def forward(E_source, E_target, E_output):
    """Three tables, so that they can be moved one by one -> h and z."""
    m = embed(source, E_source, s).mean(axis=1, keepdims=True)  # (B, 1, C)
    h = np.tanh(m + embed(target, E_target, s))  # (B, T, C)
    return h, project(h, E_output)  # z (B, T, V)


def complex_step(loss, x):
    """dloss/dx entry by entry: the imaginary part of loss(x + 1e-30·√−1), divided by 1e-30."""
    dx = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved = x.astype(np.complex128)
        moved[index] += 1e-30j
        dx[index] = loss(moved).imag / 1e-30
    return dx


h, z = forward(E, E, E)
parts = [np.zeros_like(E) for _ in range(3)]  # for the source, the target and the output
dh = project_backward(dz, h, E, parts[2])
da = dh * (1 - h**2)
embed_backward(da, target, parts[1], s)
embed_backward(np.repeat(da.sum(axis=1, keepdims=True) / S, S, axis=1), source, parts[0], s)

tables = [E, E, E]
for i, name in enumerate(("source", "target", "output")):
    moved_alone = complex_step(lambda M, i=i: (dz * forward(*tables[:i], M, *tables[i + 1 :])[1]).sum(), E)
    lesson.check(f"dE of the {name} alone, against the complex step", error(parts[i], moved_alone), 1e-14)
tied = complex_step(lambda M: (dz * forward(M, M, M)[1]).sum(), E)
lesson.check("the sum of the three = the tied table's gradient", error(sum(parts), tied), 1e-14)

# %% [markdown]
# Then the other ways to write the scatter-add, the mistake, and the library. Its layers hold E as a `Parameter`, an
# array `data` with a second one, `grad`, to which every backward adds. The last check takes the library's whole
# Transformer (a black box until lesson 12) twice: once with one tied table, once with three tables of equal content.

# %%
from minitransformer.core import Parameter
from minitransformer.data import get_task
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers.embedding import Embedding, OutputProjection
from minitransformer.models import Transformer, named_config
from minitransformer.vocabulary import PAD

ids, dx = target.ravel(), da.reshape(-1, C)
print("ids with repeats:", ids.tolist())
one_hot = np.eye(V)[ids]
lost = np.zeros_like(E)
lost[ids] += s * dx
lesson.check("np.add.at = the one-hot product", error(parts[1], s * one_hot.T @ dx), 1e-14)
lesson.check("dE[ids] += dx is far off", error(lost, parts[1]), at_least=0.05)

shared = Parameter(E.copy())
enter, leave = Embedding(shared, scale=s), OutputProjection(shared)
x, cache_enter = enter.forward(target)
z_library, cache_leave = leave.forward(h)
lesson.check("lookup = the library's", error(embed(target, E, s), x), 1e-12)
lesson.check("projection = the library's", error(z, z_library), 1e-12)
dh_library = leave.backward(dz, cache_leave)
enter.backward(da, cache_enter)
lesson.check("dh = the library's", error(dh, dh_library), 1e-12)
lesson.check("its tied gradient is the sum of both uses", error(parts[1] + parts[2], shared.grad), 1e-12)

task = get_task("copy")
batch = task.batch(np.random.default_rng(1), 32)


def small_model(**changes):
    """The library's Transformer with C = 64 and one layer in each stack, in float64."""
    config = named_config("tiny", len(task.vocabulary), dropout=0.0, num_layers=1, **changes)
    return Transformer(config, seed=0, dtype="float64")


def gradients(model):
    """-> dE of the source, the target and the output (one and the same where they are tied), and the logits."""
    z, cache = model.forward(*batch.inputs)
    _, cache_loss = cross_entropy(z, batch.targets)
    model.zero_grad()
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    uses = model.source_embedding.tokens.E, model.target_embedding.tokens.E, model.output.E
    return [use.grad.copy() for use in uses], z


sizes, logits = {}, {}
for scaled, words in ((True, "with √C"), (False, "without √C")):
    tied = small_model(scale_embeddings=scaled)
    three_tables = small_model(scale_embeddings=scaled, tie_embeddings=False)
    state = tied.state_dict()
    state["target_embedding.tokens.E"] = state["output.E"] = state["source_embedding.tokens.E"]
    three_tables.load_state_dict(state)
    parts, _ = gradients(three_tables)
    (dE, _, _), logits[scaled] = gradients(tied)
    sizes[scaled] = [np.linalg.norm(part) for part in parts]
    lesson.check(f"Transformer {words}: dE tied = the sum of three tables' dE", error(sum(parts), dE), 1e-12)
print("size of dE from source, target, output, with √C   :", np.round(sizes[True], 2))
print("size of dE from source, target, output, without √C:", np.round(sizes[False], 2))

# %% [markdown]
# The three parts are not of one size. At the start the output sends the largest gradient to the table (its norm, the
# root of the sum of all squared entries, is 1.21 with √C, against 0.43 from the source and 0.68 from the target).
# Without √C the two inputs get even less, 0.07 and 0.07: the factor in front of x stands in front of its gradient, too.
#
# ## The picture
#
# So √C is needed? Reasons on paper are guesses until they are measured. We train the library's small Transformer
# (C = 64, one layer in each stack, 300 steps of 32 words) to copy words of up to 12 letters, in three forms that differ
# only in E:
#
#     the paper's     drawn with 1/√C, times √C on the way in
#     no factor       drawn with 1/√C, and taken as it is
#     size 1          drawn with 1, and taken as it is: an input as in the paper's form, but logits √C times as large
#
# Positions are the paper's sines and cosines; at C = 64 the token's share without the factor is 3.0 %. Training is a
# black box here (lesson 13 opens it). Each form is trained from two random starts, and each start has its own batches,
# the same for all forms.

# %%
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, noam, training_step

C = 64
STEPS, SEEDS = lesson.pick(300, 20), lesson.pick(2, 1)
PAPER = "the paper's"
FORMS = {PAPER: (True, C**-0.5), "no factor": (False, C**-0.5), "size 1": (False, 1.0)}
curves = {name: [] for name in FORMS}
bar = tqdm(total=len(FORMS) * SEEDS * STEPS, unit="step", disable=None)
for name, (scaled, size) in FORMS.items():
    for seed in range(SEEDS):
        changes = {"dropout": 0.0, "num_layers": 1, "scale_embeddings": scaled}
        model = Transformer(named_config("tiny", len(task.vocabulary), **changes), seed=seed)
        model.output.E.data *= size / C**-0.5
        optimizer, workers = Adam(model.parameters()), DataParallel(model, CrossEntropyLoss())
        batches = np.random.default_rng([seed, 1])
        losses = []
        for step in range(1, STEPS + 1):
            optimizer.lr = noam(step, C, warmup=100, factor=0.3)
            losses.append(float(training_step(task.batch(batches, 32), optimizer, workers)[0]))
            bar.update()
        curves[name].append(losses)
bar.close()
start = {name: np.mean([losses[0] for losses in runs]) for name, runs in curves.items()}
end = {name: [np.mean(losses[-50:]) for losses in runs] for name, runs in curves.items()}
for name in FORMS:
    last = ", ".join(f"{loss:.3f}" for loss in end[name])
    print(f"{name:12s} first loss {start[name]:6.2f}   mean of the last 50 steps, each start: {last} nats per token")

figure, axis = plt.subplots(figsize=(7.6, 3.6))
kernel = np.ones(10) / 10  # a running mean over ten steps
labels = {PAPER: "1/√C, times √C (the paper's)", "no factor": "1/√C, no factor", "size 1": "1, no factor"}
for (name, runs), colour in zip(curves.items(), (BLUE, GREEN, ORANGE), strict=True):
    for i, losses in enumerate(runs):
        smooth = np.convolve(losses, kernel, mode="valid")
        label = f"{labels[name]}, start {i + 1}"
        axis.plot(np.arange(len(smooth)) + 10, smooth, "--" if i else "-", color=colour, linewidth=1.2, label=label)
axis.axhline(np.log(len(task.vocabulary)), color=GREY, linewidth=0.8, linestyle=":", label="ln V")
axis.set(yscale="log", xlabel="training step (each point is the mean of the last 10)", ylabel="loss (nats per token)")
axis.legend(title="size of the table's entries", fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
by_loss = sorted(FORMS, key=lambda name: np.mean(end[name]))
low, high = labels[by_loss[0]], labels[by_loss[-1]]
axis.set_title(f"Training loss of a small copier,\nat the end lowest with “{low}”, highest with “{high}”")
lesson.save(figure)

# %% [markdown]
# You should see the orange curves start far above ln V and stay behind to the end. The green ones are slower than the
# blue ones at first, and fall below them about halfway. If your orange curve starts near ln V, your output is not tied
# to the table. If blue and green agree exactly, the factor has not reached the lookup.
#
# ## The surprise
#
# I expected the model without √C to be the worst. It has the lowest loss from both starts: in the mean of the last
# steps about 0.015 nats, against 0.08 for the paper's form. (The last digit may differ on your machine: training
# magnifies differences in rounding.) Only the table of size 1 is bad, with about 0.24 nats: there the logits are too
# large, as part 4 says.
#
# One thing can be seen before any training. With a tied table, the fresh model bets that the next token is the one that
# it has just read. The vector h still contains x (layers add to what they are given; lesson 11), x contains √C E_v of
# the token v that was read, and the output takes the dot product with E_v. That product is √C Σ_c E_vc², about √C, as C
# squares of mean 1/C sum to 1. (h is more than x, and is brought to mean square 1, so some of it is lost on the way.)
# Every other token has a logit of order 1. A fresh model gives the token that it has just read 43 % of the probability
# with √C, and 5 % without; 1/V would be 3 %. The right token is another one, so the first loss is 4.43 nats, above
# ln V = 3.37. Looking at the first loss would have told us that something is going on.
#
# This is one easy task, where positions matter more than letters, at one size and one learning rate. It does not show
# that the factor is useless in translation. It shows that "the tokens would drown" is no law: the numbers 0.39 % and
# 66.7 % are right, but they hold for the first step only. E is learnt, and whatever is too small can grow.

# %%
lesson.quote("is 1.21 with √C, against 0.43 from the source and 0.68 from the target", *np.roll(sizes[True], 1))
lesson.quote("the two inputs get even less, 0.07 and 0.07", *sizes[False][:2])
token_share = 100 * (1 / C) / (1 / C + 1 / 2)
lesson.quote("at C = 64 the token's share without the factor is 3.0 %", C, token_share)
final = {name: np.mean(losses) for name, losses in end.items()}
trained = {"full_only": True, "within": 0.3}
lesson.quote("in the mean of the last steps about 0.015 nats", final["no factor"], full_only=True, within=0.6)
lesson.quote("against 0.08 for the paper's form", final[PAPER], **trained)
lesson.quote("is bad, with about 0.24 nats", final["size 1"], **trained)
if not lesson.fast:
    mean_curve = {name: np.mean(runs, axis=0) for name, runs in curves.items()}
    ratio = mean_curve["no factor"] / mean_curve[PAPER]
    lesson.check("no factor is slower at first, ratio of steps 81 to 100", ratio[80:100].mean(), at_least=1.2)
    lesson.check("and then below, ratio of steps 181 to 200", ratio[180:200].mean(), 0.8)
    lesson.check("no factor ends below the paper's form, ratio", max(end["no factor"]) / min(end[PAPER]), 0.6)
    lesson.check("size 1 ends above the paper's form, ratio", min(end["size 1"]) / max(end[PAPER]), at_least=1.5)
lesson.quote("The right token is another one, so the first loss is 4.43 nats", start[PAPER], full_only=True)
sentence = "Your fresh model with V = 29 has the first loss 27.6"
lesson.quote(sentence, len(task.vocabulary), start["size 1"], full_only=True)

is_token = batch.target_in != PAD
own = {}
for scaled, z in logits.items():
    p = np.exp(z - z.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    own[scaled] = 100 * np.take_along_axis(p, batch.target_in[..., None], axis=-1)[..., 0][is_token].mean()
print(f"a fresh model's probability of repeating its input: {own[True]:.0f} % with √C, {own[False]:.0f} % without")
V = len(task.vocabulary)
lesson.quote("43 % of the probability with √C, and 5 % without; 1/V would be 3 %", own[True], own[False], 1, 100 / V)
lesson.quote("above ln V = 3.37", np.log(V))

# %% [markdown]
# One more folk explanation: "√d_model makes up for the division by √d_k in attention". All that you need to know of
# attention (lesson 05) is that it takes dot products of two vectors, both linear in x, and divides them by √d_k. So a
# factor in front of x enters TWICE: dot products of token vectors grow by C = 512, not by √512, and the division is by
# 8 (d_k = 64 in the paper). Nothing cancels, as the next lines measure with two random linear maps.

# %%
rng = np.random.default_rng(6)
A, A2 = rng.standard_normal((2, 512, 64)) / np.sqrt(512)
x = rng.standard_normal((2, 512)) / np.sqrt(512)
growth = ((np.sqrt(512) * x[0] @ A) @ (np.sqrt(512) * x[1] @ A2)) / ((x[0] @ A) @ (x[1] @ A2))
lesson.check("dot products grow by d_model, not by its root", error(growth, 512.0), 1e-12)
lesson.claim(
    "embeddings are multiplied by √d_model to make up for attention's division by √d_k",
    "wrong",
    f"the factor enters a dot product twice: it grows by {growth:.0f}, and is divided by {np.sqrt(64):.0f}",
)
lesson.claim(
    "without the factor √d_model the positions drown the tokens",
    "half right",
    f"at d_model = 512 the tokens begin with {shares[0]:.2f} % of the input's mean square, in place of "
    f"{shares[1]:.1f} %; but a small model learns to copy all the same"
    + ("" if lesson.fast else f", with a final loss of {final['no factor']:.3f} nats against {final[PAPER]:.3f}"),
)
lesson.finish()

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 15 minutes. Write the scatter-add without `np.add.at` and without a product: sort the ids with
#    `np.argsort(ids, kind="stable")`, find where each run of equal ids begins, and sum the runs with `np.add.reduceat`.
#    It passes if it equals `embed_backward` to 1e-14 for ids with repeats, and for ids of which some never come.
# 2. Pencil, 10 minutes. T5 takes the embeddings as they are and multiplies h by 1/√d_model before a tied output. Which
#    size must the table have for logits of order 1? Which form of the picture does its input then resemble?
#
# Checked exercises on this lesson: `minitransformer start 04`.
#
# ## Questions
#
# 1. A tied table gets its gradient from three places. A colleague writes `E.grad = ...` in each backward. Which
#    gradient survives, and would the model still train?
# 2. Why does a gradient check with the ids [3, 1, 4, 5] pass for `dE[ids] += dx`?
# 3. Which rows of dE are 0 for the lookup, and which for the output?
# 4. The entries of E have variance 1/C and h has the mean square 1. What is the variance of a logit, and where was
#    independence used?
# 5. Your fresh model with V = 29 has the first loss 27.6. Name the likely mistake.

# %% [markdown]
# ## In the wild
#
# * tensor2tensor, the authors' own code, draws the shared table with the standard deviation 1/√d_model and multiplies
#   by √d_model on the way in, as part 4 finds. Most readers see only the factor, since the paper gives no initial
#   weights.
# * PyTorch's `nn.Embedding` draws with standard deviation 1. With √d_model in front, and no tying, a token's entries
#   then have size 22.6 at d_model = 512 against 0.7 for the positions: now it is the positions that whisper. PyTorch's
#   `nn.Transformer` contains no embedding, so everybody writes this part anew.
# * GPT-2 has no factor: its table is drawn with 0.02, tied to the output, and its learnt positions begin small, too.
# * NumPy's `dE[ids] += dx` loses gradient as shown. PyTorch has the same trap: `dE[ids] += dx` writes back in the same
#   way, and `index_add_` is the right call.
# * NumPy takes negative ids without complaint, as indices from the end. The library checks ids before it looks them up.

# %% [markdown]
# ## Answers
#
# 1. That of the last backward to run, which is the source's lookup. The table then learns from the source only, and
#    rows of tokens that never come in the source do not move. The other layers go on learning, so the loss may well
#    fall all the same.
# 2. No id comes twice, and then the line is right. Test with repeats.
# 3. Lookup: the rows of all tokens that did not come. Output: none, as p_v is never exactly 0.
# 4. It is Σ_c h_c² / C = 1. Independence of the entries of E made the variance of the sum the sum of the variances.
# 5. A tied table of size 1, or any other way to logits that are far too large: ln 29 is 3.4.
#
# The exercise, second part: Var(z) = σ² C / C = σ², so the table must have size 1. The input is then that of the blue
# form, σ √C = √C / √C = 1: the same function as the paper's, written with the factor in another place.
