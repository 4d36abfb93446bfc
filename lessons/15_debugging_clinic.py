# %% [markdown]
# # Lesson 15: The debugging clinic
#
# [![The whole Transformer](../plots/15_debugging_clinic_map.png)](../plots/00_reverse_whole.png)
#
# **The model learns, so is it right? And if it isn't, which test finds which bug?**
#
# 12 min, with a pencil 30, going deeper 5 · runs in 60 s (fast: 10 s) · needs 01, 03, 04, 07, 09, 10, 14 · difficulty 3
# of 5 · paper: section 3
#
# ## Ten patients, and no alarm
#
# A program with a bug usually crashes, but a neural network with a bug usually learns, only a little worse. The loss
# falls, the pictures look right, and 31 of 33 gradients may be nonsense.
#
# Today you are the doctor. Ten copies of this library wait in your clinic, each with one planted bug, six of them from
# published code, and all of them run without complaint. You won't see the bugs, only what six tools say about them.
# First you try the tools on the healthy library. We solve one case together, nine are yours, and the key is the last
# thing on this page.

# %% Imports
import dataclasses
from functools import partial

from support.chart import descend, findings_chart, trail, valley
from support.lab import VOCABULARY, begin, show
from support.patients import admitted  # do not open patients.py: it gives them away

import numpy as np

from minitransformer.data import get_task, tasks
from minitransformer.decoding import greedy_decode
from minitransformer.evaluation import exact_match
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import TrainingSettings, cosine, train
from minitransformer.vocabulary import PAD

lesson = begin("15_debugging_clinic")

# %% [markdown]
# ## Do you remember?
#
# 1. (01) One gradient is twice the true one everywhere, and another is wrong in three entries. What do you look for?
# 2. (12) One number checks 63 million gradients. What doesn't it tell you?
# 3. (14) Even after random letters the copy model is right. In which of its parts might a mistake go unnoticed?
#
# (The answers are at the end.)
#
# ## How many of ten will pass?
#
# All ten patients are trained to copy words, as in lesson 14.
#
# 1. How many of the ten copy at least 90 % of unseen words without a mistake?
# 2. "Can it overfit one batch?" is the best-known test of all. How many of the ten fail it? Does anyone pass all six?

# %%
guess_solve = ...  # patients, of ten, that copy at least 90 % of unseen words
guess_fail = ...  # patients, of ten, that fail to overfit one batch

# %% [markdown]
# ## Tool 1: the first loss
#
# Before training the model knows nothing, and with logits of 0 each of the V = 29 tokens would cost ln 29 = 3.367 nats.
# But a logit is z_w = Σ_c E_wc y_c, where the entries of E start with mean 0 and variance 1/C (lesson 04), and y comes
# out of a layer norm, so that Σ_c y_c² = C (lesson 10). So z_w has mean 0 and variance σ² = Σ_c (1/C) y_c² = 1,
# and if it is normal, the mean of exp(z_w) is exp(σ²/2), as Going deeper shows.
#
# **Your line.** What first loss does that predict, if L = ln Σ_w exp(z_w) − z_right?

# %%
V = 29  # letters a to z, and pad, bos, eos
expected = ...  # your line: the first loss in nats, from V
lesson.judge("expected", expected)

# %% [markdown]
# No logit knows the right token, so the right one's is 0 on average, and
#
#     L = ln Σ_w exp(z_w) − z_right  ≈  ln(V exp(σ²/2)) − 0  =  ln V + σ²/2
#
# The first loss should be near ln 29 + 1/2 = 3.867. This tool *sees* wrong initial sizes, and answers that leak into
# the logits. It is *blind to* the whole backward pass.
#
# ## Tool 2: overfit one batch
#
# Train on just 16 words. Thousands of weights can memorize 16 words, so the loss must go to 0. But let g be the
# true gradient, and g_code what the code returns. A small step changes the loss by
#
#     L(θ − lr g_code) − L(θ)  ≈  −lr (g · g_code)
#
# It falls whenever g_code is within 90 degrees of g. Take L = θ₁² + 10 θ₂² at θ = (1, 0.1), where g = (2, 2). Code that
# forgets the second entry says (2, 0). With lr = 0.04, its first step takes the loss from 1.10 to 0.95, which looks
# like learning, but the second parameter never moves, and the loss gets stuck at 0.1.
#
# ![Two ways down a valley](../plots/15_debugging_clinic_descent.png)
#
# It *sees* steps in wrong directions, and is *blind to* half-right gradients and to leaks: a model that cheats overfits
# even better.

