# %% [markdown]
# # Lesson 14: Copy and reverse: learning every position at once
#
# * Question: a model writes one token at a time; how can it be trained on all tokens of an answer at once?
# * You derive: log p(y|x) as a sum over positions; why the answer may be an input; the gradient of a padded batch
# * Reading: 31 min, going deeper 0 min
# * Run: 40 s (fast: 4 s)
# * Needs: 03, 07, 09, 12, 13
# * Difficulty: 3 of 5
# * Paper: sections 3.1, 3.5 and 5.4

# %%
import itertools
from lab import BLUE, GREY, ORANGE, begin, error, plt

import numpy as np

from minitransformer.data import get_task
from minitransformer.data.tasks import make_batch
from minitransformer.decoding import greedy_decode
from minitransformer.evaluation import decode_and_score
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.progress import tqdm
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, noam, training_step
from minitransformer.vocabulary import BOS, EOS, PAD

lesson = begin("14_copy_reverse")

# %% [markdown]
# You have every part: attention and its masks, many heads, positions, norms, the whole model (lesson 12), Adam and its
# schedule (lesson 13). Today you write the loop that joins them, and train two models with it. One learns to copy a
# word, `abca -> abca`, the other to reverse it, `abca -> acba`. Both tasks are so simple that we know beforehand where
# a good model should look, so we can open it and compare.
#
# Words used throughout. The *source* x is what the encoder reads: letters and, behind them, the token eos, "end of
# sequence". The *answer* y = y₀ y₁ y₂ ... is what the decoder is to write: letters, and again eos. The token bos,
# "begin of sequence", stands before the first one. Sequences of a batch are filled up to one length with padding. In
# the library's vocabularies these three have the ids PAD = 0, BOS = 1, EOS = 2; letters begin at 3.
#
# ## Predict
#
# 1. The trained copy model is in the middle of a word. You replace all letters that it has written so far by random
#    ones. How many of the letters that it writes next are still right? (Answered under "The surprise".)
# 2. Both models are taught words of 1 to 8 letters. How many words of 9 letters do they get right, how many of 12, and
#    which of the two tasks carries further? (Answered under "The picture".)
# 3. In training each answer began with bos. In decoding, somebody begins with eos, as some libraries do. What
#    breaks: nothing, the first letter, or the whole word? (Answered under "Three mistakes, measured".)

# %% [markdown]
# ## Small numbers
#
# The source is `ab`, the answer of the reverse task is `b a eos`. Suppose a model gives the right token, one place
# after the other, the probabilities 0.7, 0.8 and 0.9. Each is conditional: 0.8 is how much it believes in `a`, given
# the source and given that `b` stands before it. The whole answer then has the probability
#
#     p(y|x) = 0.7 · 0.8 · 0.9 = 0.504        ln p(y|x) = ln 0.7 + ln 0.8 + ln 0.9 = −0.685
#
# A second pair in the same batch has the source `b` and the answer `b eos`, with the probabilities 0.5 and 0.4, so that
# ln p(y|x) = −1.609. It is shorter, so it gets one place of padding. A model has to say something at that place, too;
# say it gives the token "padding" the probability 0.1. What is the loss of this batch? Three answers are in use:
#
#     mean over the 5 tokens that count          (0.685 + 1.609) / 5            = 0.459
#     mean over all 6 places                     (0.685 + 1.609 + 2.303) / 6    = 0.766
#     mean of each answer's own mean             (0.685 / 3 + 1.609 / 2) / 2    = 0.517
#
# The first is what this library computes, a loss per token. The second asks the model to predict filling. The third
# lets a token of a short answer weigh more than one of a long answer.

# %%
first, second, filling = np.log([0.7, 0.8, 0.9]), np.log([0.5, 0.4]), np.log(0.1)
over_tokens = -(first.sum() + second.sum()) / 5
over_places = -(first.sum() + second.sum() + filling) / 6
of_means = -(first.mean() + second.mean()) / 2
print(f"mean over tokens {over_tokens:.3f}, over all places {over_places:.3f}, of means {of_means:.3f}")
lesson.quote("p(y|x) = 0.7 · 0.8 · 0.9 = 0.504", 0.7, 0.8, 0.9, np.exp(first.sum()))
lesson.quote("ln 0.7 + ln 0.8 + ln 0.9 = −0.685", 0.7, 0.8, 0.9, first.sum())
lesson.quote("ln p(y|x) = −1.609", second.sum())
lesson.quote("(0.685 + 1.609) / 5            = 0.459", -first.sum(), -second.sum(), 5, over_tokens)
lesson.quote("(0.685 + 1.609 + 2.303) / 6    = 0.766", -first.sum(), -second.sum(), -filling, 6, over_places)
lesson.quote("(0.685 / 3 + 1.609 / 2) / 2    = 0.517", -first.sum(), 3, -second.sum(), 2, 2, of_means)

