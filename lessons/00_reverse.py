# %% [markdown]
# # Lesson 00: A trained model reverses your own string
#
# * Question: what will I have built when I have worked through these lessons?
# * You derive: what a model that knows nothing must lose per token, and why an untrained one loses more
# * Reading: 19 min, going deeper 0 min
# * Run: 30 s (fast: 6 s)
# * Needs: none
# * Difficulty: 1 of 5
# * Paper: sections 1 to 3, figure 1

# %%
import time
from functools import partial
from lab import BLUE, GREY, ORANGE, begin, error, plt

import numpy as np

from minitransformer.data import get_task
from minitransformer.data.tasks import is_held_out, make_batch
from minitransformer.decoding import greedy_decode
from minitransformer.evaluation import exact_match as library_exact_match
from minitransformer.functional import cross_entropy
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import AverageOfLast, TrainingSettings, cosine, train
from minitransformer.vocabulary import BOS, EOS, PAD

lesson = begin("00_reverse")

# %% [markdown]
# Choose a word. It may have 1 to 12 letters from a to z; that is what the model below will be taught to reverse.
# Change it, run the file again, and look at the figure.

# %%
WORD = "attention"

# %% [markdown]
# This lesson is a promise. You see the whole machine work once, on a word of your own, before you know how any part of
# it is made. Then, from lesson 01 on, you make every part yourself, forward and backward, with no automatic
# differentiation anywhere. By lesson 14 all of this is yours. ("The paper", here and in all lessons, is "Attention Is
# All You Need" by Vaswani and others, 2017, which introduced the Transformer.)
#
# The task sounds like nothing: read `attention`, write `noitnetta`. In Python it is `word[::-1]`. But the model is not
# told that there is such a thing as an order, or what reversing means. It sees pairs of words and has 85,568 numbers,
# nearly all random at first, to adjust. What it finds with them is a rule, and in the figure you can see the rule.
#
# ## Predict
#
# Write your guesses down before you go on; they are worth more to you wrong than not made.
# 1. The model knows 29 tokens: 26 letters, and three signs for padding, for the beginning and for the end of a word.
#    What is its loss, in nats per token, before the first training step? (Loss and nat are explained just below, under
#    "Small numbers"; guess after that, if you like. Answered under "The surprise".)
# 2. How long must it train, on one processor core, until it reverses nearly every word that it has never seen: ten
#    seconds, ten minutes, or ten hours? (Answered under "Checked".)
# 3. It is taught words of up to 12 letters. What will it do with a word of 13? (Answered under "The surprise".)

# %% [markdown]
# ## Small numbers
#
# A model that writes does not name the next token. It gives every token a probability, p. When the right token is
# known, the model is charged `−ln p(right token)`: the less it believed in the right one, the more it pays. This is
# the loss of one token; its unit is the nat, because the logarithm is the natural one.
#
# Take a vocabulary of four tokens and the guess p = [1/2, 1/4, 1/8, 1/8]. With ln 2 = 0.693:
#
#     right token    p      loss = −ln p
#     first          1/2    1 · 0.693 = 0.693
#     second         1/4    2 · 0.693 = 1.386
#     third          1/8    3 · 0.693 = 2.079
#
# A guess of 1 for the right token costs nothing. A guess of 0 for it costs infinitely much: never be certain and wrong.
# For a whole word the probabilities multiply, so the losses add up: `−ln(p₁ p₂ p₃) = −ln p₁ − ln p₂ − ln p₃`.

# %%
p = np.array([1 / 2, 1 / 4, 1 / 8, 1 / 8])
print("losses of the four tokens:", (-np.log(p)).round(3))
print("all four equally likely: ", round(-np.log(1 / 4), 3), "whichever is right")
lesson.quote("1 · 0.693 = 0.693", 1, np.log(2), -np.log(p[0]))
lesson.quote("2 · 0.693 = 1.386", 2, np.log(2), -np.log(p[1]))
lesson.quote("3 · 0.693 = 2.079", 3, np.log(2), -np.log(p[2]))

