# %% [markdown]
# # Lesson 07: How a model peeks at its answer
#
# [![Both self-attentions](../plots/07_masks_map.png)](../plots/00_reverse_whole.png)
#
# **How do you keep a row from reading what it must write, and how would you notice if it did?**
#
# 12 min, with a pencil 35, going deeper 5 · runs in 60 s (fast: 10 s) · needs 01, 02, 03, 05, 06 · difficulty 2 of 5 ·
# paper: sections 3.1 and 3.2.3
#
# ## The answer is in the next row
#
# Our decoder learns to write "pots". In training it doesn't write letter by letter, because the right word is known:
# all five rows go through the decoder at once, and each reads one token and must name the next.
#
#     row        0       1       2       3       4
#     reads      bos     p       o       t       s
#     writes     p       o       t       s       eos
#
# Row 1, which reads «p» and must write «o», is row p→o, and the «o» is right there, because row 2 reads it. In
# self-attention, queries, keys and values all come from the same rows, and every row can look at every other. So row
# p→o doesn't need to learn how to reverse a word: it can copy what the next row reads, and the loss will be perfect.
#
# Then you use the model, which now writes one letter at a time. The next row doesn't exist yet, and the model, which
# practiced with the answer sheet on the table, is lost.
#
# So row t may look only at rows 0 to t, and sees in training what it will see in use. The array that says who may look
# where is called a *mask*. How do you build one, and how would you notice that it leaks? The second question is the
# harder one, because a model that peeks trains beautifully.

# %% Imports
from support.lab import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    ROWS,
    TARGET_IN,
    VOCABULARY,
    begin,
    error,
    plt,
    running_example,
    show,
)
from support.noise import LENGTH, LETTERS, Noise, NoiseModel, fit, multiplied_after, multiplied_after_backward
from support.pictures import grid

import numpy as np

from minitransformer.evaluation import mean_loss
from minitransformer.example import load_example
from minitransformer.functional import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.gradcheck import complex_step

lesson = begin("07_masks")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (06) A row gives a letter a weight of 0. What does it send back to the letter's score, and to its value?
# 2. (03) Any of 16 letters may come next. What is the lowest mean loss that a model can hope for?
# 3. (05) Why does attention always return something, even if no key matches?
#
# (The answers are at the end.)

# %% [markdown]
# ## Before the softmax, or after it?
#
# In head 1 of the decoder's self-attention, the query of row p→o gives these scores to the five keys:
#
#     key of       bos       p         o         t         s
#     score        0.822     −0.031    1.175     −0.610    1.106
#     exp          2.274     0.970     3.237     0.543     3.021        sum 10.045
#
# Only bos and «p» are allowed; training never used the other three scores, and the highest happens to be the one for
# «o». A plain softmax gives it 3.237/10.045 = 0.322.
#
# **Your lines.** Write the mask as an array of booleans, True where row t may look at row j. Then write the weights of
# row p→o with this mask.

# %%
q, k, v = (example[f"decoder.self.{name}"] for name in "qkv")  # (H, T, D)
H, T, D = q.shape


def softmax(s):
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


s = q @ k.swapaxes(-1, -2) / D**0.5
row = s[1, 1]  # head 1, row p→o
mask = ...  # your line: True where row t may look at row j, (T, T)
row_weights = ...  # your line: from `row` (T,) and the mask's row 1
lesson.judge("mask", mask)
lesson.judge("row_weights", row_weights)

# %% Ours
causal = np.tril(np.ones((T, T), bool))  # causal[t, j]: may row t look at row j?
before, after = softmax(np.where(causal[1], row, -np.inf)), softmax(row) * causal[1]
show("row p→o of head 1", [before, after], ["−∞ before", "0 after"], TARGET_IN)

without, scores = softmax(s[1]), np.where(causal, s[1], -np.inf)
figure, axes = plt.subplots(1, 3, figsize=(7.8, 2.1))
grid(axes[0], without, ROWS, TARGET_IN, "weights without a mask", highlight=[(1, 2)])
grid(axes[1], scores, None, TARGET_IN, "masked scores", highlight=[(1, 2)])
grid(axes[2], softmax(scores), None, TARGET_IN, "weights with the mask", highlight=[(1, 2)])
for panel in axes:
    panel.step(range(T + 1), range(T + 1), where="post", color="black")
lesson.save(figure, "numbers")