# %%
copying = get_task("copy")
copying.max_len = 8


class OneBatch:
    def batch(self, rng, size):
        return copying.batch(np.random.default_rng(5), size, min_len=4)  # always the same


def learner(seed=1, **choices):
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 1, "max_len": 32}
    return Transformer(TransformerConfig(V, dropout=0.0, **sizes, **choices), seed=seed)


def fit(model, data, steps, size):
    """The library's form of the loop of lesson 14 -> the last loss."""
    schedule, settings = partial(cosine, steps=steps, peak=1e-2, warmup=50), TrainingSettings(steps, size)
    return train(model, data, schedule=schedule, settings=settings).losses[-1]


def first_loss(model):
    batch = copying.batch(np.random.default_rng(1), 256)
    return float(cross_entropy(model(*batch.inputs), batch.targets, pad=PAD)[0])


def overfit_one_batch():
    return fit(learner(), OneBatch(), steps=lesson.pick(full=150, fast=15), size=16)


right, half_right = descend([2, 20]), descend([2, 0])  # with the factors of θ in g, and in g_code
lesson.save(valley(right, half_right), "descent")

# %% [markdown]
# ## Tool 3: the leak test
#
# Lesson 07: change something that must have no influence, and see whether a row of logits moves. Row t may know the
# source, and the answer before place t. So if we change later letters, add padding, or remove the other word from a
# batch of two, nothing may move, except for rounding.
#
# It *sees* everything that reaches a row by a forbidden path, and is *blind to* wrong numbers on allowed paths.


# %%
def ids_of(*words):
    return np.array([[VOCABULARY.index(letter) for letter in word] for word in words])


def leak_test():
    """The largest change of a logit of our running example by what must not reach it."""
    model, answer = load_example().model, ids_of("pots", "toot")

    def inputs(answer):
        return tasks.make_batch(ids_of("stop", "toot"), answer).inputs  # shifts the answer, lesson 14

    usual, changes = model(*inputs(answer)), []
    for t in range(4):
        later = answer.copy()
        later[:, t:] = np.where(later[:, t:] == 3, 4, 3)  # other letters
        changes.append((model(*inputs(later)) - usual)[:, : t + 1])
    padded = [np.pad(ids, ((0, 0), (0, 3))) for ids in inputs(answer)]
    changes.append(model(*padded)[:, :5] - usual)
    alone = [ids[:1] for ids in inputs(answer)]
    changes.append(model(*alone) - usual[:1])
    return max(np.abs(change).max() for change in changes)


# %% [markdown]
# ## Tool 4: the gradient check
#
# Lesson 01: the complex step gives the derivative along a direction, from just the forward pass.
#
#     Im L(θ + ih · direction) / h  =  g · direction          h = 1e-30
#
# Compare it with g_code · direction: the two differ by (g_code − g) · direction, which for a wrong gradient and a
# random direction is 0 only by an incredible accident. With one direction for each array of parameters, we learn which
# arrays have wrong gradients. Our running example has 33 arrays, and the loss 0.1108 for "stop", but "toot" lies on the
# operating table.
#
# It *sees* every backward pass that isn't the derivative of its forward pass, and is *blind to* a wrong forward pass
# whose backward pass fits.


# %%
def loss(example):
    return cross_entropy(example.model(example.source, example.target_in), example.target_out)[0]


