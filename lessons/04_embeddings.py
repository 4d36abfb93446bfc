# %% [markdown]
# # Lesson 04: One matrix that reads and writes
#
# [![Both embeddings and the output](../plots/04_embeddings_map.png)](../plots/00_reverse_whole.png)
#
# **How does a letter become a vector, and what does a matrix learn if it is used in three places?**
#
# 10 min, with a pencil 30, going deeper 7 · runs in 45 s (fast: 9 s) · needs 01, 02, 03 · difficulty 2 of 5 · paper:
# section 3.4
#
# ## A letter is not a number
#
# Our tiny model reads "stop" and writes "pots", and its vocabulary has seven tokens: pad, bos, eos (for padding,
# beginning and end), «o», «p», «s» and «t». A token's place in this list, from 0, is its id, so "stop" is 5, 6, 3, 4.
# These numbers are names, but a linear layer (lesson 02) would treat them as quantities: «t» would always count 6/5 as
# much as «s». So each token gets its own vector, C = 6 numbers that gradient descent can choose freely. The V = 7
# vectors are the rows of one matrix E, the *embeddings*.
#
# The output has the opposite problem. The decoder's last layer returns six numbers for each position, and each of the
# seven tokens needs a score. The paper uses the same matrix, so the row of «o» has three jobs:
#
# * the encoder reads it, in "stop";
# * the decoder reads it, in bos, «p», «o», «t», «s»;
# * the output compares with it, to decide whether to write «o».
#
# Which of the three jobs teaches these six numbers most?

# %% Imports
import dataclasses
from functools import partial

from support.lab import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    ROWS,
    SOURCE,
    TARGET_IN,
    VOCABULARY,
    begin,
    error,
    plt,
    running_example,
    show,
)
from support.pictures import grids

import numpy as np

lesson = begin("04_embeddings")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) Two tokens in a batch have equal rows in x and in dy. What do they add to dW, and what do they get in dx?
# 2. (03) One token in the vocabulary is never the right one. Does its logit get a gradient, and in which direction?
# 3. (01) A model uses one number in three places, and you move it by an imaginary step. What does that measure?
#
# (The answers are at the end.)

# %% [markdown]
# ## Who teaches the row of «o»?
#
# 1. Let the gradients `de` of the four vectors of the word "toot" be (1, 1), (10, 10), (100, 100) and (1000, 1000).
#    What are the gradients of the rows of «t» and «o» in E?
# 2. Which job sends the largest gradient to the row of «o»?
# 3. On the way in, the paper multiplies the vectors by √C. One model learns to copy with this factor, and another
#    without it. How do their losses compare?

# %%
toot, de = [6, 3, 3, 6], np.array([[1, 1], [10, 10], [100, 100], [1000, 1000]])
rows_of_t_and_o = ...  # your line: [[?, ?], [?, ?]], the gradients of the rows of «t» and «o»
lesson.judge("rows_of_t_and_o", rows_of_t_and_o)
guess_ratio = ...  # the loss without the factor, divided by the loss with it

# %% [markdown]
# ## Looking up is multiplying
#
# Rows 5, 6, 3 and 4 of E are the vectors e of the source.

# %%
E = example["E"]
V, C = E.shape
source_ids, target_ids = [VOCABULARY.index(token) for token in SOURCE], [VOCABULARY.index(token) for token in TARGET_IN]
e = E[source_ids]
one_hot = np.eye(V)[source_ids]
show("one-hot rows (S, V)", one_hot, SOURCE, VOCABULARY, digits=0)
lesson.check("lookup = product with one-hot rows", error(one_hot @ E, e), 0.0)

