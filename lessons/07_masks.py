# %% [markdown]
# # Lesson 07: How a model peeks at its answer
#
# * Question: how do you keep a row from reading what it must write, and how would you notice if it does?
# * You derive: the masked softmax and its backward pass; empty rows; the best loss with and without a leak
# * Reading: 13 min, going deeper 4 min
# * Run: 60 s (fast: 10 s)
# * Needs: 01, 02, 03, 05, 06
# * Difficulty: 2 of 5
# * Paper: sections 3.1 and 3.2.3
#
# ![The Transformer, with both self-attentions lit](../plots/07_masks_map.png)

# %%
from functools import partial
from lab import BLUE, GREEN, GREY, ORANGE, PINK, ROWS, TARGET_IN, VOCABULARY, begin, error, plt, running_example, show
from pictures import grid

import numpy as np

lesson = begin("07_masks")
example = running_example()

# %% [markdown]
# ## The answer is in the next row
#
# Our decoder learns to write "pots". In training it does not write letter by letter. It gets all five rows at once, and
# each row must name its own letter.
#
#     row        0       1       2       3       4
#     reads      bos     p       o       t       s
#     writes     p       o       t       s       eos
#
# Row 1 must write o. And the o is right there: row 2 reads it. In self-attention, queries, keys and values all come
# from the same rows, and every row can look at every other. So row 1 need not learn how to reverse a word. It can learn
# "copy what the next row reads", and the loss will be perfect.
#
# Then you use the model. Now it writes one letter at a time, the next row does not exist yet, and the model is lost. It
# practised with the answer sheet on the table.
#
# So row t may look at rows 0 to t only. Then each row sees in training what it will see in use, and the exercise is
# fair. The array that says who may look where is called a *mask*. How do you build one? And how would you notice that
# it leaks? The second question is the harder one, because a model that peeks trains beautifully.
#
# ## Guess first
#
# 1. Row 1 may look at two of five rows. One program sets the other three scores to −∞ before the softmax. Another sets
#    the other three weights to 0 after the softmax. Do the two allowed weights come out the same?
# 2. A model reads random letters, drawn from 16, and must say the next one. What is the lowest loss it can reach? And
#    if its mask lets every row see one letter too many?
# 3. In a third model the mask is multiplied onto the weights, after the softmax. No forbidden value is ever added to an
#    answer. Can this model peek?

# %% [markdown]
# ## Small numbers
#
# In head 1 of the decoder's self-attention, the query of row 1 gives these scores to the five keys:
#
#     key of       bos       p         o         t         s
#     score        0.822     −0.031    1.175     −0.610    1.106
#     exp          2.274     0.970     3.237     0.543     3.021        sum 10.045
#
# Only bos and p are allowed. Training never used the other three scores, so they mean nothing. By chance the highest is
# that of o, the very letter that row 1 must write. A plain softmax gives it 3.237/10.045 = 0.322. And what do the two
# programs of guess 1 give to bos and p? The sum of their own two exponentials is 3.244.
#
#     −∞, then the softmax       2.274/3.244  = 0.701      0.970/3.244  = 0.299      sum 1
#     the softmax, then 0        2.274/10.045 = 0.226      0.970/10.045 = 0.097      sum 0.323
#
# They differ. exp(−∞) is 0, so the first program removes the forbidden keys from the denominator too. In the second
# they stay there, and take 68 % of the attention away. If the score of o were 3, the allowed weights would shrink to
# 0.085 and 0.036. The forbidden key is not read, but it is heard. Remember that for the end.

# %%
q, k, v = (example[f"decoder.self.{name}"] for name in "qkv")  # (H, T, D)
H, T, D = q.shape
causal = np.tril(np.ones((T, T), bool))  # causal[t, j]: may row t look at row j?


def softmax(s):
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