# %% [markdown]
# ## The derivation
#
# No gradient yet. We derive a few numbers that turn a loss on the screen into a statement about the model.
#
# ### Part 1: all tokens equally likely
#
# There are V tokens (V = 29 here). A model that gives each the probability 1/V pays, whichever is right,
#
#     loss = −ln(1/V) = ln V = ln 29 = 3.367 nats per token.
#
# If it names a token at random, it is right once in V times, 3.4 %. A word of n letters needs n + 1 right tokens (the
# last says "here the word ends"), so a random word is right with probability (1/V)ⁿ⁺¹: for nine letters, 2.4e-15.

# %%
task = get_task("reverse")
V = len(task.vocabulary)
uniform = np.log(V)
print(f"V = {V}, ln V = {uniform:.3f} nats per token, right by chance {1 / V:.1%}")
lesson.quote("loss = −ln(1/V) = ln V = ln 29 = 3.367 nats per token", 1, V, uniform)
lesson.quote("once in V times, 3.4 %", 100 / V)
lesson.quote("for nine letters, 2.4e-15", V**-10.0)

# %% [markdown]
# ### Part 2: the best that can be done without reading
#
# Call q the share of each token among the right answers. A model that does not read can make one fixed guess p, the
# same everywhere. On average it pays the *cross-entropy*
#
#     H(q, p) = −Σᵥ qᵥ ln pᵥ          the sum runs over all tokens v.
#
# Which p is best? Compare with p = q. All we need is that ln x ≤ x − 1 (the curve ln x lies below its tangent at 1):
#
#     H(q, q) − H(q, p) = Σᵥ qᵥ ln(pᵥ / qᵥ)            the two sums in one
#                       ≤ Σᵥ qᵥ (pᵥ / qᵥ − 1)          by ln x ≤ x − 1, with x = pᵥ / qᵥ
#                       = Σᵥ pᵥ − Σᵥ qᵥ
#                       ≤ 1 − 1 = 0.
#
# (v runs over the tokens that occur, qᵥ > 0; that is why Σᵥ pᵥ may be less than 1.) So H(q, q) ≤ H(q, p): nothing
# beats guessing the shares themselves. What is left, H(q, q) = −Σᵥ qᵥ ln qᵥ, is the *entropy* of the answers. Here it
# is 3.216 nats, a little below ln V, since the end of a word is more common than any letter, while padding and the
# beginning never have to be said.
#
# A model that can count, too, can do a little better: it learns at which places words end. With lengths from 1 to 12,
# equally often, and equally likely letters, a word costs ln 12 for its length and ln 26 for each of its letters, 6.5 on
# average; over 7.5 tokens that is (ln 12 + 6.5 ln 26) / 7.5 = 3.155. A loss below this proves that the model has read.

# %%
batch = task.batch(np.random.default_rng(9), 1000)  # 1000 pairs of words
counts = batch.target_out != PAD  # which tokens have to be said; padding only fills the rows up
answers = batch.target_out[counts]
q = np.bincount(answers, minlength=V) / len(answers)
q_seen = q[q > 0]
entropy = -(q_seen * np.log(q_seen)).sum()
print(f"share of the end sign {q[EOS]:.3f}, of a letter about {q[3:].mean():.3f}; entropy {entropy:.3f} nats")
lesson.quote("is 3.216 nats, a little below ln V", entropy)
unread = (np.log(12) + 6.5 * np.log(26)) / 7.5
lesson.quote("that is (ln 12 + 6.5 ln 26) / 7.5 = 3.155", 12, 6.5, 26, 7.5, unread)

rng = np.random.default_rng(0)
guesses = rng.dirichlet(50 * q_seen, size=1000)  # other guesses, rather near to q
costs = -(np.log(guesses) @ q_seen)
lesson.check("the best of 1000 other guesses costs more than the entropy, by", costs.min() - entropy, at_least=1e-3)

# %% [markdown]
# ### Part 3: a model that guesses differently each time, without knowing why
#
# A model computes a number for each token, the logit zᵥ, and turns them into probabilities by the softmax
# `pᵥ = exp(zᵥ) / Σᵤ exp(zᵤ)` (lesson 03). With t the right token, its loss is
#
#     loss = −ln pₜ = ln Σᵤ exp(zᵤ) − zₜ.
#
# Write z̄ for the mean of the V logits. Take V out of the sum, then add and subtract z̄:
#
#     loss = ln V + ln( (1/V) Σᵤ exp(zᵤ) ) − zₜ
#          = ln V + [ ln( (1/V) Σᵤ exp(zᵤ) ) − z̄ ] + [ z̄ − zₜ ]
#                     boldness                          luck
#
# *Boldness* is never negative: the mean of exp is at least exp of the mean, because exp curves upwards. It is 0 only if
# all logits are equal. *Luck* is negative when the right token has an uncommonly large logit. If the logits have
# nothing to do with the right token, nor with how often each token occurs, luck averages to about 0. Then being bold
# can only cost: a model that does not know should say so, and the loss of an ignorant model is ln V plus its boldness.