# %% [markdown]
# ![The embeddings E and the vectors e of "stop"](../plots/04_embeddings_numbers.png)
#
# A matrix product gives the same rows if each id is written as a *one-hot* row: zeros, and a 1 in the column of the
# id. In the product with E, this 1 picks the row of that token:
#
#     one_hot_nw = 1[ids_n = w]                         n counts the tokens that are read
#     e_nc = Σ_w one_hot_nw E_wc = E[ids_n, c]          e = one_hot E
#
# So a lookup is a linear layer without a bias, and E can learn. (Nobody computes it like this: for the paper's batches
# of 25,000 tokens, V = 37,000 and C = 512, it takes 474 billion products, nearly all with 0.)
#
# > **2003.** Yoshua Bengio, Réjean Ducharme, Pascal Vincent and Christian Jauvin gave each word of a language model its
# > own vector, learned along with everything else. Ten years later word2vec made such vectors famous. That the output
# > can use the same matrix was discovered twice in 2016, by Ofir Press and Lior Wolf and by Hakan Inan and colleagues.
#
# ## The way back: every use adds
#
# An entry of e depends on a single entry of E:
#
#     ∂e_nj/∂E_wc = 1[ids_n = w] 1[j = c]
#
# But E_wc may be read many times, so the chain rule adds over all n and j:
#
#     dE_wc = Σ_n Σ_j de_nj 1[ids_n = w] 1[j = c]
#           = Σ_n 1[ids_n = w] de_nc                    dE = one_hotᵀ de
#
# Row w of dE is the sum of all rows of de where token w was read, and a token that wasn't read gets 0. In "toot", «t»
# gets (1, 1) + (1000, 1000) = (1001, 1001), and «o» gets (110, 110) (guess 1).
#
# `dE[ids] += de` looks like this sum, but NumPy copies the rows dE[ids], adds de, and writes the copy back, so when an
# id appears twice, the second write overwrites the first. Then «t» gets (1000, 1000), «o» gets (100, 100), and there is
# no error message. A test with "stop", in which no letter appears twice, passes. But among 25,000 tokens, some as
# common as "the", it loses 71 % of the gradients. `np.add.at` adds them all.


# %%
def embed_backward(de, ids, V):
    dE = np.zeros((V, de.shape[-1]))
    np.add.at(dE, ids, de)
    return dE


right, wrong = embed_backward(de, toot, V), np.zeros((V, 2))
wrong[toot] += de
print("rows of t and o, right:", right[[6, 3]].tolist(), " wrong:", wrong[[6, 3]].tolist())

# %% [markdown]
# ## The way out
#
# The last layer of the decoder returns y, (T, C), and the logit of a token is the dot product of a row of y with the
# token's row of E:
#
#     z_tw = Σ_c y_tc E_wc                z = y Eᵀ          (T, V)
#
# In row p→o, y is (0.654, 2.738, −3.596, −0.190, −2.599, 1.957), which scores 5.56 with the row of «o», 4.70 with that
# of «p», and at most 0.56 with the others. The softmax of lesson 03 makes 70 % and 30 % of this.
#
# **Your line.** This is a linear layer, too, with the weights Eᵀ, so what does it send to E?

# %%
y, dz = example["decoder.norm3.y"], example["output.dz"]  # (T, C) and (T, V)
dE_output = ...  # your line: (V, C), from y and dz
lesson.judge("dE_output", dE_output)

# %% [markdown]
# Both of its gradients are the ones from lesson 02:
#
#     dy_tc = Σ_w dz_tw E_wc              dy = dz E
#     dE_wc = Σ_t dz_tw y_tc              dE = dzᵀ y
#
# Here every row of dE gets something, even for a token that never appears, because dz = (p − p*) / N, and p is never
# exactly 0.

# %% [markdown]
# ## Three gradients for one row
#
# Pretend that each job has its own matrix, E_source, E_target and E_output, and that the three are tied: if E_wc moves
# by a small h, it moves in all three. To first order, the loss moves by h dE_source_wc + h dE_target_wc + h
# dE_output_wc, and if you divide by h,
#
#     dE = dE_source + dE_target + dE_output
#
# The rule is general: **whenever a number is used in several places, the gradients of all uses add.** In code, each
# use does `dE += ...`, and never `dE = ...`.

