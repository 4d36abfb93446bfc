# %% [markdown]
# # Lesson 14: Copy and reverse: learning every position at once
#
# [![The target embedding, the loss and decoding](../plots/14_copy_reverse_map.png)](../plots/00_reverse_whole.png)
#
# **A model writes one token at a time, so how can it learn all tokens of an answer at once?**
#
# 12 min, with a pencil 30, going deeper 4 · runs in 60 s (fast: 10 s) · needs 00, 03, 07, 09, 12, 13 · difficulty 3 of
# 5 · paper: sections 3.1, 3.5 and 5.4
#
# ## Five runs, or one?
#
# Noor has all the parts now, as you do, and begins to teach our tiny model to write "pots". To write it, the model runs
# its decoder five times: for «p», for «o», for «t», for «s» and for eos. If she trains it the same way, each run must
# wait for the token chosen by the run before, and an answer of 1,000 tokens takes 1,000 runs. And if the first run
# writes «t» instead of «p», the second would have to learn what comes after a «t» that nobody wanted.
#
# The paper trains all five tokens in one run, and for that it gives the decoder the answer as an *input*. Noor asks
# what everyone asks on seeing this for the first time: how is that fair?

# %% Imports
from support.chart import copy_and_reverse, shift_table
from support.lab import TARGET_IN, TARGET_OUT, VOCABULARY, begin, error, running_example, show

import numpy as np

from minitransformer.data import get_task
from minitransformer.data.tasks import make_batch
from minitransformer.decoding import decoding_state, generate_from
from minitransformer.evaluation import decode_and_score, exact_match
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.progress import tqdm
from minitransformer.training import Adam, noam
from minitransformer.vocabulary import BOS, EOS, PAD

lesson = begin("14_copy_reverse")
example = load_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (07) A model sees its answers through a hole in the mask. Why doesn't the training loss give it away?
# 2. (03) Each row of dz sums to 0, with label smoothing or without it. Why?
# 3. (12) The memory feeds all decoder layers. How is its gradient put together?
#
# (The answers are at the end.)
#
# ## Random letters, and a ninth one
#
# 1. A trained copy model is in the middle of a word, and you replace all the letters it has written so far with random
#    ones. How many of its next letters are still right?
# 2. It was trained on words of 1 to 8 letters. How many words of 9 letters does it copy without a mistake? Would a
#    model that reverses get further?

# %%
guess_random = ...  # per cent of the letters that copy gets right after random ones
guess_nine = ...  # per cent of the words of 9 letters that it copies without a mistake

# %% [markdown]
# ## Shift by one
#
# The decoder gets T tokens and returns T rows of logits, and row t must write the answer's token number t. It may know
# the tokens before it, but nothing more. Two things together ensure that:
#
# * **The shift.** The decoder's input, `target_in`, is the answer moved one place to the right, with bos in front. What
#   it must write, `target_out`, is the answer and eos.
# * **The causal mask** (lesson 07). Row t looks at the tokens 0 to t of `target_in`.


# %%
def shift(answers):
    """Lists of ids, without bos and eos -> target_in and target_out (B, T), padded at the end."""
    T = max(len(ids) for ids in answers) + 1
    target_in, target_out = np.full((2, len(answers), T), PAD)
    for i, ids in enumerate(answers):
        target_in[i, : len(ids) + 1] = [BOS, *ids]
        target_out[i, : len(ids) + 1] = [*ids, EOS]
    return target_in, target_out


pots, ot = [4, 3, 6, 5], [3, 6]  # the answers to "stop" and "to"
target_in, target_out = shift([pots, ot])
print("target_in", *target_in, "target_out", *target_out, sep="\n")

p = running_example()["output.p"]  # (T, V)
p_right = [p[t, VOCABULARY.index(token)] for t, token in enumerate(TARGET_OUT)]
lesson.save(shift_table(TARGET_IN, TARGET_OUT, p_right), "shift")

