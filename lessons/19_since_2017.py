# %% [markdown]
# # Lesson 19: What changed since 2017?
#
# [![The Transformer, today's changes lit](../plots/19_since_2017_map.png)](../plots/00_reverse_whole.png)
#
# **Today's decoders have changed six parts of the paper's block. Does one of them bring most of the gain?**
#
# 10 min, with a pencil 30, going deeper 6 · runs in 60 s (fast: 15 s) · needs 01, 06, 08, 09, 10, 11, 16 · difficulty 3
# of 5 · paper: Su et al. 2021, section 3
#
# ## Is this still a Transformer?
#
# A student who has just finished lesson 12 opens a model that people use, Llama 3.2 1B, with the paper beside it, and
# hardly a line fits. No positions are added to the embeddings, the norms are in a different place, and the feed-forward
# network has three matrices. W_q has 2,048 columns where W_k has only 512, because 32 heads of queries share 8 heads of
# keys. She counts six changes:
#
#     part              in 2017                     today
#     place of norms    after the sum               before the sub-layer (lesson 11)
#     kind of norm      LayerNorm                   RMSNorm (lesson 10)
#     positions         added to the embeddings     queries and keys are turned: RoPE
#     feed-forward      ReLU, two matrices          SwiGLU, three matrices
#     biases            in linear layers            none
#     keys, values      as many heads as queries    fewer heads, each shared by a group
#
# Each of them has a paper that reports a gain. Do all of them matter?

# %% Imports
from support.lab import BLUE, GREY, ORANGE, begin, error, plt, running_example
from support.pictures import canvas, mix

import numpy as np

from experiments.since_2017 import train
from minitransformer.functional import causal_mask, rms_norm, scaled_dot_product_attention
from minitransformer.gradcheck import complex_step
from minitransformer.models import GPT, TransformerConfig

lesson = begin("19_since_2017")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (09) PE_(t+j) is a rotation of PE_t. What must a head learn before it can use this to look j tokens ahead?
# 2. (06) The bias of the keys never learns anything. Why?
# 3. (11) In which one does some path from the loss to the embeddings meet no norm inside the blocks, post-norm or
#    pre-norm?
#
# (The answers are at the end.)

# %% [markdown]
# ## One change of six
#
# At the end we train small decoders with the paper's block, with RoPE as its only change, and with all six. All six
# together lower the loss by a certain amount. How much of that comes from RoPE alone?

# %%
guess = ...  # per cent of the whole gain that RoPE brings alone

# %% [markdown]
# ## Turn instead of add
#
# The paper adds PE_t to the embedding, so a score contains products of letters with letters, of letters with positions,
# and of positions with positions. A head that wants "the token before me" has to learn that from the mixture. Su and
# his colleagues wanted a score that *can't* see anything about the positions except the distance between them.
#
# Take two features of a query as a point in the plane, and rotate it about the origin by the angle ω for each position.
# At position t it has been rotated by tω. As a matrix, with the two features as a column, unlike in the code:
#
#     R_t = [ cos tω   −sin tω ]
#           [ sin tω    cos tω ]
#
# The key at position j is rotated by jω in the same way, and the score is the product of the two rotated vectors:
#
#     (R_t q)·(R_j k) = (R_t q)ᵀ (R_j k)                 a product of columns, written with a transpose
#                     = qᵀ R_tᵀ R_j k                    a transpose reverses the factors
#
# Transposing R_t swaps the two sines, and so their signs. The sine is the only part that tells a left turn from a right
# turn, so R_tᵀ rotates by tω *backwards*: R_tᵀ = R_(−t). And two rotations, one after the other, are one rotation by
# the sum of the angles:
#
#     R_tᵀ R_j = R_(−t) R_j = R_(j−t)
#     (R_t q)·(R_j k) = qᵀ R_(j−t) k                     t and j are gone, and j − t is left
#
# **Rotate the query by its own position and the key by its own, and all the score sees of the two positions is their
# distance, with its sign.** Values aren't rotated: what is handed over shouldn't depend on where it was found.