# %%
z, dy = y @ E.T, dz @ E
parts = {  # lesson 12 computes de and dz
    "source": embed_backward(example["source.de"], source_ids, V),
    "target": embed_backward(example["target.de"], target_ids, V),
    "output": dz.T @ y,
}
dE = parts["source"] + parts["target"] + parts["output"]
show("logits z (T, V)", z, ROWS, VOCABULARY, digits=2)
for use, part in parts.items():
    print(f"{use}: the gradient of the row of o has the length {np.linalg.norm(part[3]):.2f}")

# %% [markdown]
# ![The three parts of dE and their sum](../plots/04_embeddings_parts.png)
#
# Nearly all of the gradient of the row of «o» comes from the source: that part has the length 1.64, while the output
# sends 0.30, and the target 0.07 (guess 2). So the row of «o» isn't taught where the model hesitates between «o» and
# «p», but where the encoder reads the «o». This is one word, late in training.
#
# ## One step, felt in three places
#
# The library's model has one matrix E in three places, and an imaginary step of an entry is felt in all three.

# %%
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.gradcheck import complex_step

model, _, source, target_in, target_out = load_example()
logits, cache = model.forward(source, target_in)
model.backward(cross_entropy_backward(1.0, cross_entropy(logits, target_out)[1]), cache)
lesson.check("dE, against the library's", error(dE, model.output.E.grad), 1e-13)


def loss(matrix):
    """The loss of the library's model, with `matrix` as its E."""
    model.output.E.data = matrix
    return cross_entropy(model(source, target_in), target_out)[0]


lesson.check("dE, against the complex step", error(dE, complex_step(loss, E)), 1e-13)

rng = np.random.default_rng(5)
ids, upstream, matrix = rng.integers(7, size=8), rng.standard_normal((8, 7)), rng.standard_normal((7, 6))
reading = embed_backward(upstream @ matrix, ids, 7)
writing = upstream.T @ matrix[ids]
true = complex_step(lambda matrix: (upstream * (matrix[ids] @ matrix.T)).sum(), matrix)
lesson.check("a random matrix that reads and writes: the parts add", error(reading + writing, true), 1e-14)

# %% [markdown]
# ## Why times √C?
#
# The encoder doesn't get e itself, but
#
#     x = √C e + PE                    and so, on the way back: de = √C dx
#
# PE is a fixed table that says where a letter is in the word (lesson 09). For the «o» of "stop", the first number of x
# is √6 · (−0.25) + 0.909 = 0.297. Why √C? The paper doesn't say. The usual reason has two halves.
#
# [In the explorer: raise the first number of the row of «o» by 0.1. By how much does x grow?
# Guess first.](../minitransformer/explorer/page/index.html#embed=source.x[2,0]&turn=E[3,0])
#
# **The way out wants small numbers.** Before training, let the entries of E be independent, with mean 0. Take y_t as
# given, with entries of mean square 1, so Σ_c y_tc² = C (lesson 10). The variances of independent terms add:
#
#     Var(z_tw) = Σ_c y_tc² Var(E_wc) = C Var(E_wc)
#
# Logits of size 1 need Var(E_wc) = 1/C, so entries of size 1/√C, which for C = 512 is 0.044.
#
# **The way in wants larger ones.** PE consists of pairs, sin and cos of the same angle. Because sin² + cos² = 1, the
# mean square of its entries is 1/2, while the mean square of e is 1/C. The token's share of the mean square of x is
# then:
#
#     without √C     (1/C) / (1/C + 1/2) = 2 / (2 + C)      0.39 % for C = 512
#     with √C        1 / (1 + 1/2) = 2/3                    66.7 % for any C
#
# One matrix, two sizes, and √C is the exchange rate. Without it, so the story goes, the tokens drown in their
# positions. Let's drown them.
#
# ## Three models learn to copy
#
# A small Transformer (C = 64, one layer in each stack) learns to copy words of up to 8 letters, in three versions, from
# two random starts:
#
#     the paper's     E of size 1/√C, times √C on the way in
#     no factor       E of size 1/√C
#     size 1          E of size 1: the paper's x, but logits √C times as large