s = q @ k.swapaxes(-1, -2) / D**0.5
row = s[1, 1]
before, after = softmax(np.where(causal[1], row, -np.inf)), softmax(row) * causal[1]
show("row 1 of head 1", [before, after], ["−∞ before", "0 after"], TARGET_IN)
s_masked = np.where(causal, s[1], -np.inf)
panels = {
    "weights without a mask": softmax(s[1]),
    "masked scores": s_masked,
    "weights with the mask": softmax(s_masked),
}
figure, axes = plt.subplots(1, 3, figsize=(7.8, 2.1))
for panel, (title, values), names in zip(axes, panels.items(), (ROWS, None, None), strict=True):
    grid(panel, values, names, TARGET_IN, title, highlight=[(1, 2)])
    stairs = np.arange(1, T + 1).repeat(2)
    panel.plot(stairs[:-1], stairs[1:] - 1, color="black")
lesson.save(figure, "numbers")

# %% [markdown]
# ![Weights without a mask, masked scores, weights with the mask](../plots/07_masks_numbers.png)
#
# The frame is around row 1's look at its own answer. With the mask, everything above the stairs is exactly 0.
#
# In this course a mask is an array of booleans, `allowed`, and True means *may attend*. PyTorch has both conventions:
# True may attend in `scaled_dot_product_attention`, and is ignored in `nn.MultiheadAttention`. A mask the wrong way
# round raises no error.
#
# ## Left out, forward and backward
#
# Forbidden keys are left out of the softmax:
#
#     p_tj = exp(s_tj) / Σ_{allowed i} exp(s_ti)       if t may look at j
#     p_tj = 0                                         if not
#
# A forbidden score appears in no formula, so its gradient is ds_tj = 0. For an allowed score, lesson 06 holds with sums
# over the allowed keys:
#
#     ds_tj = p_tj (dp_tj − Σ_{allowed i} p_ti dp_ti)
#           = p_tj (dp_tj − Σ_i p_ti dp_ti)              the forbidden p_ti are 0 and add nothing
#
# The last line is right for a forbidden j too: p_tj = 0 makes it 0. So the backward pass needs no mask. The zeros in p
# *are* the mask. In row 1, dp of o is 0.149: the loss has an opinion about that look. But its ds is 0, so nobody hears
# it.
#
# One case is left, the *empty row*, which may look at nothing. Its sum is 0, and 0/0 is NaN. Usually no loss is
# computed for such a row, so who cares? All values do: dv_j = Σ_t p_tj do_t adds up all rows, and NaN · 0 is NaN. So we
# define that an empty row has weights 0 and the answer o = 0. Then the formula gives ds = 0.

# %% [markdown]
# ## From scratch, and checked
#
# The formulas, with care for empty rows. `.real` is there for the complex step (lesson 01).


# %%
def masked_softmax(s, allowed):
    s = np.where(allowed, s, -np.inf)
    largest = s.real.max(axis=-1, keepdims=True)
    p = np.exp(s - np.where(largest == -np.inf, 0, largest))  # in an empty row, −∞ − (−∞) would be NaN
    total = p.sum(axis=-1, keepdims=True)
    return p / np.where(total == 0, 1, total)  # in an empty row, 0/1


def attention(q, k, v, allowed):
    p = masked_softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, allowed)
    return p @ v, (q, k, v, p)


def attention_backward(do, cache):
    q, k, v, p = cache
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / q.shape[-1] ** 0.5  # no mask
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


from minitransformer.functional import causal_mask, padding_mask
from minitransformer.functional import scaled_dot_product_attention as library_attention
from minitransformer.functional import scaled_dot_product_attention_backward as library_backward

do = example["decoder.self.do"]
o, cache = attention(q, k, v, causal)
p, gradients = cache[-1], attention_backward(do, cache)
_, library = library_attention(q[None], k[None], v[None], causal_mask(T))
lesson.check("weights equal to the library's", error(p, library.weights[0]), 1e-14)
for name, mine, theirs in zip("qkv", gradients, library_backward(do[None], library), strict=False):
    lesson.check(f"d{name} equal to the library's", error(mine, theirs[0]), 1e-14)