# %% [markdown]
# ![What each row of the decoder can see, and what it must write](../plots/14_copy_reverse_shift.png)
#
# The last column is what the tiny model gives to the right token. No row can see the token it must write. Without
# the shift, row t would read that very token, and without the mask it would find it one position further on. Either
# mistake makes the loss worthless.
#
# ## Why it is fair
#
# The probability of several tokens is a product, in which each factor depends on the tokens before (and on the source
# "stop"):
#
#     p("pots", eos) = p("p") · p("o" after "p") · p("t" after "po") · p("s" after "pot") · p(eos after "pots")
#              0.575 = 0.953  · 0.697            · 0.945             · 0.917              · 0.999
#
# This isn't an assumption about language. It is the definition of conditional probability, used four times. And look at
# what each factor asks: *if* the tokens so far are these, what comes next? **The tokens so far are part of the
# question, so they may be an input. Only the answer to the question may not.**
#
# The logarithm turns it into a sum, and the loss is the mean over the T tokens:
#
#     ln p("pots", eos) = −0.048 − 0.361 − 0.057 − 0.087 − 0.001 = −0.554
#     L = 0.554 / 5 = 0.1108
#
# When the model *writes*, it has to produce the tokens before row t first. In *training* they are in the data, no term
# has to wait for another, and all T terms are computed in parallel. (This doesn't make them independent, since they
# share all the weights.) Whatever the model would have written, the next row reads the right token.
#
# > **1989.** Williams and Zipser gave recurrent networks the right output of the step before instead of their own, and
# > called it *teacher forcing*. In 2015 Bengio, Vinyals, Jaitly and Shazeer feared that a model that has read only
# > right tokens goes astray after its first mistake, and let it read its own now and then. Two years later Shazeer was
# > one of the paper's authors.

# %% [markdown]
# ## The loss of a batch
#
# Answers differ in length, and the short ones are padded. The padding must not count, since nobody asks what comes
# after eos. Let N be the number of tokens that count, 5 + 3 = 8 for "pots" and "ot". From lesson 03 we know p*, the
# probabilities that the loss wants: 1 for the right token, or a little less with label smoothing.
#
#     L     = −(1/N) Σ_n Σ_w p*_nw ln p_nw        n counts the N tokens, w the vocabulary
#
# **Your line.** "pots" and "ot" are learned together. Before you read on, write the gradient of the logits of row p→o
# in this batch, from `p[1]` and `p_star[1]`, its probabilities and the ones the loss wants.

# %%
p_star = np.eye(7)[example.target_out[0]]  # (T, V), of "pots", without label smoothing
dz_row = ...  # your line: dz of row p→o, (V,), in the batch of "pots" and "ot"
lesson.judge("dz_row", dz_row)

# %% [markdown]
# The row's own term has gradient p − p* (lesson 03), and it is one of the N terms whose mean is the loss:
#
#     dz_nw = (p_nw − p*_nw) / N                  and dz = 0 at padding, because L does not contain it
#
# Of the 2 · 5 places in this batch, only N = 8 count. For "pots" alone N is 5, and row p→o gets (0.697 − 1) / 5 =
# −0.061 for «o» and 0.297 / 5 = 0.059 for «p». A step against it makes «o» more likely and «p» less.


# %%
def loss_and_gradient(z, target_out, eps):
    """Logits z (B, T, V) and target_out (B, T) -> L and dz (B, T, V)."""
    V = z.shape[-1]
    p_star = (1 - eps) * np.eye(V, dtype=z.real.dtype)[target_out] + eps / V
    z = z - z.real.max(axis=-1, keepdims=True)
    ln_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    counts = (target_out != PAD)[..., None]
    N = int(counts.sum())
    return -(counts * p_star * ln_p).sum() / N, counts * (np.exp(ln_p) - p_star) / N


z, eps = np.random.default_rng(0).standard_normal((2, 5, 9)), 0.1  # for "pots" and "ot"
L, dz = loss_and_gradient(z, target_out, eps)
true = np.empty_like(dz)
for index in np.ndindex(z.shape):
    moved = z.astype(complex)
    moved[index] += 1e-30j
    true[index] = loss_and_gradient(moved, target_out, eps)[0].imag / 1e-30
lesson.check("dz against the complex step", error(dz, true), 1e-13)
library, cache = cross_entropy(z, target_out, eps, PAD)
lesson.check("loss against the library's", error(L, library), 1e-13)
lesson.check("dz against the library's", error(dz, cross_entropy_backward(1.0, cache)), 1e-13)