# %%
from minitransformer.data import get_task
from minitransformer.models import Transformer, named_config
from minitransformer.training import TrainingSettings, noam, train

task, width = get_task("copy"), 64
task.max_len = 8
steps, starts = lesson.pick(full=200, fast=20), lesson.pick(full=2, fast=1)
forms = {"the paper's": (True, 1), "no factor": (False, 1), "size 1": (False, np.sqrt(width))}
losses, share = {}, {}
for name, (scaled, larger) in forms.items():
    for start in range(starts):
        config = named_config("tiny", len(task.vocabulary), dropout=0.0, num_layers=1, scale_embeddings=scaled)
        model = Transformer(config, seed=start, dtype="float64")
        model.output.E.data *= larger
        schedule = partial(noam, d_model=width, warmup=100, factor=0.3)
        settings = TrainingSettings(steps=steps, batch_size=32, seed=start)
        losses[name, start] = train(model, task, schedule=schedule, settings=settings, num_threads=1).losses
        token = (model.output.E.data**2).mean() * (width if scaled else 1)
        share[name, start] = token / (token + 1 / 2)
last = {name: np.mean([losses[name, start][-20:] for start in range(starts)]) for name in forms}
for name in forms:
    print(f"{name:12s} loss in the last 20 steps {last[name]:.3f}, the tokens' share of x {share[name, 0]:.1%}")
if not lesson.fast:
    lesson.compare("loss without the factor over the paper's", guess_ratio, last["no factor"] / last["the paper's"])

# %% [markdown]
# ![Learning to copy, with and without √C](../plots/04_embeddings.png)
#
# Orange starts far above the dotted line and ends highest, while blue falls first, and green overtakes it between steps
# 100 and 140.
#
# ## The tokens that should drown
#
# The tokens that should drown swim best. After 200 steps the model without the factor has a loss of 0.02 nats, and the
# paper's form has 0.11 (guess 3). Did E grow until the tokens were loud enough? No: their share of x begins at 3 % and
# ends at 4.5 %. Our explanation is that PE is loud, but the same in every word, so the linear layers can look in
# directions where PE is small.
#
# Size 1 is bad, with 0.36: the way out does want small numbers. But "without √C the tokens drown" isn't a law, and one
# easy task doesn't show that √C is useless in translation.
#
# **In papers:** one matrix for input and output is *weight tying*, its job at the output the *unembedding* (Elhage et
# al. 2021) or *LM head*, and the sum over repeated ids a *scatter-add*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 05.
#
# ### How much the wrong line loses
#
# We draw 25,000 tokens with roughly the frequencies of words in a language, where the tenth most common word appears a
# tenth as often as the first (Zipf's law). Only 7,310 of the tokens are different. The wrong line keeps one gradient
# for each of these and loses 71 %. The most common token comes 2,245 times, and learns only from the last time.

# %%
frequency = 1 / np.arange(1, 37001)
drawn = np.random.default_rng(4).choice(37000, size=25000, p=frequency / frequency.sum())
different, most = len(np.unique(drawn)), np.bincount(drawn).max()
print(f"25,000 tokens: {different:,} different ones, and the most common one comes {most:,} times")

# %% [markdown]
# ### A fresh model repeats itself
#
# A fresh model with a tied matrix bets that the next token is the one it has just read. Its y still contains x,
# because layers add to what they get (lesson 11), and x contains √C E_w for the token w that was read. The output takes
# the dot product with E_w. The squares of C entries of variance 1/C add up to about 1, so this logit contains up to √C,
# while all others have size 1. The bet nearly always loses, so the first loss is higher than ln V.
#
# To see the three gradients separately, we give the library's model three separate matrices that are equal.


