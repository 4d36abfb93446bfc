# %% [markdown]
# # Lesson 00: A trained model reverses your own string
#
# [![All of it](../plots/00_reverse_map.png)](../plots/00_reverse_whole.png)
#
# **What will you have built at the end of this course?**
#
# 11 min, with a pencil 30, going deeper 3 · runs in 45 s (fast: 15 s) · needs none · difficulty 1 of 5 · paper:
# sections 1 to 3, figure 1
#
# ## A word of your own
#
# Put a word of your own between the quotation marks, with 1 to 12 letters from a to z, and run this file. In a few
# seconds it builds a Transformer, trains it from random numbers, and asks it to write your word backwards.

# %% Imports
from architecture import architecture
from functools import partial
from lab import BLUE, GREY, ROWS, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show
from pictures import grids

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
# In Python this is `WORD[::-1]`. So why is it worth a course? Because nobody tells the model. It does not know what
# reversing is, or that letters have an order. Its 85,568 numbers are nearly all random at first. It is shown *random
# letters* and their mirror image, such as `qxpbtd` and `dtbpxq`, and after each batch of them a cousin of gradient
# descent (lesson 13) moves the numbers a little. Nobody can learn random letters by heart. The model has to find the
# rule, and soon you will see this rule in a picture.
#
# ![The Transformer, with the shape of each value, and the ways of the gradient](../plots/00_reverse_whole.png)
#
# The map shows the machine. (Nobody expects you to know its boxes yet.) It comes from the paper "Attention Is All
# You Need" (Vaswani and others, 2017), and large language models are made of the same parts. In this lesson the library
# provides them. From lesson 01 on you build them yourself, each with its blue arrow, the forward pass, and its orange
# arrow, the gradient. There is no automatic differentiation anywhere. **By lesson 14 all of this is yours.**
#
# ## Guess first
#
# Write your guesses down. A wrong guess is the best way to remember the answer.
#
# 1. On one processor core, how long does it take until the model reverses nearly every word that it has never seen: ten
#    seconds, ten minutes or ten hours?
# 2. A *token* is what the model reads or writes in one step. Here there are V = 29: 26 letters and 3 special ones.
#    Before training, what probability does it typically give to the right token: 1/29, more, or less?
# 3. It is trained on words of up to 12 letters. What will it do with a word of 13?

# %% [markdown]
# ## See it learn
#
# A model writes one token at a time. It reads the source, which is your word, and what it has written so far. Then it
# gives each of the V tokens a number, called a logit. We append the token with the largest logit and let it read again
# (the long arrow on the right of the map), until it writes `eos`, the end of the sequence. It starts from `bos`, the
# beginning. The third special token, `pad`, fills up short words in a batch.


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

# %% [markdown]
# Read the printed words from top to bottom. At first the model stammers. Then the beginning comes out right, and then
# the whole word.
#
# But did it learn the rule, or has it met your word? One word in ten is held out of training: a hash of its letters
# decides. "attention" is held out, and so are the 500 words of the next test. More than 99 % of them are right to the
# last letter. The answer to guess 1 is ten seconds, or a little more.
#
# (Lines that begin with `ok` are checks. They compare a measured value with its bound.)

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
# Each small square is a table of weights, from the box "cross-attention" of the map. A row belongs to a letter that has
# to be written. It shows how much the model looks at each letter of your word: white is 0, and the darkest blue is 1.
# (The row and the column of `eos` are left out. For this picture the model always reads the right letters, whatever it
# would write itself.) You should see a pale square on the left. Then the upper right corner turns dark: to write the
# first letter, look at the last one. In the end a line goes from there all the way to the lower left. *This line is the
# rule.* If you see a line from the upper left to the lower right instead, the model has learned to copy. If the line
# stays short, the training was too short, which is the case with `--fast`. (The curve below is the loss. You will meet
# it soon.)