# %% [markdown]
# One program sets the forbidden scores to −∞ before the softmax, another sets the forbidden weights to 0 after it. The
# exponentials of bos and «p» alone sum to 3.244, so they get
#
#     −∞, then the softmax       2.274/3.244  = 0.701      0.970/3.244  = 0.299      sum 1
#     the softmax, then 0        2.274/10.045 = 0.226      0.970/10.045 = 0.097      sum 0.323
#
# The first program removes the forbidden keys from the denominator too, because exp(−∞) is 0. The second keeps them
# there, and they take 68 % of the attention away. If the score of «o» were 3, the allowed weights would shrink to 0.085
# and 0.036. The forbidden key isn't read, but it is heard.
#
# ![Weights without a mask, masked scores, weights with the mask](../plots/07_masks_numbers.png)
#
# The row's look at its own answer is framed, and everything above the stairs is exactly 0 with the mask.
#
# [In the explorer: open the mask, so that row p→o may look at the «o». What weight does bos keep? Guess
# first.](../minitransformer/explorer/page/index.html#embed=decoder.self.p[1,1,0]&turn=decoder.self.allowed[1,2])
#
# Here a mask is called `allowed`, and True means *may attend*, as in PyTorch's `scaled_dot_product_attention`. In its
# `nn.MultiheadAttention` True means *ignore*, and an inverted mask raises no error.
#
# > **2015.** Germain, Gregor, Murray and Larochelle let a network predict each input from the ones before it, all at
# > once, by masking its weights. A year later van den Oord and colleagues did the same with the pixels of a picture,
# > and found a blind spot: their first mask had hidden too much.

# %% [markdown]
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
# The last line is right for a forbidden j too, because p_tj = 0 makes it 0. So the backward pass needs no mask: the
# zeros in p *are* the mask. In row p→o, dp of «o» is 0.149, so the loss has an opinion about that look, but its ds is
# 0, and nobody hears it.
#
# One case is left: the *empty row*, which isn't allowed to look at anything: its sum is 0, and 0/0 is NaN. Usually the
# loss ignores such a row, and the gradient of its answer is 0, but dv_j = Σ_t p_tj do_t adds up all rows, and NaN · 0
# is NaN. So we define that an empty row has weights 0 and the answer o = 0; then the formula gives ds = 0.

# %% [markdown]
# ## In code, with an empty row
#
# An empty row may look everywhere during the softmax, and loses all its weights afterwards.


# %%
def masked_softmax(s, allowed):
    empty = ~allowed.any(axis=-1, keepdims=True)
    p = softmax(np.where(allowed | empty, s, -np.inf))  # exp(−∞) = 0
    return np.where(empty, 0, p)


def attention(q, k, v, allowed):
    p = masked_softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, allowed)
    return p @ v, (q, k, v, p)


def attention_backward(do, cache):
    q, k, v, p = cache
    dv = p.swapaxes(-1, -2) @ do
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))  # no mask
    dq = ds @ k / q.shape[-1] ** 0.5
    dk = ds.swapaxes(-1, -2) @ q / q.shape[-1] ** 0.5
    return dq, dk, dv


do = example["decoder.self.do"]
o, cache = attention(q, k, v, causal)
p, gradients = cache[-1], attention_backward(do, cache)
_, library = scaled_dot_product_attention(q, k, v, causal)
lesson.check("weights equal to the library's", error(p, library.weights), 1e-14)
for name, mine, theirs in zip("qkv", gradients, scaled_dot_product_attention_backward(do, library), strict=False):
    lesson.check(f"d{name} equal to the library's", error(mine, theirs), 1e-14)

rng = np.random.default_rng(7)
shapes = {"q": (2, 4, 3), "k": (2, 5, 3), "v": (2, 5, 6)}  # 4 queries, 5 keys
inputs = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
upstream = rng.standard_normal((2, 4, 6))
inputs["allowed"] = rng.random((2, 4, 5)) < 0.5
inputs["allowed"][0, 1] = False  # an empty row


def loss(**moved):
    return (upstream * attention(**{**inputs, **moved})[0]).sum()


for name, gradient in zip("qkv", attention_backward(upstream, attention(**inputs)[1]), strict=True):
    true = complex_step(lambda x, name=name: loss(**{name: x}), inputs[name])
    lesson.check(f"d{name}, against the complex step", error(gradient, true), 1e-13)