# %% [markdown]
# ## The derivation
#
# ### Part 1: the probability of an answer is a product
#
# By definition of a conditional probability p(a, b) = p(a) p(b | a). Take a = y₀ and b = y₁, with everything given x:
#
#     p(y₀, y₁ | x) = p(y₀ | x) p(y₁ | y₀, x)
#
# Now take a = (y₀, y₁) and b = y₂, and put the line above in for p(a | x):
#
#     p(y₀, y₁, y₂ | x) = p(y₀ | x) p(y₁ | y₀, x) p(y₂ | y₀, y₁, x)
#
# and so on. Write T for the number of tokens of the answer, eos included, and y_<t for y₀ ... yₜ₋₁, all tokens before
# place t (none for t = 0). Then
#
#     p(y | x) = Πₜ p(yₜ | y_<t, x)           t = 0 ... T − 1          (1)
#
# This is no assumption about language. It holds for every distribution. And it holds the other way round: whatever
# conditional probabilities a model gives, as long as each of them sums to 1 over the V tokens of the vocabulary, the
# products are probabilities: over all sequences of T tokens they sum to 1. For two tokens, sum the inner token first:
#
#     Σ_y₀ Σ_y₁ p(y₀ | x) p(y₁ | y₀, x) = Σ_y₀ p(y₀ | x) [ Σ_y₁ p(y₁ | y₀, x) ] = Σ_y₀ p(y₀ | x) · 1 = 1
#
# For T tokens do the same T times, from the last to the first. So a softmax at each place is all a model needs.

# %% [markdown]
# ### Part 2: the logarithm makes the places independent
#
# The best weights are those that make the right answers likeliest. The logarithm of (1) is a sum:
#
#     ln p(y | x) = Σₜ ln p(yₜ | y_<t, x)                              (2)
#
# Look at one term. To compute it we need x, the tokens before place t, and the right token yₜ. When the model *writes*,
# the tokens before place t are its own, so it must have written them first. When the model is *trained*, they are in
# the data. No term waits for another: all T of them can be computed at the same time. This is called *teacher
# forcing*: whatever the model would have said at place t − 1, at place t it is given the right yₜ₋₁.
#
# It sounds like cheating, and every learner asks: how is it fair that the answer is an input? Because (2) says so. The
# term of place t asks "what comes after y_<t?", and y_<t is what the question consists of. It would be unfair only if
# the model saw yₜ itself, or anything behind it.
#
# Let θ be any weight of the model. As (2) is a sum, so is the derivative of the loss L = −(1/T) ln p(y | x):
#
#     dL/dθ = −(1/T) Σₜ d/dθ ln p(yₜ | y_<t, x)                        (3)
#
# One answer of T tokens is T training examples, and their gradients add.

# %% [markdown]
# ### Part 3: shift by one, and mask
#
# A decoder with T rows gets T input tokens u₀ ... u_T₋₁ and gives T rows of logits z₀ ... z_T₋₁. We want row t to give
# the probabilities of yₜ, so it must know y_<t and no more. Two things together do it.
#
# * The shift: u₀ = bos and uₜ = yₜ₋₁. The input is the answer, moved one place to the right; its last token falls out.
# * The causal mask (lesson 07): row t may look at u₀ ... uₜ and at nothing behind.
#
# So row t knows u₀ ... uₜ = bos, y₀, ..., yₜ₋₁: that is y_<t, exactly. For the answer `b a eos`:
#
#     place t         0      1      2
#     input uₜ        bos    b      a          "target in"
#     right yₜ        b      a      eos        "target out"
#     knows           bos    bos b  bos b a    (and the source)
#
# Leave out the shift, and row t reads uₜ = yₜ: the right token is its input. Leave out the mask, and row t reads
# uₜ₊₁ = yₜ: the right token is one place further on. Either alone is enough to make the loss worthless.
#
# The same table shows why one pass suffices. Cut the input behind place t and run the decoder on u₀ ... uₜ alone. In
# the first layer, row t of the self-attention gathers from rows 0 ... t only, and everything else (cross-attention,
# norms, feed-forward) works on each row alone. So rows 0 ... t leave the layer as they do with the long input, enter
# the next layer alike, and so on to the logits: zₜ is the same. T passes over growing inputs and one pass over all of
# it are the same computation. Under "Checked" both are done, forward and backward.

# %% [markdown]
# ### Part 4: the gradient of a padded batch
#
# In a batch of B answers, let M be the number of tokens that count, which is all but the padding. Number the places
# of the batch by n, from 0 to B·T − 1. Place n has the right token yₙ, the logits zₙ (one for each of the V tokens),
# the probabilities pₙ = softmax(zₙ), and the wanted distribution qₙ. Lesson 03 smoothed the latter a little: rate ε,
#
#     qₙᵥ = (1 − ε) 1[v = yₙ] + ε/V           1[...] is 1 if what it says is true, else 0;  Σᵥ qₙᵥ = 1
#     L = −(1/M) Σₙ Σᵥ qₙᵥ ln pₙᵥ             the sum over n leaves out the padding
#
# With ε = 0 this is (2) with a minus sign, averaged over all tokens that count. Now differentiate by one logit, that of
# token k at place n. Only the terms of this place contain it.
#
#     ln pₙᵥ = zₙᵥ − ln Σⱼ exp(zₙⱼ)                                    j runs over all V tokens
#     d ln pₙᵥ / dzₙₖ = 1[v = k] − exp(zₙₖ) / Σⱼ exp(zₙⱼ) = 1[v = k] − pₙₖ
#     dL/dzₙₖ = −(1/M) Σᵥ qₙᵥ (1[v = k] − pₙₖ)
#             = −(1/M) (qₙₖ − pₙₖ Σᵥ qₙᵥ)
#             = (pₙₖ − qₙₖ) / M                                        (4)
#
# because the q of a place sum to 1. At padding, L does not contain zₙ at all, so there the gradient is 0. Divide by M,
# not by B and not by B·T: M is different in every batch, and it is what L was divided by.