# %%
def with_three_matrices(model):
    """The same model, but the source, the target and the output have an E each."""
    three = Transformer(dataclasses.replace(model.config, tie_embeddings=False), dtype="float64")
    state = model.state_dict()
    state["target_embedding.tokens.E"] = state["output.E"] = state["source_embedding.tokens.E"]
    three.load_state_dict(state)
    embeddings = three.source_embedding.tokens, three.target_embedding.tokens
    return three, {"source": embeddings[0].E, "target": embeddings[1].E, "output": three.output.E}


def fresh(scaled):
    """A fresh model: its probability of repeating the token just read, and the lengths of the three parts of dE."""
    config = named_config("tiny", len(task.vocabulary), dropout=0.0, num_layers=1, scale_embeddings=scaled)
    batch = task.batch(np.random.default_rng(1), 32)
    model, matrices = with_three_matrices(Transformer(config, dtype="float64"))
    logits, cache = model.forward(*batch.inputs)
    _, cache_loss = cross_entropy(logits, batch.targets)
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    p = cache_loss.p.reshape(logits.shape)
    repeats = np.take_along_axis(p, batch.target_in[..., None], axis=-1)[batch.target_in > 0]
    return repeats.mean(), [np.linalg.norm(each.grad) for each in matrices.values()]


bet, lengths = {}, {}
for scaled in (True, False):
    bet[scaled], lengths[scaled] = fresh(scaled)
    print(f"√C {scaled!s:5}: bets {bet[scaled]:.0%}; source, target and output send", np.round(lengths[scaled], 2))

# %% [markdown]
# A fresh model of our test bets 41 % on the token that it has just read. Without √C it bets 4 %, where 1/V is 3 %. The
# first loss of the paper's form is 4.35 nats, above ln V = 3.37.
#
# The order of the three jobs is different here, too. Treat each part of dE as one long vector. That of the output has
# the length 1.42, that of the target 0.77 and that of the source 0.47. Without √C the two inputs have 0.09 each,
# because the factor is in the backward pass too.
#
# ### The first loss of a large vocabulary
#
# PyTorch's `nn.Embedding` draws entries of size 1. Tie such a matrix to the output at C = 512, and the logits have size
# √512 = 22.6. With V = 37,000 the first loss is then 93 nats, although ln V = 10.5. The model is sure of nonsense. With
# entries of size 1/√C it is 11.0. Even the half above ln V can be derived. If z is normal with variance 1, the mean of
# exp(z) is exp(1/2). So ln Σ_w exp(z_w) is about ln V + 1/2, and the right token's z is 0 on average.

# %%
rng = np.random.default_rng(8)
table, rows = rng.standard_normal((37000, 512), dtype=np.float32), rng.standard_normal((256, 512), dtype=np.float32)
rows /= np.sqrt((rows**2).mean(axis=1, keepdims=True))  # mean square 1
answers, first_loss = rng.integers(1, 37000, size=256), {}
for spread in (1.0, 1 / np.sqrt(512)):
    logits = (spread * rows) @ table.T
    first_loss[spread] = float(cross_entropy(logits, answers)[0])
    print(f"entries of size {spread:.3f}: logits of size {logits.std():5.2f}, loss {first_loss[spread]:5.2f}")

# %% [markdown]
# ### It does not make up for √D
#
# Some texts say that √C makes up for the division by √D in attention. All you need to know about attention here (lesson
# 05) is that it takes dot products of two vectors, both linear in x, and divides them by √D, with D = 64 in the paper.
# So the factor counts twice: a dot product of two tokens grows by C = 512, not by √512, and the division is by √64 = 8.
# Nothing cancels.