# %% [markdown]
# ## From scratch
#
# Four small functions: the loss; its split into the three terms; how often a whole word is right; and the loop that
# lets a model write. The model itself is the library's today.
#
# The loop is all there is to writing. The model reads the source, and what it has written so far; it gives logits for
# the token that comes next; we take the largest, append it, and begin again, until it says that the word ends.


# %%
def token_loss(z, t):
    """Mean of -ln p[t] in nats: logits z (N, V), right tokens t (N,)."""
    largest = z.max(axis=1)  # taken out so that exp cannot overflow; it cancels
    total = np.exp(z - largest[:, None]).sum(axis=1)
    return (np.log(total) + largest - z[np.arange(len(z)), t]).mean()


def boldness_and_luck(z, t):
    """The second and the third term of the split, each averaged over the tokens."""
    mean = z.mean(axis=1)
    boldness = np.log(np.exp(z).mean(axis=1)) - mean
    return boldness.mean(), (mean - z[np.arange(len(z)), t]).mean()


def exact_match(decoded, expected):
    """The share of rows that are right to the last token, where both are padded to one width."""
    return np.mean([np.array_equal(a, b) for a, b in zip(decoded, expected, strict=True)])


def write(model, source, room=30):
    """Let the model write the answer to one source (S,) -> ids, the end sign included."""
    written = [BOS]
    while len(written) <= room and written[-1] != EOS:
        logits, _ = model.forward(source[None, :], np.array([written]))  # (1, T, V)
        written.append(int(logits[0, -1].argmax()))
    return np.array(written[1:])


# %% [markdown]
# Now the model. Every line of the configuration, and every word below, has its lesson:
#
#     letters become vectors, with one matrix for input and output          lesson 04
#     where in the word a letter stands                                     lesson 09
#     attention: each position gathers from others, weighted                lessons 05 and 06 (backward)
#     who may look where: padding, and never ahead                          lesson 07
#     several attentions side by side, the heads                            lesson 08
#     the two-layer network behind it, with ReLU                            lesson 02
#     normalisation and the sums around it                                  lessons 10 and 11
#     the loss, and its gradient                                            lesson 03
#     all of it stacked into an encoder, which reads, and a decoder         lesson 12
#     Adam and the learning rate that rises and falls                       lesson 13
#     the toy tasks, copy and reverse, taken apart                          lesson 14
#     what to do if it does not learn                                       lesson 15
#     better ways of writing than always taking the likeliest token         lesson 16
#     how we know that all the gradients are right                          lesson 01, the next

# %%
config = TransformerConfig(V, d_model=64, num_heads=2, d_ff=128, num_layers=1, dropout=0.0)
model = Transformer(config, seed=0)
lesson.quote("has 85,568 numbers", model.num_parameters())

before, _ = model.forward(*batch.inputs)
z = before[counts].astype(np.float64)  # (N, V): the logits of each token that has to be said
loss_before = token_loss(z, answers)
boldness, luck = boldness_and_luck(z, answers)
repeats = (z.argmax(axis=1) == batch.target_in[counts]).mean()  # largest logit = the token just read?
print(f"before training: loss {loss_before:.3f} = ln V {uniform:.3f} + boldness {boldness:.3f} + luck {luck:.3f}")

# %% [markdown]
# Train. Words in which a hash of the letters says "held out", one in ten, are never shown; we test on those. The
# default word is one of them.

# %%
settings = TrainingSettings(steps=lesson.pick(full=1000, fast=200), batch_size=64)
schedule = partial(cosine, steps=settings.steps, peak=3e-3, warmup=50)
started = time.perf_counter()
history = train(model, task, schedule=schedule, settings=settings, averaging=AverageOfLast(settings.steps))
seconds = time.perf_counter() - started
print(f"{settings.steps} steps in {seconds:.1f} s; loss of the last 20 steps {np.mean(history.losses[-20:]):.4f} nats")