# %% [markdown]
# A head of D features has D/2 such pairs, and pair i has its own angle, the ω_i of lesson 09 (with D instead of C). The
# running example has D = 3, so one pair rotates and the last feature stays put. From its decoder's self-attention, head
# 0, we take the query of row o→t and the key of the «p» before it.

# %%
x = example["decoder.self.x"]
q, k, v = ((x @ example[f"decoder.self.W_{name}"] + example[f"decoder.self.b_{name}"])[:, :3] for name in "qkv")


def turn(x, angles):
    """x (..., T, D), angles (T, D/2): turn each pair of neighboring features -> y (..., T, D)."""
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[..., 0::2], x[..., 1::2]
    return np.stack([first * cos - second * sin, first * sin + second * cos], axis=-1).reshape(x.shape)


query, key = q[2, :2], k[1, :2]  # of row o→t, at position 2, and of «p», at position 1
print("query:", query.round(3), "  key:", key.round(3))


def product(t, j):
    """The product of the query, turned as at position t, and of the key, turned as at position j."""
    return (turn(query[None], np.array([[t]])) @ turn(key[None], np.array([[j]])).T).item()  # ω = 1


for places in ((2, 1), (12, 11), (1002, 1001), (2, 5)):
    print(f"query at {places[0]:4}, key at {places[1]:4}: {product(*places):.6f}")

# %% [markdown]
# ![One query and one key, turned to their positions](../plots/19_since_2017.png)
#
# The product is 3.296 at positions 2 and 1, at 12 and 11, and at 1,002 and 1,001. Both arrows have gone around many
# times by then, but the angle between them is the same. At positions 2 and 5 it is different. If the first three
# products differ, query and key were rotated in opposite directions.
#
# > **2021.** Jianlin Su wrote about rotating queries and keys on his blog, in Chinese, before his paper with
# > colleagues, *RoFormer*, appeared. EleutherAI, a group of volunteers, tried it and built it into GPT-J in the same
# > year. PaLM followed in 2022 and LLaMA in 2023, and by now nearly every open decoder has it.
#
# ## Turning back
#
# The gradient of a score arrives at the rotated query, where it equals the rotated key, apart from the factor 1/√D. We
# need it at the query itself.
#
# **Your line.** The rotated key is `arrived`, two numbers, and the query was rotated by an angle with the cosine `cos`
# and the sine `sin`. What is the gradient of the product with respect to the query before it was rotated?

# %%
arrived = turn(key[None], np.array([[1.0]]))[0]
cos, sin = np.cos(2.0), np.sin(2.0)
dquery = ...  # your line: from arrived, (2,), cos and sin
lesson.judge("dquery", dquery)

# %% [markdown]
# The forward pass is a product with a matrix, y = R_t x. Entry i of x reaches every y_j with the factor (R_t)_ji, so
# the chain rule gives
#
#     dx_i = Σ_j dy_j (R_t)_ji                           over all outputs that x_i reaches
#     dx   = R_tᵀ dy = R_(−t) dy                         a sum over the first index is the transpose
#
# The gradient of our query is R_(−2) R_1 k = R_(−1) k, which depends only on the distance. Only the angles have to be
# remembered, and dx is exactly as long as dy, so a rotation can neither blow a gradient up nor let it vanish.

# %% Ours
ours = turn(arrived[None], np.array([[-2.0]]))[0]
print("dquery:", ours, "  R_(−1) k:", turn(key[None], np.array([[-1.0]]))[0])