# %% [markdown]
# ## A model small enough to print
#
# 85,568 numbers are too many to look at. So a second model, with 826, goes with us through the whole course. It knows
# the letters o, p, s and t. In every lesson it reads "stop" and writes "pots", with the same numbers, which fit on a
# few pages, forward and backward.
#
# We stopped its training early, on purpose. It reverses 332 of the 340 words of one to four such letters, but it is not
# sure of itself. Here are its probabilities, one row for each token that it writes:

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
# A row is named by the token that it reads and the token that it must write, and a frame marks the right one. Look at
# the row p→o. The model has just written p, and now it must write o. It gives o 0.697, and p 0.297. Is the second
# letter an o, or another p? Keep an eye on this row. You will follow it through every box of the map and find out
# where its doubt comes from.
#
# ## What does doubt cost?
#
# Training needs one number that says how wrong the model is. Take −ln of the probability of the right token. This is
# the loss of one token, and its unit is called nat. The loss L is the mean over all tokens:
#
#     row       p of the right token      −ln p
#     bos→p     0.953                     0.048
#     p→o       0.697                     0.361
#     o→t       0.945                     0.057
#     t→s       0.917                     0.087
#     s→eos     0.999                     0.001
#
#     L = mean of −ln p = 0.1108
#
# A probability of 1 costs nothing. Half costs 0.693, a quarter twice that. Zero costs infinitely much: never be certain
# and wrong. Most of our small model's loss comes from the row p→o.
#
# Why the logarithm? Each row has read the letters before it. So the probability of the whole answer is a product,
# 0.953 · 0.697 · 0.945 · 0.917 · 0.999 = 0.575. The logarithm turns the product into a sum, and the gradient of a sum
# is a sum of gradients.


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
# Back to the large model, before its training. Guess blindly: give each of V tokens the probability 1/V. Whichever is
# right, this costs −ln(1/V) = ln V. With V = 29 it is 3.367 nats.
#
# Can a model be worse? It turns its logits z into probabilities by the softmax (lesson 03):
#
#     p_right = exp(z_right) / Σ_j exp(z_j)
#     L = −ln p_right = ln Σ_j exp(z_j) − z_right
#
# Write the sum as V times a mean. Then subtract the mean of the logits, and add it again:
#
#     L = ln V + ln mean(exp(z)) − z_right
#       = ln V + [ ln mean(exp(z)) − mean(z) ] − [ z_right − mean(z) ]
#       = ln V + boldness − luck
#
# *Boldness* is 0 if all logits are equal, and positive if not, because the mean of exp is larger than exp of the mean.
# *Luck* is positive if the right token has a logit above the mean. A trained model is bold, and it is lucky for a
# reason. But without knowledge, luck is about 0 on average, and boldness only costs.

# %%
untrained = Transformer(model.config, seed=0)
counts = batch.target_out != PAD  # padding does not count
z, ids = untrained(*batch.inputs)[counts].astype(float), batch.target_out[counts]  # (N, V) and (N,)
loss_before = loss_of(z, ids)
library_loss, _ = cross_entropy(z, ids)
lesson.check("our loss against the library's", error(loss_before, library_loss), 1e-13)

boldness = (np.log(np.exp(z).mean(axis=-1)) - z.mean(axis=-1)).mean()
luck = (z[np.arange(len(z)), ids] - z.mean(axis=-1)).mean()
repeats = (z.argmax(axis=-1) == batch.target_in[counts]).mean()
print(f"before training: {loss_before:.3f} = ln V {np.log(V):.3f} + boldness {boldness:.3f} − luck {luck:.3f}")
print(f"the favorite is the token just read in {repeats:.0%} of all places")
lesson.check("ln V + boldness − luck is the loss", error(np.log(V) + boldness - luck, loss_before), 1e-13)

# %% [markdown]
# ## The surprise
#
# "The loss of an untrained model is ln V" is said so often that people test new code with it. Ours pays 4.198 instead
# of 3.367. (It is the left end of the curve above.) The right token typically gets exp(−4.198) = 1.5 %, and a blind
# guess would give it 3.4 %. So the answer to guess 2 is *less*.
#
# The model knows nothing yet, but it already has an opinion: boldness is 0.907, luck is 0.077. In 81 % of all places
# its favorite is the token that it has just read. That is why it stammers. Two things cause it: a matrix that is used
# twice, at the bottom and at the top of the map (lesson 04), and a shortcut around every layer (lesson 11). Use two
# separate matrices, and the 81 % drops to 4 %.
#
# And guess 3? Of words with 12 letters, at least 95 % are right. With 13 letters hardly any are, and with 14 none.
# Nobody ever asked the model for letter 13. Its rule has an edge, and lesson 14 goes there.

# %%
per_length = {}
for length in lesson.pick(full=(4, 8, 12, 13, 14), fast=(8, 14)):
    words = np.random.default_rng(length).integers(3, V, size=(200, length))
    asked = make_batch(words, words[:, ::-1])
    _, per_length[length] = decode_and_score(model, asked)
