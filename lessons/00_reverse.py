# %% [markdown]
# # Lesson 00: A trained model reverses your own string
#
# [![All of it](../plots/00_reverse_map.png)](../plots/00_reverse_whole.png)
#
# **What will you have built at the end of this course?**
#
# 11 min, with a pencil 20, going deeper 2 · runs in 45 s (fast: 15 s) · needs none · difficulty 1 of 5 · paper:
# sections 1 to 3, figure 1
#
# ## Why by hand?
#
# In July 2025 a reader of a public PyTorch Transformer stopped at the line `value = self.k_proj(value)`. It should say
# `v_proj`, the matrix for values: the line above, for keys, had been copied, and its k was left. Such a model trains,
# and its loss falls. When we planted the mistake in this course's model, it reversed words as well as ever. Autograd,
# which computes gradients for you, raised no error, because each was the right gradient of the wrong program.
# Only `v_proj` got none, and on a single GPU PyTorch doesn't mention that. But go backwards with a pencil, look
# for the line that gives `v_proj` its gradient, and you find none. ([One sitting](one_sitting.py) tells the story.)
#
# For some thirty years, anyone who invented a network derived its gradients on paper. Now libraries record the forward
# pass and run it backwards, and what a derivation used to show goes unseen: which numbers never learn, where a gradient
# dies, which terms cancel. That is why you will do it once. **A backward pass is a second reading of the program: each
# number has to say how it reaches the loss, and one that can't is either a bug or useless.**
#
# But first look at what you will have built. Put your own word between the quotation marks below, with 1 to 12
# letters from a to z, and run this file. It trains a Transformer from random numbers and asks it to write your word
# backwards.

# %% Imports
from dataclasses import replace
from functools import partial

from support.architecture import architecture
from support.lab import BLUE, GREY, ROWS, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show
from support.pictures import grids

import numpy as np

from minitransformer.data import get_task
from minitransformer.data.tasks import make_batch
from minitransformer.decoding import greedy_decode
from minitransformer.evaluation import decode_and_score
from minitransformer.functional import cross_entropy
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import TrainingSettings, cosine, train
from minitransformer.vocabulary import BOS, EOS, PAD

lesson = begin("00_reverse")
example = running_example()

# %%
WORD = "attention"

# %% [markdown]
# In Python this is `WORD[::-1]`, so why is it worth a course? Because nobody tells the model what reversing is, or that
# letters have an order. Its 85,568 numbers are nearly all random at first. It is shown *random letters* and their
# mirror image, such as `qxpbtd` and `dtbpxq`, and after each batch of 64 words a cousin of gradient descent (lesson 13)
# moves the numbers a little. Random letters can't be memorized, so the model has to find the rule.
#
# ![The Transformer, with the shape of each value, and the ways of the gradient](../plots/00_reverse_whole.png)
#
# This is a map of the machine. You don't need to know its boxes yet: from lesson 01 on you build them, each with its
# blue arrow, the forward pass, and its orange arrow, the gradient. Nothing is differentiated automatically.
#
# > **2017.** Vaswani and seven colleagues published "Attention Is All You Need". Three older threads meet in their
# > machine: backpropagation, which Rumelhart, Hinton and Williams made popular in 1986; the LSTM of Hochreiter and
# > Schmidhuber (1997), which kept gradients alive over many steps; and attention, which Bahdanau, Cho and Bengio added
# > to translation in 2014. The paper prints no gradient.
#
# ## How fast, how blind, how far?
#
# 1. How long does one processor core need until the model reverses nearly every word it hasn't seen: ten seconds, ten
#    minutes or ten hours?
# 2. A *token* is what the model reads or writes in one step. There are V = 29: 26 letters and 3 special ones. A blind
#    guess gives the right one 1/29 = 3.4 %. What does the untrained model give it, as a geometric mean?
# 3. It is trained on words of up to 12 letters. Of words with 13, what share will it reverse?

# %%
guess_typical = ...  # in per cent, the untrained model's probability of the right token; blind is 3.4
guess_13 = ...  # in per cent, the words of 13 letters that come out right

# %% [markdown]
# ## See it learn
#
# A model writes one token at a time: it reads the source, which is your word, and what it has written so far, beginning
# with `bos`, and gives each of the V tokens a number, its logit. We append the token with the largest logit and let it
# read again (the long arrow on the right of the map), until it writes `eos`, the end. The third special token, `pad`,
# fills up short words in a batch.


# %%
def write(model, source, at_most=30):
    written = [BOS]
    while written[-1] != EOS and len(written) <= at_most:
        z, _ = model.forward(source[None], np.array([written]))  # (1, T, V) logits
        written.append(int(z[0, -1].argmax()))
    return np.array(written[1:])