rng = np.random.default_rng(7)
shapes = [(2, 4, 3), (2, 5, 3), (2, 5, 3), (2, 4, 3)]  # 4 queries, 5 keys
*qkv, do = (rng.standard_normal(shape) for shape in shapes)  # do: a random upstream gradient
allowed = rng.random((2, 4, 5)) < 0.5
allowed[0, 1] = False  # an empty row
claimed = attention_backward(do, attention(*qkv, allowed)[1])
for name, x, dx in zip("qkv", qkv, claimed, strict=True):
    direction = rng.standard_normal(x.shape)
    moved = [x + 1e-30j * direction if each is x else each for each in qkv]
    true = (do * attention(*moved, allowed)[0]).sum().imag / 1e-30
    lesson.check(f"d{name} along a random direction, complex step", error((dx * direction).sum(), true), 1e-13)

# %% [markdown]
# ## Two words in one batch
#
# Now the model reads "stop" and "to" together. An array has no ragged edge, so "to" gets two padding tokens. They mean
# nothing, but they have keys and values like all others.

# %%
from minitransformer.example import load_example

model = load_example().model
TO = ["t", "o", "pad", "pad"]
words = np.array([[VOCABULARY.index(token) for token in text] for text in ("stop", TO)])  # (B, S)
targets = np.array([[VOCABULARY.index(token) for token in text] for text in (TARGET_IN[:3], ["bos", "o", "t"])])


def written(allowed):
    """What the decoder writes for "to" when it reads bos, o, t; `allowed` is the mask of the source."""
    M, _ = model.encoder.forward(model.source_embedding(words), allowed)
    y, _ = model.decoder.forward(model.target_embedding(targets), M, causal_mask(3), allowed)
    return [VOCABULARY[token] for token in model.output(y)[1].argmax(axis=-1)]


x = model.source_embedding(words)
W_q, W_k, b_q, b_k = (example[f"encoder.self.{name}"][..., :D] for name in ("W_q", "W_k", "b_q", "b_k"))  # head 0
s_words = (x @ W_q + b_q) @ (x @ W_k + b_k).swapaxes(-1, -2) / D**0.5  # (B, S, S)
unmasked, masked = softmax(s_words), masked_softmax(s_words, (words != 0)[:, None, :])
show('"to" in the encoder, head 0, without a mask', unmasked[1], TO, TO)
show("with the padding mask", masked[1], TO, TO)
print("written without the mask:", *written(None), "and with it:", *written(padding_mask(words)))

# %% [markdown]
# Without a mask, the t puts 92 % of its attention on padding. The decoder reads bos, o, t and writes o, p, o. With the
# mask it writes o, t, eos, as it does for "to" alone. These are the masks of the whole model:
#
#     padding    allowed[..., 0, 0, j] = (token j is not padding)       (B, 1, 1, S)
#     causal     allowed[0, 0, t, j]   = (j ≤ t)                        (1, 1, T, T)
#     both       padding & causal                                       (B, 1, T, T)
#
# They are broadcast to the scores of all heads, (B, H, T, S). Padding depends on the key alone, causal on the pair. The
# encoder and cross-attention use padding, the decoder's self-attention uses both.
#
# ## How would you notice?
#
# Do not read the mask. Ask the model: change one input, and see which rows of the output change. In an honest model the
# rows before the change stay the same in every bit, since 0 times any number is 0. This is the *leak test*.


# %%
def reach_of(f, ids):
    """reach[t, j]: does row t of f(ids) (B, T, V) change if token j becomes another one?"""
    y, reach = f(ids), []
    for j in range(ids.shape[1]):
        changed = ids.copy()
        changed[:, j] = np.where(ids[:, j] == 1, 2, 1)  # any other token
        reach.append((f(changed) != y).any(axis=(0, 2)))
    return np.stack(reach, axis=1)


def leak_test(reach):
    """How many tokens too far the most curious row sees: 0 for an honest model."""
    t, j = np.nonzero(reach)
    return int((j - t).max())