print("right, by number of letters:", ", ".join(f"{length}: {share:.0%}" for length, share in per_length.items()))

# %% [markdown]
# ## The way
#
# * Gradients you can trust: derivatives (01), the linear layer (02), the loss (03), from tokens to vectors (04).
# * Attention, the idea of the paper: how one token finds another (05), its gradient (06), masks (07), many heads (08).
# * The rest of the machine: positions (09), layer norm (10), residual paths (11), everything together (12).
# * Training and using it: the optimizer (13), today's task in full (14), what to do when it fails (15), better ways of
#   writing (16).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 01.
#
# ### A level that proves reading
#
# ln V is the loss of a blind guess, but you can do better without reading the source. Let p* be the true share of each
# token among the right answers. A model that always guesses the same p pays −Σ_w p*_w ln p_w on average. Which p is
# best? From ln x ≤ x − 1,
#
#     Σ_w p*_w ln p_w − Σ_w p*_w ln p*_w = Σ_w p*_w ln (p_w / p*_w)
#                                        ≤ Σ_w p*_w (p_w / p*_w − 1) = Σ_w p_w − Σ_w p*_w ≤ 0
#
# So no guess is better than p* itself, and what it costs, −Σ_w p*_w ln p*_w, is called the *entropy*. (The sums leave
# out tokens with p*_w = 0.) Here it is 3.216, a little below ln V: `bos` and `pad` are never right, and the end of a
# word is more common than any letter.
#
# A model that can also count knows where a word may end. A word costs ln 12 for its length and ln 26 for each of its
# letters. There are 6.5 letters on average, and 7.5 tokens with `eos`: (ln 12 + 6.5 ln 26) / 7.5 = 3.155. Only reading
# the source can bring the loss below this. A loss that stays near 3.2 says: the decoder does not see the source. Check
# the mask (07) and whether sources and targets in your batches belong together.

# %%
p_star = np.bincount(ids, minlength=V) / len(ids)
p_star = p_star[p_star > 0]
entropy = -(p_star * np.log(p_star)).sum()
counting = (np.log(12) + 6.5 * np.log(26)) / 7.5
guesses = np.random.default_rng(0).dirichlet(50 * p_star, size=1000)  # 1000 other guesses, near to p*
lesson.check("the best of 1000 other guesses costs more, by", (-np.log(guesses) @ p_star).min() - entropy, at_least=0)

# %% [markdown]
# ### In the wild
#
# * When is the first loss near ln V? If the logits are normal with variance σ², the mean of exp(z) is about exp(σ²/2),
#   and boldness is about σ²/2. GPT-2's output matrix starts with a standard deviation of 0.02 and meets 768 features of
#   size 1: σ = 0.02 · √768 = 0.55, and boldness is 0.15. That is near ln V. Ours starts with 1/√64, so σ is at least 1,
#   and boldness about 0.5, with the stammer on top. Neither is a mistake.
# * Perplexity is exp(L): the number of equally likely tokens that would be as hard. For a blind guess it is V.
# * Toy tasks are often tested on fresh random words. Many of the short ones were in the training set: there are only
#   676 words of two letters. A hash of the letters keeps each word on one side forever.
# * A token that is right with probability 0.99 sounds good. A word of nine letters needs ten tokens: 0.99¹⁰ = 0.904.
#
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

# %% [markdown]
# ## Answers
#
# 1. exp(−0.02) = 0.98.
# 2. (9 · 0.105 + 9.210) / 10 = 1.016. The one certain mistake costs nearly ten times as much as all the rest.
# 3. A word is right only if all its tokens are, and by chance that hardly ever happens. The loss moves from the first
#    step on.
#
# The exercise. First: the line is still there for the palindrome and for `aaaaaaaaaa`. Any a would do, but the model
# does not know beforehand that this word is special, so it applies its rule of positions. In a word of 14 letters, the
# first row should look at the last letter. It looks near the twelfth instead, the farthest that it has ever needed, and
# `abcdefghijklmn` becomes something like `lkjihgffedcb`. Second: ln((e^3.15 + 28)/29) − 3.15/29 = 0.46.

# %%
one_bold = np.zeros(V)
one_bold[0] = 3.15
boldness_of_one = np.log(np.exp(one_bold).mean()) - one_bold.mean()
lesson.finish(globals())