task = get_task("reverse")
V = len(task.vocabulary)
model = Transformer(TransformerConfig(V, d_model=64, num_heads=2, d_ff=128, num_layers=1, dropout=0.0), seed=0)
batch = task.batch(np.random.default_rng(9), 1000)
for i in range(3):
    print(f"to learn from: {task.decode(batch.source[i])} -> {task.decode(batch.target_out[i])}")

pair = make_batch(task.encode(WORD)[None], task.encode(WORD)[None, ::-1])
steps = lesson.pick(full=1000, fast=200)
moments = {}


def look(step, history=None):  # at step 0, and during training
    if step in (0, 50, 100, 200, steps):
        p = model.attention_weights(*pair.inputs).cross[0][0].mean(axis=0)  # (T, S), see the picture
        moments[step] = task.decode(write(model, pair.source[0])), p
        print(f"after {step:4d} steps: {WORD} -> {moments[step][0]}")


look(0)
schedule = partial(cosine, steps=steps, peak=3e-3, warmup=50)
history = train(model, task, schedule=schedule, settings=TrainingSettings(steps=steps, eval_interval=50), evaluate=look)
if lesson.fast:
    print(f"too short to learn it: the text speaks of 1,000 steps, not {steps}")

# %% [markdown]
# At first the model stammers; then the beginning comes out right, and at last the whole word, after ten seconds or a
# little more (guess 1). But did it learn the rule, or has it met your word? One word in ten, chosen by a scrambling of
# its letters (a hash), is kept out of training. "attention" is one of them, and so are the 500 words of the next test.
# More than 99 % of them are right to the last letter. Lines that begin with `ok` are checks: a measured value, and its
# bound.

# %%
test = task.held_out_batch(np.random.default_rng(3), lesson.pick(full=500, fast=100))
_, score = decode_and_score(model, test)
print(f"held-out words that are right to the last letter: {score:.1%}")
if not lesson.fast:
    lesson.check("share of held-out words that are right", score, at_least=0.97)
written = write(model, pair.source[0])
library = greedy_decode(model, pair.source, 30)[0]
lesson.check("tokens in which our loop and the library's differ", (written != library[: len(written)]).sum(), 0)

# %%
figure, axes = plt.subplot_mosaic([[*map(str, moments)], ["loss"] * len(moments)], figsize=(7.2, 4.6))
for step, (text, p) in moments.items():
    panel = axes[str(step)]
    panel.imshow(p[:-1, :-1], cmap="Blues", vmin=0, vmax=1)
    panel.set_xticks(range(len(WORD)), [*WORD])
    panel.set_yticks(range(len(WORD)), [*WORD[::-1]] if step == 0 else [""] * len(WORD))
    panel.tick_params(length=0, labeltop=True, labelbottom=False, labelsize=8)
    panel.set_xlabel(f"step {step}:\n{text[:12]}", fontsize=9)
axes["0"].set_ylabel("letter to be written")
axes["loss"].plot(range(1, steps + 1), history.losses, color=BLUE, linewidth=1)
axes["loss"].axhline(np.log(V), color=GREY, linestyle="--", linewidth=1, label=f"ln {V}: a blind guess")
axes["loss"].set(xlabel="training step", ylabel="loss (nats per token)", ylim=(0, 1.3 * history.losses[0]))
axes["loss"].legend(loc="upper right")
figure.suptitle("Which letters of the word the model looks at, while it learns", fontsize=10)
lesson.save(figure)

# %% [markdown]
# ![What the model looks at, at five moments of the training, and the loss](../plots/00_reverse.png)
#
# Each small square is a table of weights, from the box "cross-attention" of the map. A row belongs to a letter to be
# written, and shows how much the model looks at each letter of your word, from 0 (white) to 1 (the darkest blue). On
# the left the square is pale, until its upper right corner turns dark: to write the first letter, look at the last one.
# In the end a line goes from there to the lower left, or with `--fast` begins to. Lesson 21 asks how far to trust it.

# %% [markdown]
# ## A model small enough to print
#
# Nobody can look at that many numbers. So a second model, with only 826, comes with us through the whole course. It
# knows the letters «o», «p», «s» and «t», and in every lesson it reads "stop" and writes "pots". We stopped its
# training early: it reverses 332 of the 340 words of one to four such letters, but it isn't sure. Here are its
# probabilities, one row for each token written:

# %%
p = example["output.p"]  # (T, V)
right = [VOCABULARY.index(token) for token in TARGET_OUT]
p_right = p[np.arange(5), right]
show("probabilities p (T, V)", p, ROWS, VOCABULARY)
highlight = {"p": list(enumerate(right))}
figure = grids({"p (T, V)": p}, labels={"T": ROWS, "V": VOCABULARY}, highlight=highlight, digits=3)
lesson.save(architecture(), "whole")
lesson.save(figure, "example")