target_in = np.array([[VOCABULARY.index(token) for token in TARGET_IN]])
reach = reach_of(lambda ids: model(words[:1], ids), target_in)
show("our model: does row t (row) depend on token j (column)?", reach, ROWS, TARGET_IN, digits=0)
lesson.check("our model sees too far by", leak_test(reach), 0)

# %% [markdown]
# ## A perfect loss on random letters
#
# How bad is a leak? Take data with nothing to learn: T = 8 letters, each drawn at random from 16. Read them, and say
# the next one. Whatever probabilities p_w an honest model gives to the letters, all 16 are equally likely to come. So
# its mean loss is
#
#     (1/16) Σ_w −ln p_w  ≥  ln 16 = 2.773 nats         smallest if all p_w are 1/16
#
# But a model that sees one letter too many knows 7 of its 8 answers. (The last answer is never an input.) Its best mean
# loss is ln 16 / 8 = 0.347.
#
# We train three small language models (noise.py: the library's GPT, a decoder without cross-attention, with one layer
# and one head of our attention). They differ only in the mask: the right one; one letter too many; and the right one,
# multiplied onto the weights after the softmax.

# %%
from noise import LENGTH, LETTERS, Noise, NoiseModel

from minitransformer.evaluation import mean_loss
from minitransformer.training import TrainingSettings, cosine, train


def multiplied_after(q, k, v, allowed):
    p = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5)
    return (p * allowed) @ v, (q, k, v, p, allowed)


def multiplied_after_backward(do, cache):
    q, k, v, p, allowed = cache
    dp = (do @ v.swapaxes(-1, -2)) * allowed
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / q.shape[-1] ** 0.5
    return ds @ k, ds.swapaxes(-1, -2) @ q, (p * allowed).swapaxes(-1, -2) @ do


right = np.tril(np.ones((LENGTH, LENGTH), bool))
one_too_many = np.tril(np.ones((LENGTH, LENGTH), bool), 1)
models = {
    "honest": NoiseModel(attention, attention_backward, right),
    "one too many": NoiseModel(attention, attention_backward, one_too_many),
    "multiplied after": NoiseModel(multiplied_after, multiplied_after_backward, right),
}
steps = lesson.pick(full=2000, fast=120)
settings, schedule = TrainingSettings(steps, batch_size=64), partial(cosine, steps=steps, peak=1e-2, warmup=50)
fresh = Noise().batch(np.random.default_rng(99), 4000)
leaks, history, final = {}, {}, {}
for kind, reader in models.items():
    leaks[kind] = leak_test(reach_of(reader, fresh.ids[:10]))
    history[kind] = train(reader, Noise(), schedule=schedule, settings=settings).losses
    final[kind] = mean_loss(reader, [fresh])
    print(f"{kind:18} leak test {leaks[kind]}, first loss {history[kind][0]:.3f}, loss at the end {final[kind]:.3f}")

# %% [markdown]
# The honest model ends at 2.773: it has found out that there is nothing to find. The one that sees one letter too many
# ends at 0.347. Its training curve is a dream. Then give it the right mask, because in use there is no future to look
# at: its loss is about 10 nats, far worse than guessing.
#
# And the third model, which reads no forbidden value, ends at 0.348.

# %%
models["one too many"].attention.allowed = right
caught = mean_loss(models["one too many"], [fresh])
print(f"one too many, with the right mask: {caught:.2f}")
models["multiplied after"](fresh.ids)
*_, p_noise, _ = models["multiplied after"].attention.cache
share = (p_noise * right).sum(axis=-1)[:, 3]  # of row 3
answer = fresh.targets[:, 3]
by_answer = sorted((share[answer == letter] for letter in range(1, LETTERS + 1)), key=np.median)

figure, (curves, levels) = plt.subplots(1, 2, figsize=(7.8, 3.6), width_ratios=(1.5, 1))
for kind, color in zip(models, (BLUE, ORANGE, GREEN), strict=True):
    smooth = np.convolve(history[kind], np.ones(10) / 10, mode="valid")
    curves.plot(np.arange(len(smooth)) + 10, smooth, color=color, label=kind)