# %% [markdown]
# ### Part 5: writing
#
# To write, take (1) from left to right. Begin with bos. Row 0 gives the probabilities of y₀; take the likeliest token
# and call it ŷ₀ (the hat marks what the model has said). Read bos ŷ₀; the last row gives the probabilities of the next
# token; take the likeliest; and so on, until it says eos. This is *greedy decoding*. Training needs one pass for an
# answer, writing needs T of them, one after the other, since now uₜ = ŷₜ₋₁ is not known before.
#
# Two things are no longer as they were in training. The letters before place t may be wrong, and no training example
# ever showed a wrong one. And u₀ is whatever we put there: only if it is bos does row 0 see what it has learnt from.
#
# ## From scratch
#
# The shift, the loss with its gradient (4), the writing, the score, and the loop. The score is strict: an answer counts
# as right only if every token is right, eos included (*exact match*). Model, Adam and schedule are the library's, which
# lessons 12 and 13 have rebuilt.


# %%
def shift(answers):
    """Lists of ids, without bos and eos -> target in, target out, both (B, T), padded at the end."""
    T = max(len(ids) for ids in answers) + 1
    target_in, target_out = np.full((2, len(answers), T), PAD)
    for b, ids in enumerate(answers):
        target_in[b, : len(ids) + 1] = [BOS, *ids]
        target_out[b, : len(ids) + 1] = [*ids, EOS]
    return target_in, target_out


def log_softmax(z):
    """ln p = z - ln sum exp z, for logits z (..., V)."""
    shifted = z - z.max(axis=-1, keepdims=True)  # the same p, and exp cannot overflow
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def loss_and_gradient(z, y, eps):
    """Logits z (B, T, V), right tokens y (B, T) -> L, a number, and dz (B, T, V)."""
    V = z.shape[-1]
    q = (1 - eps) * np.eye(V, dtype=z.real.dtype)[y] + eps / V  # (B, T, V)
    log_p = log_softmax(z)
    counts = y != PAD  # (B, T)
    M = int(counts.sum())
    loss = -((q * log_p).sum(axis=-1) * counts).sum() / M
    dz = (np.exp(log_p) - q) * counts[..., None] / M  # equation (4)
    return loss, dz


# %%
def write(model, source, room, start=BOS):
    """Greedy answers to source (B, S) -> ids (B, up to room), padding behind eos."""
    B = len(source)
    written = np.full((B, 1), start)
    finished = np.zeros(B, dtype=bool)
    while written.shape[1] <= room and not finished.all():
        logits, _ = model.forward(source, written)  # reads everything again, for each token
        token = np.where(finished, PAD, logits[:, -1].argmax(axis=-1))
        written = np.concatenate([written, token[:, None]], axis=1)
        finished |= token == EOS
    return written[:, 1:]


def exact_match(written, y):
    """The share of rows of written (B, any) that say y (B, T) to the last token."""
    wide = np.full((len(y), max(written.shape[1], y.shape[1])), PAD)
    wanted = wide.copy()
    wide[:, : written.shape[1]], wanted[:, : y.shape[1]] = written, y
    return (wide == wanted).all(axis=1).mean()


# %% [markdown]
# The loop. `Adam` lays all weights side by side in one long vector, so that a step is a few operations on one array.
# `noam` is the learning rate of lesson 13: it rises for 100 steps, then falls like 1/√step.


# %%
def learn(model, task, steps, seed=1, change=lambda batch: batch):
    """Train the model -> the loss of each step. `change` may spoil a batch, for the experiments further down."""
    optimizer = Adam(model.parameters())
    rng = np.random.default_rng(seed)
    losses = []
    for step in tqdm(range(1, steps + 1), disable=None, unit="step"):
        batch = change(task.batch(rng, 64))
        optimizer.zero_grad()
        logits, cache = model.forward(batch.source, batch.target_in)
        loss, dlogits = loss_and_gradient(logits, batch.target_out, eps)
        model.backward(dlogits, cache)
        optimizer.lr = noam(step, model.config.d_model, warmup=100, factor=0.3)
        optimizer.step()
        losses.append(float(loss))
    return losses


# %% [markdown]
# ## Checked
#
# First the pieces. The shift against the library's; the gradient (4) against the complex step of lesson 01,
# `Im f(z + ih) / h` with h = 1e-30, entry by entry; the loss against the library's. One thing about the padding is
# exact and worth seeing: whatever the logits at padding are, the loss does not change, and the gradient there is 0.