# %% [markdown]
# ![The probabilities that the small model gives](../plots/00_reverse_example.png)
#
# A frame marks the right token of each row. Look at the position that reads «p» and writes «o», row p→o from now on. It
# gives «o» 0.697 and «p» 0.297: is the second letter an «o», or another «p»? You will follow this row through every
# box, to the place where its doubt begins. The probabilities come from its logits, 5.559 for «o» and 4.705 for «p», by
# the softmax (lesson 03):
#
#     p_j = exp(z_j) / Σ_i exp(z_i)
#
# [In the explorer: raise the logit of «p» to 6. What is left for «o»? Guess first. (There m is the largest logit of the
# row, and n the sum of exp(z −
# m).)](../minitransformer/explorer/page/index.html#embed=output.p[1,3]&turn=output.z[1,4])
#
# ## What does doubt cost?
#
# Training needs one number for how wrong the model is. The loss of one token is −ln of the probability of the right
# one, in a unit called nat. A probability of 1 costs nothing, half costs 0.693, and a quarter twice that. Zero costs an
# infinite amount, so never be certain and wrong. The loss L is the mean over all tokens.
#
# **Your line.** `p_right` holds the five probabilities of the right tokens. What is L?

# %%
small_loss = ...  # your line: from p_right, (T,)
lesson.judge("small_loss", small_loss)

# %% [markdown]
#     row       p of the right token      −ln p
#     bos→p     0.953                     0.048
#     p→o       0.697                     0.361
#     o→t       0.945                     0.057
#     t→s       0.917                     0.087
#     s→eos     0.999                     0.001
#
#     L = mean of −ln p = 0.1108
#
# Most of L comes from the row p→o. Why the logarithm? Each row has read the letters before it, so the probability of
# the whole answer is a product, 0.953 · 0.697 · 0.945 · 0.917 · 0.999 = 0.575. The logarithm turns the product into a
# sum, and the gradient of a sum is a sum of gradients.


# %%
def loss_of(z, ids):
    """The mean of −ln p of the right tokens: logits z (N, V), ids (N,)."""
    largest = z.max(axis=-1, keepdims=True)  # exp cannot overflow now, and p is the same
    p = np.exp(z - largest) / np.exp(z - largest).sum(axis=-1, keepdims=True)  # softmax, lesson 03
    return -np.log(p[np.arange(len(z)), ids]).mean()


L = loss_of(example["output.z"], right)
print(f"loss of the small model: {L:.4f} nats per token")
lesson.check("mean of the five losses", error(-np.log(p_right).mean(), L), 1e-14)

# %% [markdown]
# ## The loss of a model that knows nothing
#
# Back to the large model, before training. A blind guess gives each of V tokens the probability 1/V. Whichever one is
# right, this costs −ln(1/V) = ln V, and with V = 29 it is 3.367 nats. Can a model be worse? For one row,
#
#     L = −ln p_right = ln Σ_j exp(z_j) − z_right
#
# Write the sum as V times the mean over the V tokens, then subtract the mean of the logits, and add it again:
#
#     L = ln V + ln mean(exp(z)) − z_right
#       = ln V + [ ln mean(exp(z)) − mean(z) ] − [ z_right − mean(z) ]
#       = ln V + boldness − luck
#
# *Boldness* is 0 if all logits are equal, and positive if not, because the mean of exp is larger than exp of the mean.
# *Luck* is positive if the right token has a logit above the mean. A trained model is bold, and it is lucky for a
# reason. Without knowledge luck is 0, give or take chance, and boldness only costs.

# %%
untrained = Transformer(model.config, seed=0)
untied = Transformer(replace(model.config, tie_embeddings="inputs"), seed=0)  # with a matrix of its own at the end
counts = batch.target_out != PAD  # padding does not count
z, ids = untrained(*batch.inputs)[counts].astype(float), batch.target_out[counts]  # (N, V) and (N,)
loss_before = loss_of(z, ids)
library_loss, _ = cross_entropy(z, ids)
lesson.check("our loss against the library's", error(loss_before, library_loss), 1e-13)

boldness = (np.log(np.exp(z).mean(axis=-1)) - z.mean(axis=-1)).mean()
luck = (z[np.arange(len(z)), ids] - z.mean(axis=-1)).mean()
repeats = (z.argmax(axis=-1) == batch.target_in[counts]).mean()
untied_repeats = (untied(*batch.inputs)[counts].argmax(axis=-1) == batch.target_in[counts]).mean()
print(f"before training: {loss_before:.4f} = ln V {np.log(V):.4f} + boldness {boldness:.4f} − luck {luck:.4f}")
print(f"the favorite is the token just read in {repeats:.0%} of all places; with two matrices in {untied_repeats:.0%}")
lesson.compare("the right token gets, on the geometric mean, in per cent", guess_typical, 100 * np.exp(-loss_before))
lesson.check("ln V + boldness − luck is the loss", error(np.log(V) + boldness - luck, loss_before), 1e-13)