# %%
left, right = rng.standard_normal((2, 512, 64)) / np.sqrt(512)  # two linear maps
first, second = rng.standard_normal((2, 512)) / np.sqrt(512)  # two tokens
growth = ((np.sqrt(512) * first @ left) @ (np.sqrt(512) * second @ right)) / ((first @ left) @ (second @ right))
lesson.check("a dot product of two tokens grows by C", error(growth, 512.0), 1e-12)

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 15 minutes. Write `embed_backward` without `np.add.at` and without a product. Sort the ids with
#    `np.argsort(ids, kind="stable")`, find where each run of equal ids begins, and sum the runs with `np.add.reduceat`.
#    Compare with the function above, for ids that repeat and ids that never appear.
# 2. Pencil, 10 minutes. T5 takes the embeddings as they are, and multiplies y by 1/√C before a tied output. What size
#    must E have for logits of size 1? Which version in our test does the input then resemble?
#
# Exercises with a checker: `minitransformer start 04`.
#
# ## Questions
#
# 1. A colleague writes `E.grad = ...` in each of the three backward functions. Which part survives, and does the model
#    still learn?
# 2. A gradient check with the ids 3, 1, 4, 5 passes for `dE[ids] += de`. Why?
# 3. Which rows of dE are 0 for the lookup, and which for the output?
# 4. Your fresh model with V = 29 has a first loss of 27.1. What is the likely mistake?
# 5. *Somewhere else.* A store has a vector for each of 10,000 customers and for each of 500 products, and predicts a
#    purchase from their dot product. A batch has 64 purchases, two of them by the same customer. Which rows of the
#    table of customers get a gradient, and what does `d_customers[ids] += d` lose?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Each adds the same product to dW, which therefore counts twice. In dx each gets its own row, and the two rows are
#    equal.
# 2. Yes: its p* is 0, so the gradient p/N is positive, and descent pushes the logit down.
# 3. The sum of the derivatives along all three paths, because the step is felt in all three places.
#
# ### The questions
#
# 1. The part of the backward function that runs last, which is the source's lookup. Rows of tokens that never appear in
#    a source then stand still. The other layers keep learning, so the loss may well fall.
# 2. No id appears twice, so the line is right. Test with repeats.
# 3. Lookup: the rows of all tokens that weren't read. Output: none, because p is never exactly 0.
# 4. A tied matrix of size 1, or something else that makes the logits far too large: ln 29 is 3.4.
# 5. Only the rows of the 63 customers in the batch. The customer who bought twice gets the sum of two gradients, of
#    which the line keeps only the second. The table of products loses more, since many people buy the same things.
#
# The exercise, second part: with y/√C the variance of a logit is the variance of E_wc, so E must have size 1. The input
# is then √C times as large as in "no factor", as in the paper's form. It is the same function as the paper's, with the
# factor written somewhere else.

# %%
# the pictures of this lesson
row_of_o = {"E": [(3, c) for c in range(C)], "e": [(2, c) for c in range(C)]}
figure = grids({"E (V, C)": E, "e (S, C)": e}, labels={"V": VOCABULARY, "S": SOURCE}, highlight=row_of_o)
lesson.save(figure, "numbers")

values = {**{f"dE_{use} (V, C)": part for use, part in parts.items()}, "dE (V, C)": dE}
names = ["dE_source", "dE_target", "dE_output", "dE"]
marked = {name: [(3, c) for c in range(C)] for name in names}
figure = grids(values, labels={"V": VOCABULARY}, gradients=names, highlight=marked, between="++=")
lesson.save(figure, "parts")

figure, axis = plt.subplots(figsize=(7.2, 3.4))
for (name, start), curve in losses.items():
    smooth = np.convolve(curve, np.ones(10) / 10, mode="valid")
    color = {"the paper's": BLUE, "no factor": GREEN, "size 1": ORANGE}[name]
    style, label = ("--", None) if start else ("-", name)
    axis.plot(np.arange(10, steps + 1), smooth, style, color=color, label=label)
axis.axhline(np.log(len(task.vocabulary)), color=GREY, linestyle=":", label="ln V, all tokens equally likely")
axis.set(yscale="log", xlabel="training step", ylabel="loss (nats), mean of 10 steps")
axis.set_title("Learning to copy, with and without √C (dashed: a second start)")
axis.legend()
lesson.save(figure)
lesson.finish(globals())