# %% [markdown]
# ## Two words in one batch
#
# Now the model reads "stop" and "to" together. An array has no ragged edge, so "to" gets two padding tokens, which mean
# nothing, yet have keys and values.

# %%
model = load_example().model
TO = ["t", "o", "pad", "pad"]


def ids_of(*words):
    return np.array([[VOCABULARY.index(token) for token in word] for word in words])


words, targets = ids_of("stop", TO), ids_of(["bos", "p", "o"], ["bos", "o", "t"])
x, real = model.source_embedding(words), padding_mask(words)  # (B, S, C), (B, 1, 1, S)
W_q, W_k, b_q, b_k = (example[f"encoder.self.{name}"][..., :D] for name in ("W_q", "W_k", "b_q", "b_k"))  # of head 0
s_words = (x @ W_q + b_q) @ (x @ W_k + b_k).swapaxes(-1, -2) / D**0.5  # (B, S, S)
unmasked, masked = softmax(s_words), masked_softmax(s_words, real[:, 0])
show('"to" in the encoder, head 0, without a mask', unmasked[1], TO, TO)
show("with the padding mask", masked[1], TO, TO)


def written(allowed):
    """What the decoder writes for "to" while it reads bos, o, t; `allowed` is the mask of the source."""
    M, _ = model.encoder.forward(x, allowed)
    y, _ = model.decoder.forward(model.target_embedding(targets), M, causal_mask(3), allowed)
    z = model.output(y)[1]  # (T, V), of "to"
    return [VOCABULARY[token] for token in z.argmax(axis=-1)]


print("written without the mask:", *written(None), "and with it:", *written(real))

# %% [markdown]
# Without a mask, the «t» of "to" puts 92 % of its attention on padding, and the decoder, which reads bos, «o», «t»,
# writes «o», «p», «o». With the mask it writes «o», «t», eos, as it does for "to" by itself. These are the masks of the
# whole model:
#
#     padding    t may look at j if token j is not padding       (B, 1, 1, S)
#     causal     t may look at j if j ≤ t                        (1, 1, T, T)
#     both       padding & causal                                (B, 1, T, T)
#
# They are broadcast to the scores (B, H, T, S). The encoder and cross-attention use the padding mask, and the decoder's
# self-attention uses both.
#
# ## How would you notice?
#
# Ask the model: change one input, and see which rows of the output change. In an honest model the rows before the
# change stay the same to the bit. This is the *leak test*. **A leak looks like success, with a falling loss and right
# gradients, until you change the future and see the past move.**


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


reach = reach_of(lambda ids: model(words[:1], ids), ids_of(TARGET_IN))  # it reads "stop"
show("our model: does row t (row) depend on token j (column)?", reach, ROWS, TARGET_IN, digits=0)
lesson.check("our model sees too far by", leak_test(reach), 0)

# %% [markdown]
# ## A perfect loss on random letters
#
# How bad is a leak? Take data that has nothing to learn: T = 8 letters, each drawn at random from 16, and each row must
# name the next. We train three small models, library GPTs of one layer and one head with our attention. The first has
# the right mask, and the second sees one letter too many. The third has the right mask too, but multiplies the weights
# by it after the softmax, o = (p ∘ allowed) v, so that no forbidden value is ever read.
#
# **Your guess.** At what loss, in nats, do the second and third models end up?

# %%
guess_second = ...  # nats, of the model that sees one letter too many
guess_third = ...  # nats, of the model whose mask is multiplied onto the weights

# %% [markdown]
# Whatever probabilities p_w an honest model gives to the letters, all 16 are equally likely to come, so its mean loss
# is
#
#     (1/16) Σ_w −ln p_w  ≥  ln 16 = 2.773 nats         smallest if all p_w are 1/16
#
# But a model that sees one letter too many knows 7 of its 8 answers, all but the last, which is never an input. Its
# best mean loss is ln 16 / 8 = 0.347.