# %%
rng = np.random.default_rng(0)
answers = [[5, 3, 4], [7], [6, 6, 8, 3, 5]]
target_in, target_out = shift(answers)
print("target in ", *target_in.tolist(), "\ntarget out", *target_out.tolist())
rows = np.full((3, 5), PAD)
for row, ids in zip(rows, answers, strict=True):
    row[: len(ids)] = ids
library = make_batch(rows, rows)
differing = (target_in != library.target_in).sum() + (target_out != library.target_out).sum()
lesson.check("entries of our shift that differ from the library's", differing, 0)

z, eps, h = rng.standard_normal((3, 6, 9)), 0.1, 1e-30
loss, dz = loss_and_gradient(z, target_out, eps)
by_complex_step = np.empty_like(dz)
for entry in np.ndindex(z.shape):
    nudged = z.astype(complex)
    nudged[entry] += 1j * h
    by_complex_step[entry] = loss_and_gradient(nudged, target_out, eps)[0].imag / h
lesson.check("dz against the complex step", error(dz, by_complex_step), 1e-13)
library_loss, library_cache = cross_entropy(z, target_out, eps, PAD)
lesson.check("loss against the library's", error(loss, library_loss), 1e-13)
lesson.check("dz against the library's", error(dz, cross_entropy_backward(1.0, library_cache)), 1e-13)
lesson.check("largest gradient at padding", np.abs(dz[target_out == PAD]).max(), 0)
z[target_out == PAD] += 100 * rng.standard_normal(9)
lesson.check("loss moves with logits at padding by", abs(loss_and_gradient(z, target_out, eps)[0] - loss), 0)

# %% [markdown]
# Then the claims of parts 1 to 3, on a small Transformer with random weights, in float64. With 5 tokens there are
# 5·5·5 = 125 answers of three tokens; their probabilities by (1) must sum to 1. One pass over an answer must give what
# T passes over its beginnings give: the logits, and by (3) every gradient. And a later token must not move an earlier
# row by one bit.

# %%
sizes = {"d_model": 8, "num_heads": 2, "d_ff": 12, "num_layers": 2, "dropout": 0.0, "max_len": 64}
small = Transformer(TransformerConfig(5, **sizes), seed=3, dtype="float64")
every = np.array(list(itertools.product(range(5), repeat=3)))  # (125, 3)
bos_first = np.concatenate([np.full((125, 1), BOS), every[:, :2]], axis=1)
source = np.repeat([[3, 4, 4, EOS]], 125, axis=0)
log_p = log_softmax(small(source, bos_first))  # (125, 3, 5)
log_p_right = np.take_along_axis(log_p, every[..., None], axis=-1)[..., 0]  # (125, 3): ln p(y_t | y_<t, x)
total = np.exp(log_p_right.sum(axis=1)).sum()
lesson.quote("5·5·5 = 125 answers", 5, 5, 5, len(every))
lesson.check("probabilities of the 125 answers sum to 1, but for", abs(total - 1), 1e-13)

# %%
model = Transformer(TransformerConfig(9, **sizes), seed=4, dtype="float64")
source = np.array([[5, 8, 3, 4, 6, EOS]])
u, y = shift([[6, 4, 3, 8, 5]])
T = y.shape[1]

logits, cache = model.forward(source, u)
_, dlogits = loss_and_gradient(logits, y, eps)
model.zero_grad()
model.backward(dlogits, cache)
at_once = {name: parameter.grad.copy() for name, parameter in model.named_parameters()}

model.zero_grad()
last_rows = []
for t in range(T):
    logits_t, cache_t = model.forward(source, u[:, : t + 1])  # the input cut behind place t
    last_rows.append(logits_t[0, -1])
    _, dlast = loss_and_gradient(logits_t[:, -1:], y[:, t : t + 1], eps)
    dlogits_t = np.zeros_like(logits_t)
    dlogits_t[:, -1:] = dlast / T
    model.backward(dlogits_t, cache_t)  # adds to the gradients
largest = max(np.abs(grad).max() for grad in at_once.values())
worst = max(np.abs(parameter.grad - at_once[name]).max() for name, parameter in model.named_parameters()) / largest
lesson.check("logits: one pass = T passes", error(np.array(last_rows), logits[0]), 1e-13)
lesson.check("all gradients: one backward = the sum of T", worst, 1e-13)

changed = u.copy()
changed[0, 3:] = [5, 5, 7]
moved = np.abs(model(source, changed) - logits)[0].max(axis=-1)  # of each row
lesson.check("rows 0 to 2 move, when input tokens 3 to 5 change, by", moved[:3].max(), 0)
lesson.check("row 3 does move, by", moved[3], at_least=1e-3)

# %% [markdown]
# The loop is checked against the library's `training_step`: same weights, same batches, three steps in float64. (Our
# loop does not clip the gradient; `training_step` with an infinite limit does not either.)

# %%
tasks = {}
for name in ("copy", "reverse"):
    tasks[name] = get_task(name)
    tasks[name].max_len = 8  # letters of a word in training