source = np.append(task.encode(WORD), EOS)
written = write(model, source)
known = "was held out of training" if is_held_out(source[None, :])[0] else "may have been seen in training"
print(f"\n    {WORD} -> {task.decode(written)}    ({known})\n")
if task.decode(written) != WORD[::-1]:
    print(f"    That is wrong; right would be {WORD[::-1]}. Trained {settings.steps} steps on up to 12 letters.\n")

# %% [markdown]
# ## Checked
#
# First what is exact: our functions against the library's, and the split of the loss. Then what was learnt. The
# answer to the second guess is seconds, not minutes or hours (the line printed above says how many on your machine);
# afterwards more than 99 % of held-out words are right to the last letter.

# %%
zeros = np.zeros((5, 7, V))
ids = rng.integers(1, V, size=(5, 7))
lesson.check("loss of equal logits is ln V", error(cross_entropy(zeros, ids)[0], uniform), 1e-14)
library_loss, _ = cross_entropy(before.astype(np.float64), batch.target_out, pad=PAD)
lesson.check("our loss = the library's", error(loss_before, library_loss), 1e-12)
lesson.check("ln V + boldness + luck = the loss", error(uniform + boldness + luck, loss_before), 1e-12)

test = task.held_out_batch(np.random.default_rng(3), lesson.pick(full=500, fast=100))
decoded = greedy_decode(model, test.source, test.target_out.shape[1])
wide = np.zeros_like(test.target_out)
wide[:, : decoded.shape[1]] = decoded
score = exact_match(wide, test.target_out)
lesson.check("our exact match = the library's", error(score, library_exact_match(decoded, test.target_out)), 1e-15)
same = np.array_equal(written, greedy_decode(model, source[None, :], 30)[0][: len(written)])
lesson.check("our writing loop differs from the library's in", 1 - same, 0)

after, _ = model.forward(*test.inputs)
test_counts = test.target_out != PAD
loss_after = token_loss(after[test_counts].astype(np.float64), test.target_out[test_counts])
lesson.check("it reads: loss on held-out words is below 3.155 nats by", unread - loss_after, at_least=0.5)
if not lesson.fast:
    lesson.check("held-out words that are right to the last letter", score, at_least=0.97)
    lesson.quote("more than 99 % of held-out words", 100 * score, within=0.02)

# %% [markdown]
# ## The picture
#
# The left panel is a row of attention weights for each letter that is written: which letters of the source the model
# looked at, averaged over its two heads. Each row sums to 1. The right panel is the loss of every training step, with
# the levels from parts 1 and 2.

# %%
pair = make_batch(task.encode(WORD)[None, :], task.solve(task.encode(WORD)[None, :]))
weights = model.attention_weights(*pair.inputs).cross[-1][0]  # (H, T, S)
lesson.check("rows of attention sum to 1", error(weights.sum(axis=-1), np.ones(weights.shape[:-1])), 1e-6)

n = len(WORD)
mirror = weights.mean(axis=0)[np.arange(n), n - 1 - np.arange(n)].mean()
print(f"mean weight on the mirror letter: {mirror:.2f}; of equal weights it would be {1 / (n + 1):.2f}")
if WORD == "attention" and not lesson.fast:
    lesson.check("mean weight on the mirror letter", mirror, at_least=0.4)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.5), width_ratios=(1.1, 1))
image = left.imshow(weights.mean(axis=0), vmin=0.0, vmax=1.0)
left.set_xticks(range(n + 1), [*WORD, "end"])
left.set_yticks(range(n + 1), [*WORD[::-1], "end"])
small = 9 if n < 12 else 7  # room for the letters of a long word
left.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False, labelsize=small)
left.spines[:].set_visible(False)
left.set(xlabel="letter of the source attended to", ylabel="letter to be written")
figure.colorbar(image, ax=left, shrink=0.75, label="attention weight")
right.plot(np.arange(1, len(history.losses) + 1), history.losses, color=BLUE, linewidth=1, label="training")
right.axhline(uniform, color=GREY, linestyle="--", linewidth=1, label="ln V: knows nothing")
label = "entropy: knows how often\neach token occurs"
right.axhline(entropy, color=ORANGE, linestyle="--", linewidth=1, label=label)
right.set(xlabel="training step", ylabel="loss (nats per token)", ylim=(0, 1.5 * max(history.losses)))
right.legend(fontsize=8, loc="upper right")
mirrored = int((weights.mean(axis=0)[:n].argmax(axis=-1) == n - 1 - np.arange(n)).sum())
instead = "" if task.decode(written) == WORD[::-1] else f" instead of “{WORD[::-1]}”"
figure.suptitle(
    f"Writing “{task.decode(written)}”{instead}:\n{mirrored} of {n} letters attend most to their mirror image",
    fontsize=10,
)
lesson.save(figure)