# %% [markdown]
# ## One run is five runs
#
# Is one run really the same as five? Cut `target_in` after position t, as if the rest hadn't been written yet. Rows 0
# to t don't change if none of them could see the rest. Row 3 has read «t». If it reads a different token, how many of
# the five rows of logits change?
#
# [In the explorer: set x_0 of row t→s, which is row 3, to 3. Does the logit of «o» in row p→o move? Guess
# first.](../minitransformer/explorer/page/index.html#embed=output.z[1,3]&turn=target.x[3,0])

# %%
guess_rows = ...  # of the five rows of logits, those that change

model, T = example.model, 5
z, cache = model.forward(example.source, example.target_in)
other = example.target_in.copy()
other[0, 3] = 3  # «o» instead of «t»
change = np.abs(model(example.source, other) - z)[0].max(axis=-1)  # (T,)
lesson.compare("rows of logits that change", guess_rows, np.count_nonzero(change > 1e-12))

# %% [markdown]
# Only that row and the one after it change. So five runs over growing inputs give the same logits as one run over all
# of it. And L is a sum of one term for each row, so the gradients of the five runs add up to the gradient of the one
# run, in all parameters of the tiny model.

# %%
L, dz = loss_and_gradient(z, example.target_out, eps=0.0)
model.zero_grad()
model.backward(dz, cache)
one_run = {name: parameter.grad.copy() for name, parameter in model.named_parameters()}
show("row p→o: p, and dz", np.array([p[1], dz[0, 1]]), columns=VOCABULARY)

model.zero_grad()
last_rows = []
for t in range(T):
    z_t, cache = model.forward(example.source, example.target_in[:, : t + 1])
    last_rows.append(z_t[0, -1])
    dz_t = np.zeros_like(z_t)  # only the last row is asked
    dz_t[:, -1:] = loss_and_gradient(z_t[:, -1:], example.target_out[:, t : t + 1], eps=0.0)[1] / T
    model.backward(dz_t, cache)  # adds to the gradients
lesson.check("logits: one run, and five", error(np.array(last_rows), z[0]), 1e-13)
apart = max(error(parameter.grad, one_run[name]) for name, parameter in model.named_parameters())
lesson.check("all gradients: one run, and the sum of five", apart, 1e-10)

# %% [markdown]
# ## The whole training
#
# Here is the whole training run, and every line is a lesson: the batch and its shift, the forward pass (12), the loss
# (03), the backward pass (12), the learning rate and Adam (13). Two models learn from random words of 1 to 8 letters,
# one to copy them, `abca -> abca`, and one to reverse them, `abca -> acba`. Each has 30,624 parameters in one layer per
# stack, with two heads.


# %%
def learn(model, task, steps):
    """Train the model -> its losses."""
    optimizer, rng, losses = Adam(model.parameters()), np.random.default_rng(1), []
    for step in tqdm(range(1, steps + 1)):
        batch = task.batch(rng, 64)
        z, cache = model.forward(batch.source, batch.target_in)
        L, dz = loss_and_gradient(z, batch.target_out, eps)
        optimizer.zero_grad()
        model.backward(dz, cache)
        optimizer.lr = noam(step, model.config.d_model, warmup=100, factor=0.3)
        optimizer.step()
        losses.append(float(L))
    return losses


def held_out_words(name, length):
    """Pairs whose words have that many letters and are held out of training."""
    task = get_task(name)
    task.max_len = length
    count = lesson.pick(full=300, fast=30)
    return task.batch(np.random.default_rng(length), count, held_out=True, min_len=length)


tasks, models, losses, curve, lengths = {}, {}, {}, {}, range(3, 15)
for name in ("copy", "reverse"):
    tasks[name] = get_task(name)
    tasks[name].max_len = 8  # letters of a word in training
    V = len(tasks[name].vocabulary)
    sizes = TransformerConfig(V, d_model=32, num_heads=2, d_ff=128, num_layers=1, dropout=0.0, max_len=64)
    models[name] = Transformer(sizes, seed=0)
    losses[name] = learn(models[name], tasks[name], lesson.pick(full=2000, fast=120))
    curve[name] = [100 * decode_and_score(models[name], held_out_words(name, length))[1] for length in lengths]
    print(f"{name}: loss {np.mean(losses[name][-100:]):.3f}; % of words right, by letters:")
    print("  ", *(f"{length}: {share:.0f}" for length, share in zip(lengths, curve[name], strict=True)))

# %% [markdown]
# ## Two models, opened
#
# The decoder gets the source only through cross-attention, so we know where a good model should look. To write its
# letter, row t of the copy model needs the source's letter number t, and row t of the reverse model needs the letter t
# positions before the last: a diagonal and an anti-diagonal.