V = len(tasks["copy"].vocabulary)
choices = {"d_model": 32, "num_heads": 2, "d_ff": 128, "num_layers": 1, "max_len": 64}
config = TransformerConfig(V, **choices, dropout=0.0)
ours = learn(Transformer(config, seed=0, dtype="float64"), tasks["reverse"], steps=3)
other = Transformer(config, seed=0, dtype="float64")
optimizer, workers = Adam(other.parameters()), DataParallel(other, CrossEntropyLoss(eps), num_threads=1)
batches, theirs = np.random.default_rng(1), []
for step in (1, 2, 3):
    optimizer.lr = noam(step, config.d_model, 100, 0.3)
    theirs.append(float(training_step(tasks["reverse"].batch(batches, 64), optimizer, workers, max_norm=np.inf)[0]))
lesson.check("three steps of our loop = of the library's", error(ours, theirs), 1e-12)

# %% [markdown]
# ## Trained
#
# Both models: one encoder layer, one decoder layer, 32 features, two heads, 30,624 weights, 26 letters, words of 1 to 8
# letters. One word in ten is held out of training by a hash of its letters, whatever the seed; every exact match below
# is of such words. The smoothed loss has a floor, the entropy of q (lesson 03): with V = 29 and ε = 0.1 it is 0.639
# nats. A model that is certain and right ends there, not at 0.

# %%
wanted = np.full(V, eps / V)
wanted[0] += 1 - eps
floor = -(wanted * np.log(wanted)).sum()
lesson.quote("with V = 29 and ε = 0.1 it is 0.639", V, eps, floor)

models, losses, scores, tests = {}, {}, {}, {}
for name, task in tasks.items():
    models[name] = Transformer(config, seed=0)
    losses[name] = learn(models[name], task, lesson.pick(full=2000, fast=120))
    tests[name] = task.batch(np.random.default_rng(2), lesson.pick(full=500, fast=60), held_out=True, min_len=3)
    written = write(models[name], tests[name].source, room=11)
    scores[name] = exact_match(written, tests[name].target_out)
    print(f"{name:<8} loss of the last 100 steps {np.mean(losses[name][-100:]):.3f}, exact match {scores[name]:.1%}")
    for x, answer in list(zip(tests[name].source, written, strict=True))[:3]:
        print(f"         {task.decode(x)} -> {task.decode(answer)}")
lesson.quote("30,624 weights", models["copy"].num_parameters())

library_answers = greedy_decode(models["reverse"], tests["reverse"].source[:40], 11)
our_answers = write(models["reverse"], tests["reverse"].source[:40], 11)
lesson.check("our answers that differ from the library's", 1 - exact_match(our_answers, library_answers), 0.03)
library_score = decode_and_score(models["reverse"], tests["reverse"])[1]
lesson.check("our score against the library's", abs(scores["reverse"] - library_score), 0.02)
if not lesson.fast:
    for name in tasks:
        lesson.check(f"{name}: share of held-out words right to the last token", scores[name], at_least=0.94)
        lesson.check(f"{name}: loss above its floor by", np.mean(losses[name][-100:]) - floor, at_most=0.06)

# %% [markdown]
# Where should a good model look? The decoder gets letters only through its cross-attention, and a word of n letters has
# its letters at the source places s = 0 ... n − 1 and eos at s = n. To write yₜ, row t should look at
#
#     copy       s = t                   because yₜ = xₜ: the diagonal
#     reverse    s = n − 1 − t           because yₜ = xₙ₋₁₋ₜ: the anti-diagonal
#
# Mind what a row is. Row t of the map is the row that *writes* yₜ. Its own input is uₜ = yₜ₋₁, the token before. So the
# diagonal of the copy map does not mean that a letter looks at itself: the row that has just read `a` looks at the `b`
# that comes next. We measure, for each head, the mean weight on the expected place, over all letters of the test words.
# If a row spread its weight evenly over the n letters and eos, the share would be 1/(n + 1).


# %%
def cross_attention(model, batch):
    """The weights of the decoder layer's look at the source -> (B, H, T, S)."""
    return model.attention_weights(batch.source, batch.target_in).cross[0]


def share_on_expected(name, model, batch):
    """Mean weight on the expected place, over all letters of all words -> (H,)."""
    weights = cross_attention(model, batch)
    B, H, T, _ = weights.shape
    n = (batch.source != PAD).sum(axis=1)[:, None] - 1  # (B, 1): letters, without eos
    t = np.arange(T)[None, :]
    expected = np.where(t < n, t if name == "copy" else n - 1 - t, 0)  # (B, T)
    on_expected = np.take_along_axis(weights, expected[:, None, :, None], axis=-1)[..., 0]  # (B, H, T)
    letters = np.broadcast_to(t < n, (B, T))
    return np.array([on_expected[:, head][letters].mean() for head in range(H)])


n = (tests["copy"].source != PAD).sum(axis=1) - 1
even = (n / (n + 1)).sum() / n.sum()  # the mean of 1/(n + 1) over all letters
shares = {name: share_on_expected(name, models[name], tests[name]) for name in tasks}
for name, share in shares.items():
    heads = " and ".join(f"{value:.3f}" for value in share)
    print(f"{name:<8} share on the expected place, head by head: {heads}; spread evenly it would be {even:.3f}")
    if not lesson.fast:
        lesson.check(f"{name}: smallest share of a head", share.min(), at_least=0.75)