def gradients_of(example):
    """{array of parameters: its gradient, by the backward pass}"""
    logits, cache = example.model.forward(example.source, example.target_in)
    _, cache_loss = cross_entropy(logits, example.target_out)
    example.model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    return {name: parameter.grad for name, parameter in example.model.named_parameters()}


def gradient_errors(example, h=1e-30):
    """{array of parameters: the error of its gradient along a random direction}"""
    gradients, parameters = gradients_of(example), dict(example.model.named_parameters())
    rng, claimed, true = np.random.default_rng(7), {}, {}
    for parameter in parameters.values():
        parameter.data = parameter.data.astype(complex)
    for name, parameter in parameters.items():
        direction = rng.standard_normal(parameter.data.shape)
        parameter.data.imag = h * direction
        true[name] = loss(example).imag / h
        parameter.data.imag = 0
        claimed[name] = (gradients[name] * direction).sum()
    least = 1e-3 * max(abs(value) for value in true.values())  # some true values are almost 0
    return {name: abs(claimed[name] - true[name]) / max(abs(true[name]), least) for name in true}


# %% [markdown]
# ## Tool 5: the permutation test
#
# Lesson 09: take away the positions and permute the source. Then the encoder's output must be permuted in the same way,
# and the logits must not change. With positions they must change, or the model can't tell "top" from "pot".
#
# It *sees* whatever mixes positions outside attention, and missing positions. It is *blind to* which positions are
# used, and to every gradient.
#
# ## Tool 6: the token histogram
#
# Let the trained model write, and count its tokens. If it writes abbb instead of abba, the shares of a and b should be
# 2/4 and 2/4, and they are 1/4 and 3/4. Half the sum of the two differences is 1/4, and at least that share of the
# places is wrong.
#
# It *sees* what no loss sees, the decoding: answers that end too early or never, models that stammer. It is *blind to*
# order, since aabb instead of abba has distance 0.


# %%
def permutation_test():
    """How far the model without positions is from that rule, and how much positions make the logits move."""
    source, target, order = ids_of("stop", "toot"), ids_of("pots", "toot"), [1, 2, 3, 0]
    model = load_example().model
    without = Transformer(dataclasses.replace(model.config, positions="none"), dtype=np.float64)
    without.load_state_dict(model.state_dict())

    def moved(model):
        return np.abs(model(source[:, order], target) - model(source, target)).max()

    memory, permuted = without.encode(source)[0], without.encode(source[:, order])[0]
    return max(np.abs(permuted - memory[:, order]).max(), moved(without)), moved(model)


def histogram_distance(written, wanted):
    shares = [np.bincount(ids[ids != PAD], minlength=V) / (ids != PAD).sum() for ids in (written, wanted)]
    return 0.5 * np.abs(shares[0] - shares[1]).sum()


def trained(steps):
    """Learn to copy -> the histogram distance and the share of exact answers on 300 unseen words."""
    model = learner()
    fit(model, copying, steps, size=32)
    test = copying.batch(np.random.default_rng(2), 300, held_out=True, min_len=3)
    written = greedy_decode(model, test.source, 11)
    return histogram_distance(written, test.target_out), exact_match(written, test.target_out)


# %% [markdown]
# > **2019.** Karpathy wrote down a recipe for training neural networks, because they fail silently. Three of our tools
# > are in it: the first loss, the single batch, and a leak test, in which the backward pass says which inputs an output
# > depends on.
#
# ## The healthy library first
#
# A tool that finds something in a healthy patient is broken itself. For the exact tools (leak, gradient, permutation) a
# finding is a number above 1e-9, far above rounding and far below any real bug. For the others it is a choice: half a
# nat for the first loss, 0.04 nats for one batch, 0.03 for the histogram.