for floor, style, name in ((np.log(16), "--", "ln 16"), (np.log(16) / 8, ":", "ln 16 / 8")):
    curves.axhline(floor, color=GREY, linestyle=style, linewidth=1, label=name)
curves.set(xlabel="training step (mean of the last 10)", ylabel="loss on random letters (nats)", ylim=(0, 3.2))
curves.legend(loc="center right", fontsize=8)
for i, group in enumerate(by_answer):
    levels.semilogy(np.full(60, i + 1), group[:60], ".", color=GREEN, markersize=2)
levels.set(xlabel="next letter (16, sorted)", ylabel="share that row 3 may keep", title="how the third model peeks")
levels.set_xticks((1, 4, 8, 12, 16))
lesson.save(figure)

# %% [markdown]
# ![Losses of three models on random letters, and the third model's alphabet](../plots/07_masks.png)
#
# You should see two curves fall from ln 16 to ln 16 / 8, one at once and one slowly, and the honest curve stay where it
# is. If all three fall, your random letters repeat, or the honest mask leaks. If the orange curve stays up, check that
# the targets are the inputs shifted by one.
#
# ## The surprise
#
# Guess 3 was meant as a footnote, and the answer is yes. The third model never reads a forbidden value. How does it
# know the next letter? Compare its weights with the right ones:
#
#     share_t = Σ_{allowed i} exp(s_ti) / Σ_i exp(s_ti)
#     exp(s_tj) / Σ_i exp(s_ti) = share_t · exp(s_tj) / Σ_{allowed i} exp(s_ti)
#
# Its weights are the right weights times one number for each row: the share of its attention that the row may keep.
# All that the future can change is this one number. The model has made an alphabet of it. On the right of the picture
# each dot is one sequence. The next letter pulls the share to a level of its own, one of 16 levels from 0.001 to 0.81,
# each about 1.5 times the one before. The next letter explains 97 % of the variance of ln share. One real number is
# plenty of room for a leak.
#
# No gradient check could have found it. All gradients of this model are right: they are the right gradients of a model
# that cheats. The first loss would not show it, nor the training curve. The leak test shows it before the first step.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 08.
#
# ### Why −∞, and not −10,000?
#
# Much code adds −1e4 or −1e9 to forbidden scores, often to avoid NaN in empty rows. This fails in two ways. First, a
# score can beat the mask. In row 1 above, o beats the best allowed score by 0.353. Make all scores 28,330 times larger,
# and o leads by 1e4: with the mask it is a draw. Second, in an empty row all scores get the same −1e4, and a softmax
# does not see what all scores have in common. The row attends as if there were no mask.

# %%
factors = np.logspace(-0.5, 12, 400)
figure, (lines, table) = plt.subplots(1, 2, figsize=(7.8, 2.8), width_ratios=(1.1, 1))
for name, mask, color in (("−10", -10, ORANGE), ("−1e4", -1e4, PINK), ("−1e9", -1e9, GREEN), ("−∞", -np.inf, BLUE)):
    leaked = softmax(factors[:, None] * row + np.where(causal[1], 0, mask))[:, 2:].sum(axis=-1)
    lines.semilogx(factors, leaked, color=color, label=f"mask {name}")
lines.set(xlabel="scores of row 1, made larger by this factor", ylabel="weight on forbidden keys", ylim=(-0.05, 1.05))
lines.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=8)
with np.errstate(invalid="ignore", over="ignore"):
    empty = {"−∞": softmax(row - np.inf), "−1e4": softmax(row - 1e4)}
    empty["−1e9, float32"] = softmax(row.astype("float32") - np.float32(1e9))
    empty["−1e9, float16"] = softmax(row.astype("float16") - np.float16(1e9))
empty["ours"] = masked_softmax(row, np.zeros(5, bool))
grid(table, list(empty.values()), list(empty), TARGET_IN, "weights of an empty row")
lesson.save(figure, "finite")