# %% [markdown]
# ## Three mistakes, measured
#
# *No shift.* The decoder gets the answer itself, uₜ = yₜ. We train a copy model that way, for 500 steps. Its loss ends
# at the floor, and every token of a held-out batch is predicted right. Then let it write: no word is right. It has
# learnt to repeat its input token, and in writing there is nothing to repeat but its own bos.
#
# *Padding counted.* Take the trained copy model and the words `abc` and `de`; then the same two words beside a third
# one of eight letters. With the padding left out, the loss of `abc` and `de` is the same in both batches. With the
# padding counted it grows with the neighbour, though not one prediction of a letter has changed: the model was never
# asked what comes behind eos, and says anything. In the training batches above 38 % of all target places are padding.
# With them counted, so much of every gradient would be spent on teaching the model to say "padding" after eos.
#
# *Another start token.* Training has bos at u₀. The table gives the exact match when writing begins with something
# else. Only u₀ differs, but it stays visible to all rows behind it. How much breaks is a matter of luck: some rows of
# the table may look harmless, and with another seed of the same model it is other ones. The model was never asked.

# %%
unshifted = Transformer(config, seed=0)
late = learn(unshifted, tasks["copy"], lesson.pick(500, 60), change=lambda b: b._replace(target_in=b.target_out))
source, _, y = tests["copy"]
right_tokens = (unshifted(source, y).argmax(axis=-1) == y)[y != PAD].mean()
right_words = exact_match(write(unshifted, source, 11), y)
print(
    f"no shift: loss {np.mean(late[-20:]):.3f}, tokens right {right_tokens:.1%}, words written right {right_words:.1%}"
)
if not lesson.fast:
    lesson.check("no shift: loss above the floor", np.mean(late[-20:]) - floor, at_most=0.03)
    lesson.check("no shift: tokens right", right_tokens, at_least=0.99)
    lesson.check("no shift: words written right", right_words, at_most=0.01)

# %%
left_out, counted = [], []
for words in (["abc", "de"], ["abc", "de", "fghijklm"]):
    ids = [tasks["copy"].encode(word) for word in words]
    u, y = shift(ids)  # for copying, y is also the source
    log_p = log_softmax(models["copy"](y, u))
    log_p_right = np.take_along_axis(log_p, y[..., None], axis=-1)[:2, :, 0]  # abc and de alone
    left_out.append(-log_p_right[y[:2] != PAD].mean())
    counted.append(-log_p_right.mean())
    print(f"abc and de in a batch of {len(words)}: padding left out {left_out[-1]:.5f}, counted {counted[-1]:.2f} nats")
lesson.check("padding left out: the neighbour changes the loss by", abs(left_out[1] - left_out[0]), 1e-5)
lesson.check("padding counted: the neighbour changes the loss by", abs(counted[1] - counted[0]), at_least=0.05)
many = tasks["copy"].batch(np.random.default_rng(6), 5000).target_out
lesson.quote("38 % of all target places", 100 * (many == PAD).mean(), within=0.02)

# %%
starts = {"bos": BOS, "eos": EOS, "padding": PAD, "the letter a": 3}
by_start = {
    title: [exact_match(write(models[name], test.source, 11, start), test.target_out) for name, test in tests.items()]
    for title, start in starts.items()
}
print(f"{'written from':<14}" + "".join(f"{name:>10}" for name in tasks))
for title, row in by_start.items():
    print(f"{title:<14}" + "".join(f"{score:>10.1%}" for score in row))
if not lesson.fast:
    others = np.array([row for title, row in by_start.items() if title != "bos"])
    lesson.check("exact match from the worst other start, the better task", others.min(axis=0).max(), at_most=0.6)

# %% [markdown]
# ## The picture
#
# The maps show one held-out word of eight letters, averaged over both heads: a row for each token that is written, a
# column for each token of the source. The curve is the exact match on held-out words of 3 to 14 letters, 300 of each
# length; the models were taught up to 8.


# %%
def score_at(name, length):
    """Exact match on held-out words of `length` letters, and how many tokens were written on average."""
    task = get_task(name)
    task.max_len = length
    rng = np.random.default_rng(length)
    asked = task.batch(rng, lesson.pick(full=300, fast=20), held_out=True, min_len=length)
    written = write(models[name], asked.source, length + 4)
    return exact_match(written, asked.target_out), (written > EOS).sum(axis=1).mean()


lengths = np.arange(3, 15)
curve, letters = {}, {}
for name in tasks:
    curve[name], letters[name] = np.array([score_at(name, int(length)) for length in lengths]).T
print("letters in the word    " + "".join(f"{length:6d}" for length in lengths))
for name in tasks:
    print(f"{name:<8} right         " + "".join(f"{score:6.0%}" for score in curve[name]))
    print(f"{name:<8} letters said  " + "".join(f"{count:6.1f}" for count in letters[name]))