# %%
def examine():
    """What the six tools say and the exact match, as one row of a table; and the errors of all gradients."""
    errors = gradient_errors(load_example("toot"))
    broken, moved = permutation_test()
    permute = broken if moved > 1e-6 else np.inf
    histogram, exact = trained(lesson.pick(full=500, fast=30))
    gradient = max(errors.values())
    return [first_loss(learner()), overfit_one_batch(), leak_test(), gradient, permute, histogram, exact], errors


def findings(row):
    first, batch, leak, gradient, permute, histogram, _ = row
    exact_tools = [leak > 1e-9, gradient > 1e-9, permute > 1e-9]
    return [abs(first - np.log(V) - 0.5) > 0.5, batch > 0.04, *exact_tools, histogram > 0.03]


healthy, healthy_errors = examine()
lesson.check("healthy: first loss, away from ln V + 1/2", abs(healthy[0] - np.log(V) - 0.5), 0.5)
lesson.check("healthy: leak", healthy[2], 1e-12)
lesson.check("healthy: worst gradient error", healthy[3], 1e-10)
lesson.check("healthy: permutation", healthy[4], 1e-12)

# %% [markdown]
# ## Visiting hours
#
# Now the ten, one in each row. The last column is the share of unseen words that a patient copies without a mistake.

# %%
table, errors = [healthy], [healthy_errors]
for patient in range(1, 11):
    with admitted(patient):
        row, errors_of_patient = examine()
    table.append(row)
    errors.append(errors_of_patient)

columns = ["first loss", "one batch", "leak", "gradient", "permute", "histogram", "exact"]
show("what the tools say", table, ["healthy", *range(1, 11)], columns)
found = np.array([findings(row) for row in table])  # (11, 6)
solves = np.array([row[-1] >= 0.9 for row in table])
lesson.save(findings_chart(table, found, solves, columns))
lesson.compare("patients that copy at least 90 % of unseen words", guess_solve, solves[1:].sum())
lesson.compare("patients that fail to overfit one batch", guess_fail, found[1:, 1].sum())

# %% [markdown]
# ![Ten patients and six tools](../plots/15_debugging_clinic.png)
#
# You should see a first row that is gray except for its last cell, an orange cell in every other row but one, and no
# column that would be enough by itself.
#
# In four patients the gradient check has a finding. In the next picture the gradient runs from the loss, on the left,
# to the embeddings, and from cross-attention both to norm 1 and to the encoder. (ffn is the feed-forward network.)
# Every gradient before the bug is right.

# %%
lesson.save(trail({patient: errors[patient] for patient in np.flatnonzero(found[:, 3])}), "trail")

# %% [markdown]
# ![Where the gradients are wrong](../plots/15_debugging_clinic_trail.png)
#
# ## Case 4, solved together
#
# Patient 4 copies as if nothing were wrong, and only the gradient check has a finding, in one of the 33 arrays: E, at
# the very end of the trail. Of the four words "toot", "stop", "pop" and "top", how many show the bug?
#
# [In the explorer: with patient 4's mistake, the gradient of «o» is wrong for "toot". And for "pop"? Guess
# first.](../minitransformer/explorer/page/index.html#embed=dE[3,0]&turn=word&word=toot&mistake=token-twice)

# %%
guess_words = ...  # of the four words, those that show patient 4's bug

with admitted(4):
    by_word = {word: max(gradient_errors(load_example(word)).values()) for word in ("toot", "stop", "pop", "top")}
for word, worst in by_word.items():
    print(f"patient 4, {word}: worst gradient error {worst:.0e}")
lesson.compare("words that show the bug", guess_words, sum(worst > 1e-9 for worst in by_word.values()))