# %%
right = np.tril(np.ones((LENGTH, LENGTH), bool))
one_too_many = np.tril(np.ones((LENGTH, LENGTH), bool), 1)
models = {
    "honest": NoiseModel(attention, attention_backward, right),
    "one too many": NoiseModel(attention, attention_backward, one_too_many),
    "multiplied after": NoiseModel(multiplied_after, multiplied_after_backward, right),
}
fresh = Noise().batch(np.random.default_rng(99), 4000)
leaks, history, final = {}, {}, {}
for kind, reader in models.items():
    leaks[kind] = leak_test(reach_of(reader, fresh.ids[:10]))
    history[kind] = fit(reader, steps=lesson.pick(full=2000, fast=120))
    final[kind] = mean_loss(reader, [fresh])
    print(f"{kind:18} leak test {leaks[kind]}, first loss {history[kind][0]:.3f}, loss at the end {final[kind]:.3f}")
lesson.compare("loss of the second model", guess_second, final["one too many"])
lesson.compare("loss of the third model", guess_third, final["multiplied after"])

# %% [markdown]
# The honest model ends at 2.773: there is nothing to find. The second ends at 0.347, and its training curve is a dream.
# But with the right mask, as in use, its loss is about 10 nats. And the third model, which reads no forbidden value,
# ends at 0.348.

# %%
models["one too many"].attention.allowed = right
caught = mean_loss(models["one too many"], [fresh])
print(f"one too many, with the right mask: {caught:.2f}")
models["multiplied after"](fresh.ids)
p_noise = models["multiplied after"].attention.cache[3][:, 3]  # of row 3, before the mask
share, answer = p_noise[:, :4].sum(axis=-1), fresh.targets[:, 3]
by_answer = sorted((share[answer == letter] for letter in range(1, LETTERS + 1)), key=np.median)

figure, (curves, levels) = plt.subplots(1, 2, figsize=(7.8, 3.6), width_ratios=(1.5, 1))
for kind, color in zip(models, (BLUE, ORANGE, GREEN), strict=True):
    curves.plot(history[kind], color=color, label=kind)
for floor, style, name in ((np.log(16), "--", "ln 16"), (np.log(16) / 8, ":", "ln 16 / 8")):
    curves.axhline(floor, color=GREY, linestyle=style, linewidth=1, label=name)
curves.set(xlabel="training step", ylabel="loss on random letters (nats)", ylim=(0, 3.2))
curves.legend(loc="center right", fontsize=8)
for i, group in enumerate(by_answer):
    levels.semilogy(np.full(60, i + 1), group[:60], ".", color=GREEN, markersize=2)
levels.set(xlabel="next letter (16, sorted)", ylabel="share that row 3 may keep", title="how the third model peeks")
levels.set_xticks((1, 4, 8, 12, 16))
lesson.save(figure)