# %%
figure, axes = plt.subplot_mosaic(
    [["copy", "reverse"], ["curve", "curve"]], figsize=(6.4, 5.4), height_ratios=(1.25, 1)
)
different = [len(set(ids) - {PAD}) == 9 for ids in tests["copy"].source]  # eight letters, none twice, and eos
eight = different.index(True)
for name, task in tasks.items():
    one = type(tests[name])(*(ids[eight : eight + 1] for ids in tests[name]))
    weights = cross_attention(models[name], one)[0].mean(axis=0)  # (T, S)
    image = axes[name].imshow(weights, vmin=0.0, vmax=1.0)
    for axis, ids in ((axes[name].xaxis, one.source), (axes[name].yaxis, one.target_out)):
        axis.set_ticks(range(9), [*task.decode(ids[0]), "eos"])
    axes[name].set(xlabel="token of the source", ylabel="token to be written")
    heads = ", ".join(f"{value:.2f}" for value in shares[name])
    axes[name].set_title(f"{name}: share on the expected\nplace, head by head: {heads}", fontsize=9)
figure.colorbar(image, ax=[axes["copy"], axes["reverse"]], label="attention weight", shrink=0.8)
below = axes["curve"]
below.axvspan(2.6, 8.5, color=GREY, alpha=0.15, linewidth=0, label="lengths in training")
below.plot(lengths, 100 * curve["copy"], "o-", color=BLUE, label="copy")
below.plot(lengths, 100 * curve["reverse"], "s--", color=ORANGE, label="reverse")
below.set(
    xlabel="letters in the word",
    ylabel="right to the last\ntoken (% of words)",
    xticks=lengths,
    xlim=(2.6, 14.4),
    ylim=(-4, 104),
)
below.legend(loc="upper right")
figure.suptitle("Copy and reverse: attention on one word, and words right at each length", fontsize=10)
lesson.save(figure)
if not lesson.fast:
    taught, longer = lengths <= 8, lengths >= 11
    for name in tasks:
        lesson.check(f"{name}: worst length that was taught", curve[name][taught].min(), at_least=0.9)
        lesson.check(f"{name}: best length of 11 letters or more", curve[name][longer].max(), at_most=0.02)
        lesson.check(f"{name}: right at 9 letters", curve[name][lengths == 9][0], at_most=0.9)
    weights, rows = cross_attention(models["copy"], tests["copy"]), np.arange(len(n))
    lesson.check("copy: mean weight on eos, of the row that writes eos", weights[rows, :, n, n].mean(), at_least=0.6)

# %% [markdown]
# You should see a diagonal from the top left to the bottom right for copy, one from the top right to the bottom left
# for reverse. The last row writes eos and has no letter to find: for copy it looks at eos, for reverse it may look
# wherever it has learnt to. Below, both curves stay near 100 % up to 8 letters and fall off a cliff: a part of the
# words with 9 letters is still copied, hardly any is reversed, and from 11 letters on both are at 0. If you see a
# diagonal that is shifted by one column in the copy map, then the rows are labelled with the token that was read, not
# with the one being written. If the curve is low everywhere, the training was too short (in fast mode it is). If all
# tokens are right in training and the curve is low at every length, look at your start token and at the shift.

# %% [markdown]
# ## The surprise
#
# *The model hardly listens to itself.* Teacher forcing is often blamed: a model that has only ever seen right letters
# must go astray after its first mistake. So we replace every letter of uₜ by a random one (bos stays), and ask for the
# letters behind: copy gets at least 95 % of them right, reverse at least 70 %, where chance is one in 26, 3.8 %. The
# maps say why. Row t looks at place t, or n − 1 − t, and not for the letter that follows the one just read. The rule
# it found is one of places. In these two tasks a wrong letter does little harm to the next ones. In text, where the
# next word depends on the words before, this is different.
#
# *And the rule of places ends with the places.* The paper chose sinusoids since they "may allow the model to
# extrapolate to sequence lengths longer than the ones encountered during training" (section 3.5). They do allow it.
# Lesson 09: the vector PE(t) of place t consists of the pairs sin(ωᵢt), cos(ωᵢt) with ωᵢ = 10000^(−2i/C) and
# i = 0 ... C/2 − 1. Score place s for row t by the product of two such vectors; sin a sin b + cos a cos b = cos(a − b):
#
#     PE(t) · PE(s) = Σᵢ [ sin(ωᵢt) sin(ωᵢs) + cos(ωᵢt) cos(ωᵢs) ] = Σᵢ cos(ωᵢ(t − s))
#
# It is largest, C/2, where every cosine is 1: at s = t. And only there. The term i = 0 is cos(t − s), and a cosine is 1
# at multiples of 2π, of which 0 is the only whole number. So attention with these scores, times a factor that is large
# enough, copies words of any length; we check it on 64 places. Such scores exist. Training did not find them: nothing
# asked for them.


# %%
def letters_right(name, random_letters):
    """The share of letters behind the first that are right, with right or with random letters in u."""
    source, u, y = tests[name]
    if random_letters:
        u = np.where(u > EOS, np.random.default_rng(7).integers(3, V, u.shape), u)
    places = (y > EOS) & (np.arange(y.shape[1]) > 0)
    return (models[name](source, u).argmax(axis=-1) == y)[places].mean()