# %% [markdown]
# ![Weights on forbidden keys under finite masks, and weights of an empty row](../plots/07_masks_finite.png)
#
# Left: every finite mask is beaten at some size of the scores. Only −∞ stays at 0. Right: row 1 with all five keys
# forbidden. −∞ without further care gives NaN, and −1e4 the weights of no mask at all. In float32, −1e9 swallows the
# scores, and all weights are 0.2. In float16 it is −∞ again. A leak test with scores of order 1 passes all these masks,
# so test with large scores too.
#
# ### More about leaks
#
# * *Layers add up.* In two layers, a mask that sees one letter too many leaks two. In the first layer row t takes in
#   letter t + 1. In the second it looks at row t + 1, which by then knows letter t + 2.
# * *Test from below, too.* `~np.triu(ones)` forbids even the own row. The leak test says 0. But in `reach`, rows 0 and
#   1 do not see their own tokens: row 0 is empty, and row 1 has one key, whose weight is 1 whatever it asks. A mask the
#   wrong way round, `~np.tril(ones)`, sees all of the future and none of the past.
# * *Why no honest model gets below ln V.* −ln is convex, so the mean of −ln p_w is at least −ln of the mean (Jensen),
#   and the mean of V probabilities is 1/V.
# * *The rest of the variance.* With the row's own letter known too, more than 99 % of ln share is explained.
# * *A plateau.* Near step 120 the green curve rests at about 2.17. The share has two levels then, and says in which
#   half of the alphabet the next letter is: seven rows cost ln 8, the last one ln 16, and (7 ln 8 + ln 16) / 8 = 2.17.

# %% [markdown]
# ### In the wild
#
# * Keras and Hugging Face: a 1 in `attention_mask` is a real token.
# * The first BERT code adds −10,000, the first GPT-2 code subtracts 1e10, and The Annotated Transformer fills in −1e9.
#   nanoGPT fills in −∞. It needs no care for empty rows, since under a causal mask alone every row sees itself.
# * A fully masked row in PyTorch 2.13, tried by us: `F.scaled_dot_product_attention` gives 0, and so does
#   `nn.MultiheadAttention` with need_weights=False. With need_weights=True, its default, it gives NaN.
#
# ## Exercise
#
# 1. Keyboard, 20 minutes. Run `reach_of` on a model that you use, without dropout. Then break the mask in one head of
#    one layer, and see whether the test finds it.
# 2. Keyboard, 15 minutes. Divide the weights of "multiplied after" by their sum. Which of the three losses do you get?
#    Find a forbidden score that turns an allowed row into NaN.
#
# Exercises with a checker: `minitransformer start 07`.
#
# ## Questions
#
# 1. The value at a padding position is inf, and its weight is exactly 0. What is in the answer?
# 2. A causal language model gets sequences padded at the end. Why does it need no padding mask?
# 3. Which loss on random letters does a model without any mask reach?
# 4. A mask lets row t see only rows before t. Which loss on random letters? And what would you notice on real text?

# %% [markdown]
# ## Answers
#
# 1. NaN, because 0 · inf is NaN. A mask protects from what a value says, but not from a value that is no number.
# 2. Only padding comes after the real tokens, and the causal mask keeps them from looking at it. The rows of padding
#    themselves have no target.
# 3. ln 16 / 8 again: it sees every answer but the last. That is why BERT, which looks both ways, hides some tokens in
#    its input and predicts those.
# 4. ln 16: there is no leak, and random letters have no use for their own token. On real text you would hardly notice,
#    because the residual connection (lesson 11) hands each row its own token. Only `reach` tells you.
#
# The exercise. First: the honest reach is the full lower triangle, and one head is enough to break it. Second: 2.773,
# since share_t cancels. But it cancels on paper only: the leak test still sees the last bits change. And if a forbidden
# score is 1,000 above the allowed ones, the allowed weights underflow to 0, and their sum too: 0/0.

# %%
two_layers = leak_test(reach_of(NoiseModel(attention, attention_backward, one_too_many, layers=2), fresh.ids[:10]))
lesson.finish(globals())