# %%
WORD = "equation"  # eight different letters, held out of training
maps = {}
for name in tasks:
    ids = tasks[name].encode(WORD)[None]
    pair = make_batch(ids, tasks[name].solve(ids))
    maps[name] = models[name].attention_weights(*pair.inputs).cross[0][0].mean(axis=0)  # the mean of both heads
lesson.save(copy_and_reverse(WORD, maps, lengths, curve))

# %% [markdown]
# ![Attention of both models on one word, and words right at each length](../plots/14_copy_reverse.png)
#
# White is a weight of 0, and the darkest blue is 1. You should see the diagonal and the anti-diagonal, and two curves
# that stay near 100 % up to 8 letters and then fall off a cliff. (The last row writes eos, and needs no letter for
# that.) Each row is named by the letter that it *writes*, and has *read* the one before: in the copy model, the row
# that has read q looks at u. If your line is shifted by one column, you named the rows by what they read. If the curve
# is low at every length, although the loss is fine, look at your start token and your shift. (In fast mode the training
# is too short.)
#
# ## A model that hardly listens to itself
#
# Must a model that has read only right letters go astray after its first mistake? We replace every letter of
# `target_in` with a random one, and ask for the letters after them.

# %%
alone = {}
for name in tasks:
    test = held_out_words(name, 8)
    read = test.target_in.copy()  # (B, 9): bos and 8 letters
    read[:, 1:] = np.random.default_rng(7).integers(3, V, size=(len(read), 8))
    predicted = models[name](test.source, read).argmax(axis=-1)
    alone[name] = (predicted == test.target_out)[:, 1:8].mean()  # letter 0 is written after bos
    print(f"{name}: letters right after random letters {alone[name]:.1%}")
lesson.compare("per cent of copied letters right, after random ones", guess_random, 100 * alone["copy"])
lesson.compare("per cent of words right, at 9 letters", guess_nine, curve["copy"][lengths.index(9)])

# %% [markdown]
# *The model hardly listens to itself.* Copy gets at least 95 % of them right, and reverse at least 70 %. By chance it
# would be 3.8 %. The maps show why: row t looks at a *place*, whatever letter it has just read, so in these tasks one
# mistake does little harm. In text, where the next word depends on the previous ones, it can do more.
#
# *And positions run out.* Some words of 9 letters are still copied, hardly any are reversed, and from 11 letters on
# nothing is right. The paper chose sinusoids because they "may allow the model to extrapolate to sequence lengths
# longer than the ones encountered during training" (section 3.5). They may: Going deeper has scores that copy words of
# any length, but our training didn't find them. Training gives what we ask for, and nobody asked for longer words.
#
# **In papers:** reading the right tokens in training is *teacher forcing*, the worry that a model then trips over its
# own mistakes *exposure bias* (Ranzato et al. 2015), a model that writes from left to right *autoregressive*, and words
# longer than those in training a test of *length generalization*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 15.
#
# ### Three mistakes, measured
#
# *No shift.* Let the decoder read `target_out` itself. After 500 steps the loss of a copy model is at the floor that
# label smoothing leaves (0.639 nats for V = 29, lesson 03), and in held-out words it predicts every token. But when you
# let it write, no word is right: it has learned to repeat its input, and now all it gets is bos.
#
# *Padding counted.* In the training batches 38 % of all places are padding. If they count, the loss of a word depends
# on the longest word in its batch, and much of each gradient teaches the model to write padding.
#
# *Another start token.* Suppose decoding starts from eos, although training started from bos. Only one token is
# different, but all rows see it. The printed table shows what happens. How much breaks is a matter of chance, because
# no training example began that way.


# %%
class Unshifted:
    """The copy task, without the shift."""

    def batch(self, rng, size):
        batch = tasks["copy"].batch(rng, size)
        return batch._replace(target_in=batch.target_out)


unshifted, test = Transformer(models["copy"].config, seed=0), held_out_words("copy", 8)
late = learn(unshifted, Unshifted(), lesson.pick(full=500, fast=60))
predicted = (unshifted(test.source, test.target_out).argmax(axis=-1) == test.target_out).mean()
_, copied = decode_and_score(unshifted, test)
print(f"no shift: loss {np.mean(late[-20:]):.3f}, tokens predicted {predicted:.1%}, words written {copied:.1%}")