# %% [markdown]
# "toot" and "pop" are wrong, "stop" and "top" are right, so a letter that appears twice makes the difference. Its two
# gradients must be added (lesson 04), and here one of them is lost. In NumPy that takes a single line, `dE[ids] += de`,
# which writes each row once, however often it occurs in ids.
#
# With just "stop" we would have sent patient 4 home. A gradient check sees only the paths that its batch uses, so put
# everything into the batch: repeated tokens, padding, sources and targets of different lengths.
#
# **Your turn.** For each patient, which single bug explains the whole row, including the normal numbers? Is it in
# something that only decoding uses, or that depends on a length? Is any number too good? Where does the trail begin,
# and which boxes does it spare? Write down your diagnoses before the next section gives hints away.
#
# ## Four that pass for healthy
#
# *Solving the task proves little*, since four of the ten wrong models copy at least 90 % of the unseen words. If the
# task is your only test, they ship.
#
# *The best-known test finds one of ten.* The others overfit one batch without trouble, one with 31 of 33 gradients
# wrong, one without a causal mask. The patient with the lowest first loss also has the lowest loss on one batch, and
# copies no word. A number that is too good to be true is a finding.
#
# *A check at the start can be blind.* For patient 2, the gradient check reports an error of 233 %, but at initial
# weights, where every γ is 1 and every bias 0, the worst error is below 1e-10.
#
# *One patient passes everything.* Its forward pass computes something the paper doesn't say, and everything else fits
# together. **No test of consistency finds a mistake that is consistent: that takes a comparison with something
# outside**, such as a formula, a number worked out by hand, or another implementation. So our lessons compare with the
# library, and the library's tests with PyTorch.

# %%
with admitted(2):
    toot = load_example("toot")
    untrained = toot._replace(model=Transformer(toot.model.config, seed=1, dtype=np.float64))
    at_start = max(gradient_errors(untrained).values())
lesson.check("patient 2, worst gradient error at initial weights", at_start, 1e-10)
lesson.check("patient 2, at trained weights", max(errors[2].values()), at_least=1)

# %% [markdown]
# **In papers:** tools 3 and 5 are *metamorphic tests* (Chen et al. 1998), a comparison with another implementation is
# *differential testing* (McKeeman 1998).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 16. But look at the key at the end.
#
# ### The mean of exp(z), and why our first loss is a little higher
#
# Let f be the density of z, proportional to exp(−z²/(2σ²)). Multiply by exp(z) and complete the square:
#
#     z − z²/(2σ²)   =  −(z − σ²)²/(2σ²) + σ²/2
#     exp(z) f(z)    =  exp(σ²/2) f(z − σ²)
#     ∫ exp(z) f(z) dz  =  exp(σ²/2)                   because ∫ f(z − σ²) dz = 1
#
# Averaged over 12 seeds, the first loss is 3.85 if the output has its own matrix. With the shared matrix it is
# 3.99, because the untrained model tends to repeat the token it has just read: y still resembles that token's
# embedding, and it is seldom the right one.

# %%
words = copying.batch(np.random.default_rng(1), 256)
ties = (True, "inputs")
tied, untied = (np.mean([first_loss(learner(seed, tie_embeddings=tie)) for seed in range(12)]) for tie in ties)
print(f"first loss, mean of 12 seeds: {tied:.2f} with the shared matrix, {untied:.2f} without")