# %% [markdown]
# ![Losses of three models on random letters, and the third model's alphabet](../plots/07_masks.png)
#
# You should see two curves fall from ln 16 to ln 16 / 8, one at once and one slowly, while the honest one stays where
# it is. If all three fall, your random letters repeat, or the honest mask leaks.
#
# ## How the third model peeks
#
# So the third model peeks, although it never reads a forbidden value. Compare its weights with the right ones:
#
#     share_t = Σ_{allowed i} exp(s_ti) / Σ_i exp(s_ti)
#     exp(s_tj) / Σ_i exp(s_ti) = share_t · exp(s_tj) / Σ_{allowed i} exp(s_ti)
#
# Its weights are the right weights times one number for each row, the share of its attention that the row may keep. All
# the future can change is this one number, and the model has turned it into an alphabet. On the right, each dot is row
# 3 of one sequence. The next letter pulls the share to its own level, one of 16 levels from 0.001 to 0.81, each about
# 1.5 times the one before. It explains 97 % of the variance of ln share, and the row's own letter explains most of the
# rest. One real number is plenty of room for a leak.
#
# No gradient check could have found it, because all gradients are right, and on real text nobody knows the best
# possible loss. But the leak test says 7 tokens too far, before the first step.
#
# **In papers:** the causal mask is also a *look-ahead mask*, −∞ added to the scores an *attention bias*, a model with
# such a mask *autoregressive*, and what the mask prevents *information leakage*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 08.
#
# ### Why −∞, and not −10,000?
#
# Much code adds −1e4 or −1e9 to forbidden scores, often to avoid NaN in empty rows. This fails in two ways. First, a
# score can beat the mask. In row p→o above, «o» beats the best allowed score by 0.353. Make all scores 28,330 times
# larger, and «o» leads by 1e4, so that with the mask it is a draw. Second, in an empty row all scores get the same
# −1e4, and a softmax doesn't see what all scores have in common. The row attends as if there were no mask.

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
# Left: every finite mask is beaten at some size of the scores, and only −∞ stays at 0. Right: row p→o with all five
# keys forbidden. −∞ without extra care gives NaN, and −1e4 the weights of no mask at all. In float32, −1e9 swallows
# the scores, and all weights are 0.2. In float16, whose largest number is 65,504, it is −∞ again. With scores of order
# 1, −1e4 and −1e9 pass the leak test, so test with large scores as well.
#
# ### More about leaks
#
# * *Layers add up.* In two layers, a mask that sees one letter too many leaks two. In the first layer row t takes in
#   the letter of row t + 1. In the second it looks at row t + 1, which by then knows the letter of row t + 2.
# * *Test from below, too.* `~np.triu(ones)` forbids a row even to look at itself. The leak test says 0. But in the
#   `reach` of the attention alone, rows 0 and 1 don't see their own tokens: row 0 is empty, and row 1 has one key,
#   whose weight is 1 whatever it asks. An inverted mask, `~np.tril(ones)`, sees all of the future and none of
#   the past.
# * *Why no honest model gets below ln V.* −ln is convex, so the mean of −ln p_w is at least −ln of the mean (Jensen),
#   and the mean of V probabilities is 1/V.
# * *The rest of the variance.* With the row's own letter known too, more than 99 % of ln share is explained.
# * *A plateau.* Near step 120 the green curve rests at about 2.17. That is the loss of a model that knows only which
#   half of the alphabet the next letter is in: seven rows cost ln 8, the last one ln 16, and (7 ln 8 + ln 16) / 8 =
#   2.17.

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 20 minutes. Run `reach_of`, without dropout, on a model that you use. Then break the mask in one head of
#    one layer, and see whether the test finds it.
# 2. Keyboard, 15 minutes. Divide the weights of "multiplied after" by their sum. What loss do you get? Find a
#    forbidden score that turns a row with allowed keys into NaN.
#
# Exercises with a checker: `minitransformer start 07`.
#
# ## Questions
#
# 1. The value at a padding position is inf, and its weight is exactly 0. What is in the answer?
# 2. A causal language model gets sequences padded at the end. Why does it need no padding mask?
# 3. What loss does a model without any mask reach on random letters?
# 4. A mask lets row t see only rows before t. What is the loss on random letters? And what would you notice on real
#    text?
# 5. *Somewhere else.* A network forecasts a series. In each of its four layers, a convolution makes y_t from x_(t−1),
#    x_t and x_(t+1). What does the leak test say, and how do you repair it? What if each series is first divided by its
#    largest value?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Nothing to either: ds_j = p_j (dp_j − p·dp) and p_j do both have the factor p_j = 0.
# 2. ln 16, about 2.77 nats: it can do no better than give each letter 1/16.
# 3. The weights of a row sum to 1, whatever the scores are. It can spread them, but it can't keep them to itself.
#
# ### To the questions
#
# 1. NaN, because 0 · inf is NaN. A mask protects against any finite value, but not against an infinite one.
# 2. Only padding comes after the real tokens, and the causal mask keeps them from looking at it. The rows of padding
#    themselves have no target.
# 3. ln 16 / 8 again: it sees every answer but the last. That is why BERT, a model that looks both ways, hides some
#    tokens of its input and predicts those.
# 4. ln 16: there is no leak, and a random letter says nothing about the next one. On real text you would hardly notice,
#    because the residual connection (lesson 11) hands each row its own token. Only the `reach` of the attention alone
#    tells you, not the `reach` of the whole model.
# 5. It says 4: each layer looks one step ahead, and layers add up. Let y_t be made from x_(t−2), x_(t−1) and x_t. The
#    largest value may be anywhere, so the division brings the whole future into every row, and the test finds it if the
#    value that it changes is, or becomes, the largest.
#
# ### To the exercise
#
# First: the honest reach is the full lower triangle, and one head is enough to break it. Second: 2.773, since share_t
# cancels. But it cancels on paper only: the leak test still sees the last bits change. And if a forbidden score is
# 1,000 above the allowed ones, the allowed weights underflow to 0, and their sum too: 0/0.

# %%
two_layers = leak_test(reach_of(NoiseModel(attention, attention_backward, one_too_many, layers=2), fresh.ids[:10]))
lesson.finish(globals())