padding = (tasks["copy"].batch(np.random.default_rng(6), 5000).target_out == PAD).mean()
print(f"padding: {padding:.0%} of all places")
for start, token in (("bos", BOS), ("eos", EOS), ("padding", PAD), ("the letter a", 3)):
    found = []
    for name in tasks:
        test = held_out_words(name, 8)
        state = decoding_state(models[name], test.source, 11)
        found.append(exact_match(generate_from(state, np.full((len(test.source), 1), token), 11).ids, test.target_out))
    print(f"written from {start}: copy {found[0]:.0%}, reverse {found[1]:.0%}")

# %% [markdown]
# ### Scores that copy words of any length
#
# The position vector of row t (lesson 09) has pairs sin(t·rate_i), cos(t·rate_i), with rate_i = 10000^(−2i/C) for i
# from 0 to C/2 − 1. Score the source place j by the product of the two position vectors:
#
#     PE_t · PE_j = Σ_i [ sin(t·rate_i) sin(j·rate_i) + cos(t·rate_i) cos(j·rate_i) ] = Σ_i cos((t − j)·rate_i)
#
# At j = t every cosine is 1. Elsewhere the term i = 0, cos(t − j), is less than 1, because 0 is the only whole number
# among the multiples of 2π. So the score is largest at j = t, and only at j = t. Multiply all scores by a number that
# is large enough for the longest word, and attention copies it. We check 64 positions.

# %%
places, rates = np.arange(64), 10000.0 ** (-2 * np.arange(16) / 32)
angles = places[:, None] * rates
PE = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
lesson.check("rows whose best place is another one", ((PE @ PE.T).argmax(axis=1) != places).sum(), 0)
sharp = np.exp(20 * (PE @ PE.T - 16))  # 16, the number of pairs, is the score at j = t
lesson.check("smallest weight on the right place", (np.diag(sharp) / sharp.sum(axis=1)).min(), at_least=0.99)

# %% [markdown]
# ## Exercise
#
# 1. Twenty minutes. Make a third task, `abcd -> bcda`: a subclass of `minitransformer.data.tasks.Copy` with its own
#    `solve(source)`. Draw the map before you train.
# 2. Fifteen minutes, pencil. A colleague takes the mean loss of each answer first and then the mean of the B answers.
#    What replaces 1/N in dz?
#
# Exercises with a checker: `minitransformer start 14`.
#
# ## Questions
#
# 1. An answer has 8 letters. How many runs of the decoder does a training step need for it, and how many does writing
#    it take?
# 2. The training loss reaches its floor on *random* answers, new ones in every batch. What is wrong?
# 3. A student leaves the padding out of the sum, but divides by all B·T positions. Which gradients change?
# 4. In `aaaa` any of the four letters would do. Why does the reverse model look at the mirror position?
# 5. *Somewhere else.* A model writes pictures of 28 × 28 pixels, one pixel after another. What are target_in and
#    target_out? How many runs does a training step take for a picture, and how many does writing one? Could it go from
#    the last pixel to the first?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The loss only gets better, because the answer is among what the model reads. It shows in writing, where there is no
#    answer to read yet.
# 2. p and p* both sum to 1, so their difference sums to 0. The same number added to all logits of a row changes
#    nothing.
# 3. It is a sum: each layer's cross-attention sends back its own gradient, for its keys and its values.
#
# ### Questions
#
# 1. One, with 9 rows. Nine, one for each token, eos included.
# 2. The answer leaks, since random answers can't be predicted. Look at the shift, at the causal mask, and for pieces
#    of the answer in the source.
# 3. All of them, by the same factor N/(B·T). The factor differs from batch to batch, so batches with much padding count
#    less. Adam hides most of it, because it divides by the size of the gradient.
# 4. It goes by position. Only the mirror position was right for all training words, and the model can't know in advance
#    that this word is special.
# 5. The 784 pixels, one place to the right and with a start in front, and the pixels as they are. (No end is needed,
#    since all pictures have the same length.) One run, and 784. It could: the product of conditional probabilities is
#    the same thing in any order, if training and writing use the same one.
#
# The exercise. First: row t looks at place t + 1, and the row of the last letter at place 0. Second: 1/(B N_i), with
# N_i tokens in answer i.

# %%
lesson.finish(globals())