# %% [markdown]
# You should see a bright diagonal from the top right to the bottom left: the first letter written looks at the last
# letter read, the second at the last but one. It stops one column short of the right edge, because that column is the
# end sign, and hardly any row but the last looks there. On the right, the loss begins above both dashed lines, crosses
# them within the first 50 steps and sinks towards 0.
# If you see a smear in place of the diagonal, then the model has not trained long enough (in fast mode it has
# not). If the diagonal runs from the top left to the bottom right, then it has learnt to copy: look at your data.
# If the loss settles on a dashed line, the decoder is not reading the source at all.
#
# ## The surprise
#
# Two things that we did not expect when we measured.
#
# First, "the loss begins at ln V" is said so often that it is used as a test of new code. Ours begins at 4.198, not
# 3.367. The split says why: boldness is 0.907, luck only −0.077. And it is bold in one direction. In 81 % of all
# places the largest logit belongs to the token that the decoder has just read. Before it has learnt anything, the
# model stammers: it says the last letter again. The reason is in the architecture. One matrix turns tokens into
# vectors and vectors into logits, and the sums around each layer carry much of the input's vector to the output. With
# a second, unrelated matrix for the logits the stammer is gone: 4 %, little more than chance. You will meet the matrix
# in lesson 04 and the sums in lesson 11.
#
# Second, the rule that it finds has an edge. Of random words with 12 letters it reverses at least 95 %, of words with
# 13 letters hardly any, and with 14 letters none. Nothing in the attention's formula changes from 12 to 13. What
# changes is that nobody ever asked it where the mirror image of position 13 is. Lesson 14 looks at this again.

# %%
lesson.quote("within the first 50 steps", max(50, 1 + np.flatnonzero(np.array(history.losses) < entropy)[0]))
lesson.quote("begins at 4.198, not 3.367", loss_before, uniform, within=1e-4)
lesson.quote("boldness is 0.907, luck only −0.077", boldness, luck, within=0.01)
lesson.quote("In 81 % of all places", 100 * repeats)
untied = Transformer(TransformerConfig(**{**vars(config), "tie_output": False}), seed=0)
untied_repeats = (untied(*batch.inputs)[counts].argmax(axis=1) == batch.target_in[counts]).mean()
print(f"untrained: it repeats in {repeats:.1%} of all places, with an output matrix of its own in {untied_repeats:.1%}")
lesson.quote("the stammer is gone: 4 %", 100 * untied_repeats)

lengths = lesson.pick(full=(1, 4, 8, 11, 12, 13, 14, 16), fast=(8, 14))
per_length = {}
for length in lengths:
    words = rng.integers(3, V, size=(200, length))
    asked = make_batch(words, words[:, ::-1])
    per_length[length] = library_exact_match(greedy_decode(model, asked.source, length + 4), asked.target_out)
print("letters    ", *(f"{length:5d}" for length in per_length))
print("right      ", *(f"{share:5.0%}" for share in per_length.values()))
if not lesson.fast:
    lesson.check("share of 12-letter words that are right", per_length[12], at_least=0.95)
    lesson.check("share of 13-letter words that are right", per_length[13], at_most=0.3)
    lesson.check("share of 14-letter words that are right", per_length[14], at_most=0.01)
    lesson.quote("12 letters it reverses at least 95 %", 12, min(95, 100 * per_length[12]))
lesson.claim(
    "the loss of an untrained model is ln V",
    "half right",
    f"ln V = {uniform:.3f} is the loss of equal guesses; this Transformer begins at {loss_before:.3f}, as its tied "
    f"matrix makes it repeat the token just read in {repeats:.0%} of all places",
)