# %% [markdown]
# ## A gate, and shared keys
#
# **SwiGLU.** ReLU lets one number decide two things: whether a feature passes, and how large it is. SwiGLU (Shazeer
# 2020) computes two numbers from the input, a gate and a value, and multiplies them:
#
#     gate  = x W_gate                                   (N, F)
#     value = x W_value                                  (N, F)
#     r     = silu(gate) ∘ value                         silu(a) = a sigmoid(a)
#     y     = r W_down
#
# Backward, each factor of a product gets the gradient times the other one:
#
#     dvalue = dr ∘ silu(gate)
#     dgate  = dr ∘ value ∘ silu'(gate)
#     silu'(a) = sigmoid(a) + a sigmoid(a) (1 − sigmoid(a))   the product rule
#
# With F cut to two thirds, three matrices have as many weights as two had. Shazeer offers no explanation of its
# success, and attributes it to "divine benevolence".
#
# **Grouped keys** (Ainslie et al. 2023). H heads of queries share G heads of keys and values, so each of these serves
# H/G heads. The forward pass copies each shared head to its group, and the gradients of copies add up (lesson 04).
#
#     k of head h  = shared k of group h // (H/G)        forward: a copy for each head of the group
#     dk of group  = Σ dk of its heads                   backward: the sum over the group
#
# It is there to save memory: lesson 16 keeps all keys and values while a text is written, and in Llama 3.2 1B this
# takes 2 · 16 layers · 8 heads · 64 features · 2 bytes = 32,768 bytes for each token. With 32 heads it would be four
# times as much.

# %% [markdown]
# ## Today's block, in code
#
# Here is the whole block forward, with the library's norm and attention (lessons 10 and 06). The way back through it
# takes another twenty lines. You now have all the pieces, and joining them is the exercise 19_block_backward. We
# check the two pieces that are new.


# %%
def silu(x):
    return x / (1 + np.exp(-x))


def dsilu(x):
    share = 1 / (1 + np.exp(-x))
    return share * (1 + x * (1 - share))


def heads(x, D):
    return np.swapaxes(x.reshape(*x.shape[:2], -1, D), 1, 2)  # (B, T, H D) -> (B, H, T, D)