# %% [markdown]
# ## Worse than a blind guess
#
# "The loss of an untrained model is ln V" is said so often that people test new code with it. Ours pays 4.198 instead
# of 3.367: the right token gets exp(−4.198) = 1.5 %, *less* than the 3.4 % of a blind guess.
#
# It knows nothing yet, but already has an opinion: boldness is 0.907, luck is 0.077. In 81 % of all places its favorite
# is the token just read, which is why it stammers. Shortcuts around all layers (lesson 11) carry that token's vector to
# the end. A logit is the product with a token's vector, from the same matrix (lesson 04), and a vector is most like
# itself. With two separate matrices, the 81 % drops to 4 %.
#
# And guess 3?

# %%
per_length = {}
for length in lesson.pick(full=(4, 8, 12, 13, 14), fast=(8, 13)):
    words = np.random.default_rng(length).integers(3, V, size=(200, length))
    asked = make_batch(words, words[:, ::-1])
    _, per_length[length] = decode_and_score(model, asked)
print("right, by number of letters:", ", ".join(f"{length}: {share:.0%}" for length, share in per_length.items()))
lesson.compare("words of 13 letters that are right, in per cent", guess_13, 100 * per_length[13])

# %% [markdown]
# Of words with 12 letters, at least 95 % are right, with 13 hardly any, and with 14 none, because nobody ever asked the
# model for letter 13. Lesson 14 explores this edge.
#
# ## From here on
#
# Gradients you can trust come first (01 to 04), then attention (05 to 08), the rest of the machine (09 to 12),
# and training and using it (13 to 16). After that there are four tracks: before and after the paper (17 to 19), looking
# inside (20, 21), cost (22, 23), and training, closely (24, 25). On the way, ask each number how it reaches the loss.
#
# **In papers:** such a model is *sequence-to-sequence* (seq2seq, Sutskever et al. 2014) or an *encoder-decoder* (Cho et
# al. 2014).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 01.
#
# ### A level that proves reading
#
# ln V is the loss of a blind guess, but without reading the source you can do better. Always guess each token in
# proportion to how often it is right: `bos` and `pad` never, and the end of a word more often than any letter. That
# costs 3.216 nats, and no other fixed guess costs less (lesson 03 shows why). A model that can also
# count knows where a word may end. The 12 lengths are equally likely, so a word costs ln 12 for its length, and ln 26
# for each of its letters. There are 6.5 letters on average, and 7.5 tokens with `eos`: (ln 12 + 6.5 ln 26) / 7.5 =
# 3.155.
#
# Only reading the source can bring the loss below this. If it stays near 3.2, the decoder doesn't see the source, so
# check the mask (07), and check that the sources and targets in your batches match.

# %% [markdown]
# ## Exercise
#
# 1. Five minutes. Try a palindrome, `aaaaaaaaaa`, and a word of 14 letters. Before each run, say what the picture will
#    look like.
# 2. Ten minutes, pencil. One of V logits is 3.15, and all others are 0. What is the boldness for V = 29?
#
# ## Questions
#
# 1. The loss is 0.02 nats per token. What is the typical (geometric mean) probability of the right token?
# 2. What is the loss of a model that gives the right token 0.9 nine times, and 0.0001 once? What does this say?
# 3. Early in the training not a single word is right. Why is the loss useful already?
# 4. *Somewhere else.* Three fresh classifiers tell ten kinds of pictures apart. Before training, their losses are 2.31,
#    4.0 and 0.9. What would you say about each?

# %% [markdown]
# ## Answers
#
# 1. exp(−0.02) = 0.98.
# 2. (9 · 0.105 + 9.210) / 10 = 1.016. The one certain mistake costs nearly ten times as much as all the rest.
# 3. A word is right only if all its tokens are, and by chance that hardly ever happens. The loss moves from the first
#    step on.
# 4. ln 10 = 2.303, so the logits of the first are nearly equal, as they should be. The second is bold without knowing
#    anything: its logits are too large. The third knows answers that nobody has taught it, so they must leak into its
#    input.
#
# The exercise. First: the line is still there for the palindrome and for `aaaaaaaaaa`. Any a would do, but the model
# doesn't know beforehand that this word is special, so it applies its rule of positions. In a word of 14 letters, the
# first row should look at the last letter. It looks near the twelfth instead, the farthest it has ever needed to look,
# and `abcdefghijklmn` becomes something like `lkjihgffedcb`. Second: ln((e^3.15 + 28)/29) − 3.15/29 = 0.46.

# %%
one_bold = np.zeros(V)
one_bold[0] = 3.15
boldness_of_one = np.log(np.exp(one_bold).mean()) - one_bold.mean()
lesson.finish(globals())