# %% [markdown]
# ### The histogram and the wrong places
#
# Suppose that N tokens are wanted and N are written. Count how often each token is written, minus how often it is
# wanted. A right place changes none of these differences, and a wrong place changes two of them by 1, the one for the
# token written and the one for the token wanted. So their sizes sum to at most twice the number of wrong places. Half
# of this sum, divided by N, is the histogram distance, so the distance is at most the share of wrong places.
#
# ## Exercise
#
# 1. *The eleventh patient*, 20 minutes. In a checkout, `from tests.museum.exhibits import EXHIBITS`, and choose one by
#    its `name`. Predict its row, then run `with exhibit.planted(): print(examine()[0])`. You pass if five of your six
#    predictions are right.
# 2. *The seventh tool*, 20 minutes. Find a test that patient 10 fails, and that the other nine and the healthy library
#    pass. It may use one formula of the paper.
#
# Exercises with a checker: `minitransformer start 15`.
#
# ## Questions
#
# 1. The leak test finds something, but only when padding is added. What do you suspect?
# 2. A model passes the gradient check but copies no word. Name two places where the bug may be.
# 3. Your first loss is 1.5 where you expected 3.9. Why is that bad news?
# 4. The histogram distance is 0.12. What does it prove? And what if it is 0?
# 5. *Somewhere else.* A colleague brings in an image classifier with ten classes, convolutions and BatchNorm.
#    Which of the six tools can you use as they are? What do the leak test and the permutation test become?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. In the first case, a constant factor, which all entries share. In the second, a path that only these entries take,
#    such as a letter that appears twice, or a mask.
# 2. In which array the mistake is, and whether the forward pass computes what it should.
# 3. In the decoder's self-attention. The model goes by position, so it hardly needs what was written before.
#
# ### Questions
#
# 1. A mask that forgets the padding, or something that depends on the length of the array, such as a wrong reshape.
# 2. In a forward pass whose backward pass fits (heads, masks, positions), or where there is no gradient: in the data,
#    such as a missing shift, or in decoding.
# 3. Nobody can know the answer before training. So the right token must reach the logits by a forbidden path.
# 4. If as many tokens were written as wanted, at least 12 % of them are wrong. A distance of 0 proves nothing.
# 5. The first loss (ln 10 = 2.303 if the logits are small), one batch, the gradient check, and the histogram, of
#    predicted classes. The leak test: the logits of a picture may not depend on the other pictures of its batch. (In
#    training, BatchNorm makes them depend on each other; in use, it must not.) The permutation test: move the picture
#    by a pixel, and what a convolution finds moves with it, except at the edges.
#
# The exercise. Second: compare the table of positions with the formula at one place, such as position 1, feature 2.
#
# ### The key
#
# Six of the bugs were found in public code. The other four are easy to make.
#
# 1. *Heads are split and merged by a reshape alone*, without the transpose. Positions mix, and which ones depends on
#    the length: so padding leaks, and the encoder isn't equivariant. Split and merge undo each other, so all gradients
#    are right, and one batch can be memorized. In decoding the length changes at every step, and no word is right.
# 2. *LayerNorm's gamma is taken outside the two means of its backward pass.* Published. Exact while gamma is 1. The
#    last norm's own gamma and beta are right, and everything after it is wrong.
# 3. *The target isn't shifted.* The decoder reads what it must say. So the first loss is low (the shared matrix makes
#    an untrained model repeat its input), and changing a letter moves its own row.

# %% [markdown]
# 4. *A token that appears twice gets only one of its gradients.* Published. Solved above.
# 5. *The embeddings start with standard deviation 1*, PyTorch's default, so σ² is C instead of 1. The first loss is far
#    too high, and no other patient fails on one batch.
# 6. *The causal mask is off by default.* Published. In training every row sees its answer (lesson 07), and in decoding
#    there is no answer to see.
# 7. *The keys' gradient is computed transposed and then reshaped into place.* Published. In cross-attention two of six
#    are wrong, the weights and bias of keys and values. The queries' gradients are right, and so are those of norm 1,
#    which feeds them. The encoder gets its gradient through the keys, so all of it is wrong. Self-attention has its own
#    wrong keys.
# 8. *Decoding stops as soon as one row has said eos*: `any` instead of `all`. The shortest answer cuts off all the
#    others, while everything that is trained is right.
# 9. *The residual's gradient (lesson 11) isn't added around cross-attention.* Published. So what comes before it in
#    the decoder, norm 1 and self-attention, is wrong, and the encoder is spared. The model learns, because the path
#    through the queries still carries a gradient.
# 10. *The exponent of the positions counts pairs twice*: 10000^(−4i/C) instead of 10000^(−2i/C), the "half right" table
#     of lesson 09. Published: wrong exponents were found in eight public repositories, and people trained models with
#     all of them. The positions are still all different, so everything works.

# %%
example = load_example()
L, gradients = loss(example), gradients_of(example)
lesson.finish(globals())