def block(x, weights, D, angles):
    gamma_1, W_q, W_k, W_v, W_o, gamma_2, W_gate, W_value, W_down = weights
    x_1, _ = rms_norm(x, gamma_1)
    q, k, v = turn(heads(x_1 @ W_q, D), angles), turn(heads(x_1 @ W_k, D), angles), heads(x_1 @ W_v, D)
    copies = (np.repeat(array, q.shape[1] // k.shape[1], axis=1) for array in (k, v))  # H / G of each
    o, _ = scaled_dot_product_attention(q, *copies, causal_mask(x.shape[1]))
    middle = x + np.swapaxes(o, 1, 2).reshape(*x.shape[:2], -1) @ W_o
    x_2, _ = rms_norm(middle, gamma_2)
    return middle + (silu(x_2 @ W_gate) * (x_2 @ W_value)) @ W_down


def gated_backward(dr, gate, value):
    return dr * value * dsilu(gate), dr * silu(gate)  # dgate, dvalue


def sum_groups(dk, group):
    # heads that follow each other are a group: (B, H, S, D) -> (B, G, H / G, S, D) -> (B, G, S, D)
    return dk.reshape(dk.shape[0], -1, group, *dk.shape[2:]).sum(axis=2)


rng = np.random.default_rng(19)
sizes = {"d_model": 24, "num_heads": 4, "num_kv_heads": 2, "d_ff": 10, "num_layers": 1, "dropout": 0.0}
kinds = {"positions": "rope", "norm": "pre", "normalization": "rms", "bias": False, "activation": "swiglu"}
library = GPT(TransformerConfig(9, **sizes, **kinds), dtype="float64").blocks.layers[0]
for parameter in library.parameters():
    parameter.data[...] = rng.standard_normal(parameter.data.shape) / 4
attention, network = library.self_attention, library.feed_forward
W_q, W_k, W_v = np.split(attention.sublayer.qkv.W.data, [24, 36], axis=1)
W_gate, W_value = np.split(network.sublayer.expand.W.data, 2, axis=1)
weights = [attention.norm.gamma.data, W_q, W_k, W_v, attention.sublayer.output.W.data]
weights += [network.norm.gamma.data, W_gate, W_value, network.sublayer.contract.W.data]
inputs = rng.standard_normal((3, 5, 24))
angles = np.arange(5)[:, None] / 10000 ** (np.arange(3) / 3)
expected, _ = library.forward(inputs, causal_mask(5))
lesson.check("the block, against the library's", error(block(inputs, weights, 6, angles), expected), 1e-13)

gate, value, dr = rng.standard_normal((3, 5, 8))
true = complex_step(lambda gate: (dr * silu(gate) * value).sum(), gate)
lesson.check("dgate, against the complex step", error(gated_backward(dr, gate, value)[0], true), 1e-14)
shared, upstream = rng.standard_normal((1, 2, 5, 6)), rng.standard_normal((1, 4, 5, 6))
true = complex_step(lambda shared: (upstream * np.repeat(shared, 2, axis=1)).sum(), shared)
lesson.check("dk of a group, against the complex step", error(sum_groups(upstream, 2), true), 1e-14)

# %% [markdown]
# ## What is RoPE worth?
#
# Four blocks, in decoders of two layers and 32 features that learn to continue the source of Python's standard library,
# character by character: 240 steps of Adam, each with 8 windows of 64 characters. The models of one seed read the same
# windows, so we compare seed by seed, and take the mean of the three differences with its 95 % interval. Each block has
# its own learning rate, the best of four on another seed. H is 4, F 128 (with SwiGLU 85), and shared keys have G = 2;
# all six changes leave 25,792 of 28,576 parameters.

# %%
RATES = {"2017": 0.008, "RoPE": 0.016, "modern": 0.016, "modern, sinusoids": 0.016}
seeds, count = lesson.pick(full=range(3), fast=range(2)), lesson.pick(full=240, fast=10)
losses = {name: [train(name, rate, count, seed, layers=2)["loss"] for seed in seeds] for name, rate in RATES.items()}
differences = {name: np.array(found) - losses["2017"] for name, found in losses.items() if name != "2017"}


def interval(values):
    """The mean of three differences, and half of its 95 % interval (Student's t for two degrees of freedom)."""
    return values.mean(), 4.303 * values.std(ddof=1) / np.sqrt(len(values))


print(f"2017: {np.mean(losses['2017']):.3f} nats for each character")
apart = differences["RoPE"] - differences["modern"]
for name, values in (*differences.items(), ("RoPE − modern", apart)):
    print("{:18} {:+.3f} ± {:.3f}".format(name, *interval(values)))
share = 100 * differences["RoPE"].mean() / differences["modern"].mean()
lesson.compare("per cent of the whole gain that RoPE brings alone", guess, share)

# %% [markdown]
# ![What the changes are worth, with three seeds](../plots/19_since_2017_worth.png)
#
# ## One change is worth all six
#
# RoPE alone lowers the loss by 0.189 ± 0.043 nats, and all six changes together by 0.180 ± 0.023. Seed by seed, they
# differ by 0.009 ± 0.061, so three seeds can't tell RoPE alone from all six. The other five, without it, bring 0.052 ±
# 0.014, and even that doesn't come on top: gains don't add up when two parts help with the same thing. In the library's
# own experiment (docs/since-2017.md), with three layers and five seeds, RoPE is worth 0.216 ± 0.025 nats, and all six
# together 0.205 ± 0.053.
#
# So were five papers wrong? No: most of the five serve something other than the loss of a small model. SwiGLU is meant
# for the loss, and brings 0.020 nats in that experiment. With twelve layers and 240 steps, the paper's block does not
# begin to learn, and with pre-norm it does. Grouped keys are there for memory; RMSNorm and the lack of biases are there
# for speed and simplicity. When a paper reports a gain, ask what size it was measured at, with how many seeds, and what
# else was changed that day.
#
# **In papers:** turning is *rotary position embedding* (RoPE), grouped keys are *grouped-query attention* (GQA), one
# key head for all is *multi-query attention* (MQA, Shazeer 2019), silu is also *swish* (Ramachandran et al. 2017), and
# a gated product a *GLU* (Dauphin et al. 2016).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with the next lesson.
#
# ### Neighbors or halves
#
# Su pairs the features 0 and 1, 2 and 3, and so on. So does Meta's code for LLaMA. GPT-NeoX, and Hugging Face's code
# for LLaMA, pair feature i with i + D/2. Both are right, as long as queries and keys agree, because a product doesn't
# care about the order of its terms: put the columns of W_q and W_k in another order, and one kind becomes the other.
# (Hugging Face did so when it converted LLaMA.) If you load weights of the other kind without that step, you get a
# model that talks nonsense, and no error message.

# %%
D = 6
q_6, k_6 = rng.standard_normal((2, 5, D))
halves = np.r_[0:D:2, 1:D:2]  # first the first feature of each pair, then the second


def turn_halves(x, angles):
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = np.split(x, 2, axis=-1)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


neighbors = turn(q_6, angles) @ turn(k_6, angles).T
same = turn_halves(q_6[:, halves], angles) @ turn_halves(k_6[:, halves], angles).T
mixed = turn_halves(q_6, angles) @ turn_halves(k_6, angles).T
lesson.check("halves, with the features in their order: the same scores", error(same, neighbors), 1e-14)
lesson.check("halves, with the features as they were: other scores", error(mixed, neighbors), at_least=0.1)

# %% [markdown]
# ### The bias that comes alive
#
# In lesson 06 the bias of the keys never learns: it adds the same number to all scores of a row. With RoPE the bias is
# rotated together with its key, so the number depends on the position, q_t·(R_(j−t) b), and the bias becomes a taste
# for certain distances. Qwen and Qwen 2 keep the biases of queries, keys and values and drop all others, and Qwen's
# report gives longer texts as the reason.
#
# ### Where the norm of a head belongs
#
# Qwen 3 normalizes each head's queries and keys, so that no score can grow without bound. A rotation keeps the length,
# so RMSNorm and RoPE may change places, but only if the two features of each pair have the same γ. With a separate γ
# for each feature, the order matters, and the weights of one order are wrong for the other.

# %%
gamma = rng.uniform(0.5, 2.0, D)
for name, scale in (("equal", np.ones(D)), ("unequal", gamma)):
    first_norm = turn(rms_norm(q_6, scale)[0], angles)
    first_turn = rms_norm(turn(q_6, angles), scale)[0]
    print(f"entries of γ {name}: the two orders differ by {error(first_norm, first_turn):.1g}")
    if name == "equal":
        lesson.check("with equal γ, norm and rotation may change places", error(first_norm, first_turn), 1e-14)

bias = rng.standard_normal(D)
with_bias = turn(q_6, angles) @ turn(k_6 + bias, angles).T - neighbors
lesson.check("a bias of the keys changes the differences in a row", np.ptp(with_bias, axis=1).min(), at_least=0.1)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 5 minutes. Write a pair of features as one complex number, and RoPE as a product with another one. What is
#    the backward pass then?
# 2. Pencil, 10 minutes. In the lesson's picture, what angle between the query and the key would make the product
#    largest, and at what distance is it reached for ω = 1, if positions could be fractions?
#
# Exercises with a checker: `minitransformer start 19`. In 19_rope_backward you rotate the gradient back, in
# 19_grouped_heads_backward you add up what the heads of a group return, and in 19_block_backward you go back through
# the whole block.
#
# ## Questions
#
# 1. A colleague rotates the values, too. What changes in o, and is it still a function of distances only?
# 2. Why does nobody rotate only the queries, by (t − j)ω? That would give the same scores.
# 3. With G = 1 all heads share one key head. Does that make all heads the same?
# 4. In the library's experiment, a decoder without any positions learns about as well as one with sinusoids. How can it
#    tell the order of its tokens at all?
# 5. The KV cache stores keys after they have been rotated. What would be lost if it stored them before?
# 6. *Somewhere else.* In a picture, a token is a patch, in a row and a column. How would you rotate its query and key,
#    so that a score sees only how many rows and how many columns lie between two patches?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The product W_q W_kᵀ has to become this rotation, in features that hold positions and no letters. It is one matrix
#    for all t, but it must be learned.
# 2. It adds q_t·b to all scores of a row, and a softmax doesn't change if all scores grow by the same amount. So its
#    gradient is 0.
# 3. In pre-norm: there the norm is on the branch, and the sum bypasses it. (One more norm, after the last block,
#    is on every path.) In post-norm each sum is normalized, so every path meets the norms of all blocks.
#
# ### The questions
#
# 1. o_t becomes Σ_j p_tj R_j v_j, which depends on the absolute positions j. Rotate it back by R_(−t), and only
#    distances are left. Without that, the linear layer after it gets different axes at each position.
# 2. The query would need a different rotation for each key, T·S rotations instead of T + S, and q kᵀ would no longer be
#    one matrix product. The whole trick is that j − t splits into a part for t and a part for j.
# 3. No. They share what can be found and what is handed over, but each asks its own question. It is called multi-query
#    attention (Shazeer 2019).
# 4. By the causal mask: a token at position t averages over t + 1 tokens, so even a uniform average tells it roughly
#    where it is.
# 5. Only time: each step would have to rotate all the old keys again. Rotated keys stay right, because the position of
#    an old token never changes.
# 6. Rotate half of the feature pairs by angles that grow with the row, and the other half by angles that grow with the
#    column. The score is a sum over the pairs, and each pair sees the distance of its own kind.
#
# The exercise. First: (x_0 + i x_1) · exp(iωt), where i is the imaginary unit; backward multiplies by exp(−iωt), the
# conjugate. Second: the angle 0, where both arrows point the same way. The query points at 0.795 radians and the key at
# 2.859 (from their printed features), so the key has to rotate by −2.064 more than the query: j − t = −2.064, a little
# more than two positions back.

# %%
# the pictures of this lesson
figure, axes = canvas(8.0, 3.1)
unit = 0.3  # inches for a length of 1
for middle, title, places in (
    (1.35, "not turned", (0, 0)),
    (4.0, "at positions 2 and 1", (2, 1)),
    (6.65, "at positions 12 and 11", (12, 11)),
):
    axes.add_patch(plt.Circle((middle, 1.35), unit * np.linalg.norm(key), fill=False, color=mix(GREY, 0.4)))
    axes.add_patch(plt.Circle((middle, 1.35), unit * np.linalg.norm(query), fill=False, color=mix(GREY, 0.4)))
    for name, vector, place, color in (("q", query, places[0], BLUE), ("k", key, places[1], ORANGE)):
        tip = turn(vector[None], np.array([[float(place)]]))[0]
        end = (middle + unit * tip[0], 1.35 + unit * tip[1])
        arrow = {"arrowstyle": "-|>", "color": color, "linewidth": 2, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", end, (middle, 1.35), arrowprops=arrow)
        beyond = (np.linalg.norm(tip) + 0.45) / np.linalg.norm(tip)
        spot = (middle + unit * beyond * tip[0], 1.35 + unit * beyond * tip[1])
        axes.text(*spot, name, color=color, ha="center", va="center", fontsize=11, weight="bold")
    axes.text(middle, 2.9, title, ha="center", va="center", fontsize=10)
    axes.text(middle, 0.08, f"product {product(*places):.3f}".replace("-", "−"), ha="center", va="center", fontsize=9)
lesson.save(figure)

figure, axis = plt.subplots(figsize=(7.2, 2.4))
texts = {"RoPE": "RoPE alone", "modern": "all six", "modern, sinusoids": "all six\nexcept RoPE"}
for row, (name, values) in enumerate(differences.items()):
    mean, half = interval(values)
    axis.barh(row, mean, color=mix(BLUE, 0.6 if name == "RoPE" else 0.3), height=0.6)
    axis.plot([mean - half, mean + half], [row + 0.12, row + 0.12], color="black", linewidth=1.2)
    axis.plot(values, np.full(len(values), row - 0.12), "o", color=ORANGE, markersize=4)
axis.set_yticks(range(len(texts)), [texts[name] for name in differences])
axis.invert_yaxis()
axis.set(xlabel="difference in nats per character from the paper's block", ylabel="changed")
axis.set(title="Bars: means. Lines: 95 % intervals. Points: seeds.")
lesson.save(figure, "worth")
lesson.finish(globals())