for name in tasks:
    right, random = letters_right(name, False), letters_right(name, True)
    print(f"{name:<8} letters right behind right letters {right:.1%}, behind random ones {random:.1%}")
    least = {"copy": 95, "reverse": 70}[name]
    lesson.quote(f"{name} {'gets ' * (name == 'copy')}at least {least} %", min(least, 100 * random), full_only=True)
lesson.quote("chance is one in 26, 3.8 %", V - 3, 100 / (V - 3))
lesson.claim(
    "a model trained by teacher forcing goes astray after its first mistake",
    "half right",
    f"it can, but need not: with only random letters before it, the copy model still writes "
    f"{letters_right('copy', True):.0%} of the letters right, as it goes by place",
)

# %%
places, omega = np.arange(64), 10000.0 ** (-2 * np.arange(16) / 32)
angles = places[:, None] * omega  # (64, 16)
PE = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)  # the order of the features does not matter here
score = PE @ PE.T  # (t, s)
cosines = np.cos(omega * (places[:, None, None] - places[None, :, None])).sum(axis=-1)
lesson.check("PE(t) · PE(s) = sum of the cosines", error(score, cosines), 1e-13)
lesson.check("of 64 rows, those whose best place is not s = t", (score.argmax(axis=1) != places).sum(), 0)
weights = np.exp(20 * (score - 16))
weights /= weights.sum(axis=1, keepdims=True)
lesson.check("smallest weight on s = t, scores times 20", np.diag(weights).min(), at_least=0.99)
lesson.claim(
    "sinusoidal positions allow a model to extrapolate to longer sequences",
    "half right",
    f"scores that copy at any length exist, but training on up to 8 letters did not find them: right are "
    f"{curve['copy'][lengths == 9][0]:.0%} of the words with 9 letters, {curve['copy'][lengths == 12][0]:.0%} with 12",
)

# %% [markdown]
# ## Exercise
#
# 1. *A rotation* (20 minutes). Make a third task, `abcd -> bcda`: a subclass of `minitransformer.data.tasks.Copy` with
#    its own `solve(source)`, which gets ids (B, S) padded at the end and returns the answers in the same form. Before
#    you train, draw the map: where does row t look, and where does row n − 1? You pass with an exact match of 95 % and
#    a share of 0.75 on the place that you predicted.
# 2. *The gradient of a mean of means* (15 minutes, pencil). Take the third loss of "Small numbers",
#    L = (1/B) Σ_b (1/T_b) Σₜ −ln p, with T_b tokens in answer b. What stands in place of 1/M in (4)? Write it as a
#    function like `loss_and_gradient`. You pass if the complex step agrees to 1e-13.
#
# ## Questions
#
# 1. An answer has 8 letters. How many forward passes of the decoder does one training step need for it, and how many
#    does greedy decoding need?
# 2. A model's training loss goes to its floor on *random* answers, new ones in every batch. What is wrong?
# 3. Someone divides the loss by B·T, padding included, but leaves the padding out of its sum. Which gradients change?
# 4. The last row of the copy map looks at eos to know that the word has ended. Must it? Think of the reverse map.
# 5. For the word `aaaa` a reverse model may look at any of the four letters. Why does it look at the mirror place?

# %% [markdown]
# ## In the wild
#
# * The Annotated Transformer cuts one array twice, `trg[:, :-1]` and `trg[:, 1:]`, and divides by the number of tokens
#   that are not padding: the shift and the M of this lesson.
# * PyTorch's `CrossEntropyLoss` takes the mean over all targets but those equal to `ignore_index`. Its default is −100,
#   an id that no vocabulary has: unless you set it, padding counts.
# * Code for decoder-only models often shifts inside the model (Hugging Face: pass `labels` equal to `input_ids`) or in
#   the data (nanoGPT: `x = data[i : i + T]`, `y = data[i + 1 : i + 1 + T]`). Do both, and the model learns to predict
#   the token after next; the loss still falls, only not as far.
# * The start token is a convention of each model: T5 starts with padding, BART with eos, others with bos. That is why
#   `generate` in Hugging Face asks for a `decoder_start_token_id`. Fine-tune with one and decode with another, and you
#   have the third mistake above.
# * A batch that is worked on in several parts, with the mean taken in each part and the means averaged, minimises the
#   mean of means: with parts of different length it is another loss than the one of the whole batch.

# %%
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. One in training, with 9 rows (8 letters and eos). Nine in writing, one for each token, eos included.
# 2. The answer leaks: random answers cannot be foreseen, so the loss cannot go below what the best guess costs. Look
#    at the shift, at the causal mask, and whether anything of the answer stands in the source.
# 3. All of them, by the same factor M/(B·T) within one batch. The direction is right, but the factor differs from batch
#    to batch, so batches with much padding count less. Adam hides most of it, since it divides by the gradient's size.
# 4. No. Row t knows its own place t; what it lacks is n, and any place of the memory can tell it, since the encoder
#    lets every letter look at eos. Reverse needs n in every row, to find n − 1 − t, and has no place to mirror in the
#    last. A map shows where a row reads, not what has been written there before.
# 5. Its weights come from words in which only the mirror place has the right letter, and they go by places. It cannot
#    know beforehand that this word is a special one, so it applies the same rule.