# %% [markdown]
# ## Exercise
#
# 1. *Your own words* (5 minutes). Set WORD to five words: a short one, one of 12 letters, a palindrome, `aaaaaaaaaa`,
#    and one of 14 letters. Before each run, say what the picture will look like. You pass if you can explain the
#    pictures of the palindrome and of `aaaaaaaaaa`: why does the model still look near the mirror image, when any
#    `a` would do?
# 2. *A bold guesser* (10 minutes, pencil). Of V logits one is a, at a random place, and all others are 0. Show that the
#    boldness is ln((eᵃ + V − 1) / V) − a/V. For V = 29 and a = 3.15 it should come to about 0.46. You pass if
#    `boldness_and_luck(z, t)` gives the same for such a z.

# %%
a = 3.15
one_bold = np.zeros((V, V))
np.fill_diagonal(one_bold, a)
by_hand = np.log((np.exp(a) + V - 1) / V) - a / V
lesson.check("boldness of the exercise", error(boldness_and_luck(one_bold, np.arange(V))[0], by_hand), 1e-13)
lesson.quote("For V = 29 and a = 3.15 it should come to about 0.46", V, a, by_hand)

# %% [markdown]
# ## Questions
#
# 1. The loss on the screen is 0.02 nats per token. What is the (geometric) mean probability of the right token?
# 2. Your model's loss has stood at 3.216 for 500 steps. What do you suspect?
# 3. A word has nine letters and the model gets each token right with probability 0.99, independently. How often is the
#    whole word right?
# 4. Why does the test use words that a hash has chosen, and not simply "other random words"?
# 5. Why does the exact match of an untrained model say so little, and its loss so much?
#
# ## In the wild
#
# * Many guides say: check that the first loss is ln V. It depends on the size of the output weights. If logits are
#   drawn from a normal distribution with variance σ², the mean of exp(z) is near exp(σ²/2), so boldness is near σ²/2.
#   GPT-2's output matrix begins with a standard deviation of 0.02 and meets 768 features of size 1, so
#   σ = 0.02·√768 = 0.55 and the boldness is about 0.15: near ln V, as the guides say. Ours begins with 1/√64, so σ is
#   1 at least and the boldness 0.5, with the stammer on top. Neither is a mistake. What always holds is the split, with
#   luck near 0 before training.
# * Toy tasks are often tested on fresh random words. For short words these are partly the words of the training set:
#   there are only 676 words of two letters. Here the hash decides, so a test word cannot have been seen.
# * The loss is often reported as perplexity, exp(loss): the number of equally likely tokens that would be as hard.
#   For equal guesses it is V, here 29.
# * With label smoothing, as in the paper, the loss cannot reach 0 (lesson 03). It is switched off here.

# %%
lesson.quote("σ = 0.02·√768 = 0.55", 0.02, 768, 0.02 * 768**0.5)
lesson.quote("about 0.15: near ln V", (0.02 * 768**0.5) ** 2 / 2)
lesson.quote("one right word of nine letters in 4e14 attempts", V**10.0)
lesson.quote("only 676 words of two letters", 26**2)
lesson.quote("it is V, here 29", np.exp(uniform))
lesson.quote("mean probability is exp(−0.02) = 0.98", -0.02, np.exp(-0.02))
lesson.quote("0.99¹⁰ = 0.904, so 90 %", 0.99, 0.99**10, 100 * 0.99**10)
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. The loss is the mean of −ln p, so the geometric mean probability is exp(−0.02) = 0.98.
# 2. That is the entropy of the answers: the model has learnt how often each token occurs and nothing else. The source
#    does not reach the output. Look at the mask (lesson 07), at the attention with which the decoder reads the source
#    (lesson 12), and at whether source and target belong together in your batches.
# 3. Ten tokens must be right, the end sign included: 0.99¹⁰ = 0.904, so 90 %. Small errors per token are large errors
#    per word.
# 4. Other random words of one or two letters would nearly all have been in the training set. A hash of the word itself
#    puts each word on one side for ever, whatever the seed and however long the training.
# 5. With 29 tokens, one right word of nine letters in 4e14 attempts is all that guessing achieves: the exact match is
#    0 for a long time, whatever the model learns. The loss moves from the first step on, and the derived levels say
#    what each value means.
