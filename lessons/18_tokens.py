# %% [markdown]
# # Lesson 18: What is a token?
#
# [![The Transformer, with both embeddings lit](../plots/18_tokens_map.png)](../plots/00_reverse_whole.png)
#
# **Two models of the same text: the first has a perplexity of 9, the second 119. Which is better?**
#
# 9 min, with a pencil 25, going deeper 5 · runs in 30 s (fast: 30 s) · needs 03, 04, 14 · difficulty 2 of 5 · paper:
# section 5.1, and Sennrich et al. 2016, section 3.2
#
# ## Nine what?
#
# A student has trained two language models on the manual of Python, 440,000 characters, and has tested both on the same
# pages, which neither had seen. The first has a perplexity of 9: on average it is as unsure of what comes next as if it
# had to choose among nine equally likely things. The second has a perplexity of 119. She is about to delete the second
# one, and asks you to look at her script first.
#
# You find no mistake in it, but you ask her a question: nine what? The first model goes from byte to byte, as our
# running example goes from letter to letter, «s», «t», «o», «p». The second has a vocabulary of 4,096 tokens, and most
# of them are whole words or pieces of words. Which of the two would you keep?

# %% Imports
import itertools
from collections import Counter

from support.lab import BLUE, GREY, ORANGE, TARGET_OUT, VOCABULARY, begin, error, plt, running_example
from support.pictures import canvas, mix

import numpy as np

from minitransformer.data.text import load_python_topics
from minitransformer.plotting import text_width
from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.tokenizers.words import batches_of_words

lesson = begin("18_tokens")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (03) The mean loss is L nats per token. A blind guess among how many tokens would cost the same?
# 2. (04) Which matrix of the model grows with the vocabulary, and which of its rows learn little?
# 3. (14) The word "pots" has four letters. How many predictions does the model make for it, and why not four?
#
# (The answers are at the end.)

# %% [markdown]
# ## A pair becomes a token
#
# A computer stores a text as bytes, numbers from 0 to 255. A model whose tokens are bytes can read and write
# everything, but its texts are long, and attention compares all pairs of tokens (lesson 05). With words as tokens,
# texts are short, but sooner or later a word comes up that isn't in the vocabulary. Byte pairs are a middle way:
#
#     1   split the text into words, spaces and signs included; each byte is a token
#     2   count all pairs of neighbors inside the words
#     3   join the most frequent pair into a new token, wherever it stands (if two are equal, the smaller ids)
#     4   go on with 2 until the vocabulary is as large as you want
#
# > **1994.** Philip Gage publishes byte pair encoding in the C Users Journal, as a way to compress files. In 2015 Rico
# > Sennrich, Barry Haddow and Alexandra Birch use it to let a translator write names and rare words that aren't in any
# > vocabulary. The paper of this course takes 37,000 such tokens for English and German, and GPT-2 begins in 2019 with
# > bytes, so that no character is ever unknown.
#
# **Your line.** Let «o» have the id 3 and «p» the id 4, as in our example, and let the text be "ooopoo". The pair (3,
# 3) becomes the new token 7. What does the text become?

# %%
row = [3, 3, 3, 4, 3, 3]
merged = ...  # your line: a list of ids
lesson.judge("merged", merged)

# %% [markdown]
# The result is 7 3 4 7. A text is read from left to right, and a token that has been joined can't be joined again. So
# the first two of the three become 7, the third stays as it is, and the last two become 7.


# %% Ours
def merge_pair(ids, pair, new):
    merged, i = [], 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        merged.append(new if found else ids[i])
        i += 2 if found else 1
    return merged


def learn(words, first, number):
    """words {row of ids: how often} -> the pairs that become the tokens `first`, `first` + 1, ..."""
    texts, counts, pairs = list(words), list(words.values()), []
    for new in range(first, first + number):
        total = Counter()
        for ids, count in zip(texts, counts, strict=True):
            for pair in itertools.pairwise(ids):
                total[pair] += count
        pairs.append(min(total, key=lambda pair: (-total[pair], pair)))
        texts = [merge_pair(ids, pairs[-1], new) for ids in texts]
    return pairs


corpus = load_python_topics()  # what help() says about Python, half a million characters
number = lesson.pick(full=60, fast=20)
tokenizer = BytePairTokenizer.train(corpus.train, 4096)  # the library's, which is faster
plain = BytePairTokenizer()  # 259 tokens: pad, bos, eos and the bytes
words = Counter(word for batch in batches_of_words(corpus.train, "words") for word in batch)
pairs = learn({tuple(plain.encode(word).tolist()): count for word, count in words.items()}, 259, number)
parts = [b""] * 3 + [plain.decode_bytes([id]) for id in range(3, 259)]
for left, right in pairs:
    parts.append(parts[left] + parts[right])
theirs = [left + right for left, right in tokenizer.merges]
print("the first tokens:", *parts[259:279])
lesson.check("pairs that differ from the library's", sum(map(bytes.__ne__, parts[259:], theirs)), 0)

# %% [markdown]
# ![Four words, cut by vocabularies of four sizes](../plots/18_tokens_pieces.png)
#
# Frequent words become one token, and rare ones stay in pieces. (A space before a word belongs to the word, so "stop"
# at the beginning of a line and " stop" within it are two different tokens.)
#
# ## One text, one price
#
# Whatever its tokens are, a language model gives a probability to the whole text. It predicts one token after another,
# and the chain rule of probability multiplies its predictions:
#
#     p(text) = p(token 1) · p(token 2 | token 1) · ...            of the text as it is cut (see Going deeper)
#     −ln p(text) = −Σ_n ln p_n                                    the logarithm turns the product into a sum
#                 = N L                                            L is the mean of −ln p_n, N the number of tokens
#
# The left side is the price of the text in nats, what the model pays for its doubt (not the price of lesson 06). The
# number of tokens isn't in it, but it is in the perplexity, e to the power of L:
#
#     perplexity = exp(L) = p(text)^(−1/N)
#
# This takes the Nth root, and the tokenizer decides what N is.
#
# The student's models are as simple as models can be. They know how often each pair of tokens occurs in the
# training text. Then they give each last token ten more successors, in which every token has the share p(next) that it
# has in the whole text:
#
#     p(next | last) = (count(last, next) + 10 p(next)) / (count(last) + 10)


# %%
def nats_of(train, test, V, back):
    """What each token of `test` costs, if the model knows what followed each row of `back` tokens or fewer."""
    text, end = np.append(train, test), len(train)
    p = ((np.bincount(train, minlength=V) + 0.5) / (end + 0.5 * V))[text]
    before = np.zeros(len(text), dtype=int)  # a number for each row of tokens before a token
    for i in range(1, back + 1):
        earlier = np.append(np.full(i, V), text[:-i])
        before = np.unique(before * (V + 1) + earlier, return_inverse=True)[1]
        after = np.unique(before * V + text, return_inverse=True)[1]
        together, alone = (np.bincount(ids[:end], minlength=len(text))[ids] for ids in (after, before))
        p = (together + 10 * p) / (alone + 10)  # the formula, with the last i tokens
    return -np.log(p[end:])


def measure(size, back=1):
    """The nats of each token of the held-out text, with the first `size` tokens of the vocabulary."""
    cut = BytePairTokenizer(tokenizer.merges[: size - 259])
    return nats_of(cut.encode(corpus.train), cut.encode(corpus.held_out), size, back)


# %% [markdown]
# **Your number.** The model that goes from byte to byte has a perplexity of 9.38. Now call any two neighboring bytes
# one token, and let the probability of this token be the product of the two that the model gave. It is the same model,
# and the same text has the same price. What is its perplexity?

# %%
guess = ...  # per two bytes
nats = measure(259)
even = nats[: len(nats) // 2 * 2]
lesson.compare("perplexity per two bytes", guess, np.exp(even.reshape(-1, 2).sum(axis=1).mean()))

# %% [markdown]
# The number is squared (up to the rounding of 9.38), because half as many tokens share the same price. If each three
# bytes became one token, it would be raised to the third power, although nothing has become worse. A perplexity that
# doesn't name its token is like a price that doesn't say whether it is per ounce or per pound.
#
# So divide the price by something that no tokenizer changes: the number K of characters, or the number of bytes. And
# divide by ln 2, so that the unit is a bit, one decision between two equally likely things:
#
#     bits per character = −ln p(text) / (K ln 2)
#                        = L · (N / K) / ln 2                      nats per token, times tokens per character
#
# **Your line.** In `nats` is the price of each token of the held-out text, and `corpus.held_out` is that text itself.
# How many bits per character does the byte model need?

# %%
bits = ...  # your line: bits per character
lesson.judge("bits", bits)

# %% [markdown]
# **Perplexity counts per token, and the tokenizer decides how many tokens there are; so to compare two models, divide
# the price of the text by its characters.** All nats are added up, including those of tokens that have no characters.
# Our running example writes "pots", K = 4 characters, but it makes N = 5 predictions, because it must also say where
# the word ends:

# %%
p = np.exp(example["output.z"])
p /= p.sum(axis=-1, keepdims=True)
chances = p[np.arange(5), [VOCABULARY.index(token) for token in TARGET_OUT]]
L = -np.log(chances).mean()
own_bits = L * (5 / 4) / np.log(2)
print(f'"pots": {L:.4f} nats per token, perplexity {np.exp(L):.3f}, {own_bits:.4f} bits per character')
lesson.check("p(text) by both ways", error(2 ** (-own_bits * 4), chances.prod()), 1e-14)

# %% [markdown]
# ## Which is the better one?
#
# We cut off the vocabulary after more and more tokens, and measure both numbers on the held-out pages.

# %%
SIZES = [259, 300, 400, 512, 1024, 2048, 4096]
K = len(corpus.held_out)
prices = {size: measure(size) for size in SIZES}
perplexity = {size: np.exp(prices[size].mean()) for size in SIZES}
per_character = {size: prices[size].sum() / np.log(2) / K for size in SIZES}
length = {size: K / len(prices[size]) for size in SIZES}
print("tokens  characters per token  perplexity  bits per character")
for size in SIZES:
    print(f"{size:6}  {length[size]:20.2f}  {perplexity[size]:10.1f}  {per_character[size]:18.2f}")
both = [error(np.log(perplexity[size]) / length[size] / np.log(2), per_character[size]) for size in SIZES]
lesson.check("the bits per character follow from the perplexity", max(both), 1e-12)
four = measure(259, back=4)
four_perplexity, four_bits = np.exp(four.mean()), four.sum() / np.log(2) / K
print(f"bytes, looking back by four: perplexity {four_perplexity:.1f}, {four_bits:.2f} bits per character")

# %% [markdown]
# ![Perplexity and bits per character over the size of the vocabulary](../plots/18_tokens.png)
#
# You should see the perplexity rise at every step on the left, while the bits per character fall on the right. If both
# rise, you have divided the sum of nats by the number of tokens in both.
#
# ## The better model has the worse number
#
# The perplexity grows to 13 times what it was, while the price of the text is halved. The model with the perplexity of
# 119 needs 1.63 bits for a character, and the one with 9 needs 3.23. So the student would have deleted the better one.
#
# Why is it better? Both look back by one token, but its tokens are 4.2 characters long, so it sees more of the text.
# Let the model of bytes look back by four bytes, and it needs 1.64 bits, the same as the large one. These two are
# equally good, and their perplexities are 3.1 and 119.
#
# The large vocabulary has also lost something that no number here shows. Look at "stop" in the picture above. It is now
# a single token, a row of E, and nothing in the input says which letters are in it, while "pots" is still made of three
# pieces. Turning one into the other, as our example has done all along, was easy because its tokens are letters. A
# model with large tokens must know by heart how each of them is spelled.
#
# **In papers:** joining pairs is *byte pair encoding* (BPE), each joining a *merge*, the pieces are *subwords*, a word
# that a vocabulary lacks is *out of vocabulary* (OOV), our two models are *bigram models* with *Dirichlet smoothing*
# (MacKay and Peto 1995), and a price for each byte is given in *bits per byte* (BPB).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 19. For your own text, `minitransformer train text` gives the bits
# per character (docs/commands.md).
#
# ### Rows that hardly learn
#
# The bits fall more and more slowly, because the training text is finite: the more tokens there are, the fewer examples
# it has of each. Of the 4,096 tokens, 34 % occur fewer than five times in all of it. Some never occur, because a longer
# token has swallowed them: they were needed on the way. Their rows of E learn next to nothing (lesson 04). The longest
# token is a line of 93 signs, most of them dashes: the border of a table.

# %%
count = np.bincount(tokenizer.encode(corpus.train), minlength=4096)[3:]
rare, never = (count < 5).mean(), (count == 0).mean()
longest = max(theirs, key=len)
print(
    f"{rare:.0%} of the tokens occur fewer than five times, and {never:.0%} never; the longest has {len(longest)} bytes"
)

# %% [markdown]
# ### One text, many ways to cut it
#
# We have cheated a little. With 4,096 tokens, "stop" can be written as one token, as "st" and "op", or letter by
# letter. Each way has a probability, and p(text) is the sum of all of them. The tokenizer uses only one way, so our
# bits are an upper bound. How large is the gap? For a model without memory, in which each token has its own
# probability, one walk through a word adds up all the ways. Let sum_i be the probability of its first i bytes:
#
#     sum_0 = 1
#     sum_i = Σ_j sum_j p(the token from byte j to byte i)

# %%
alone = (np.append([0, 0, 0], count) + 0.5) / (count.sum() + 0.5 * 4096)
id_of = {tokenizer.decode_bytes([id]): id for id in range(3, 4096)}


def all_ways(word, p=alone):
    """(number of ways to cut a word, their probability)"""
    data = word.encode()
    ways, total = [1], [1.0]
    for i in range(1, len(data) + 1):
        ends = [(j, id_of[data[j:i]]) for j in range(i) if data[j:i] in id_of]
        ways.append(sum(ways[j] for j, _ in ends))
        total.append(sum(total[j] * p[id] for j, id in ends))
    return ways[-1], total[-1]


tested = Counter(word for batch in batches_of_words(corpus.held_out, "words") for word in batch)
one_way = sum(-np.log2(alone[tokenizer.encode(word)]).sum() * n for word, n in tested.items()) / K
every_way = sum(-np.log2(all_ways(word)[1]) * n for word, n in tested.items()) / K
stop_ways = all_ways("stop")[0]
print(f'"stop" can be cut in {stop_ways} ways; one way {one_way:.3f} bits per character, all ways {every_way:.3f}')

# %% [markdown]
# For this model the gap is 0.024 bits, about one per cent. It may be that small because training has seen only one way
# of cutting, which leaves little for the others. (To cut at random in training makes a model more robust against errors
# in spelling: Kudo 2018.)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 5 minutes. One model has a perplexity of 20 with 4 characters per token, another has 60 with 5.5. Which is
#    better?
# 2. Keyboard, 15 minutes. Let the model look back two tokens, then three and more. Which vocabulary gains the most, and
#    which is best in the end?
#
# Exercises with a checker: `minitransformer start 18`.
#
# ## Questions
#
# 1. A model gives 1/256 to each byte. What is its perplexity, and how many bits per byte does it need?
# 2. Why must a pair not cross the end of a word?
# 3. What is the perplexity of the better model per character?
# 4. A colleague leaves out the nats of eos, because it has no characters. By how much does our example's price fall?
# 5. Could you choose a tokenizer for which even a blind guess has a perplexity of 2?
# 6. *Somewhere else.* Two models of speech are compared. One predicts pieces of 10 milliseconds with a perplexity of 3,
#    the other pieces of 40 milliseconds with a perplexity of 20. Which is better?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Among e^L tokens: ln of this number is L. It is the perplexity.
# 2. E, which has a row for each token. The rows of rare tokens learn little, because only the output teaches them.
# 3. Five. The last one is eos, by which the model says that the word ends here.
#
# ### The questions
#
# 1. 256, and log₂ 256 = 8.
# 2. Frequent neighbors such as "of the" would become tokens, and so would "dog." and "dog,", each with its own row,
#    which must learn the same thing.
# 3. 2^1.63 = 3.1, against 9.4 for the other one. Per character, perplexities can be compared.
# 4. eos is the last of the five tokens, with p = 0.999, so only by 0.0004 bits per character. With a model that doesn't
#    know where to stop it would be much more.
# 5. Cut each byte into eight tokens, its bits, so that a blind guess chooses between two. It still pays 8 bits per
#    byte.
# 6. Divide by something that both share, such as a second of sound: 100 · log₂ 3 = 158 bits, and 25 · log₂ 20 = 108
#    bits. The second, if its pieces say as much about the sound.
#
# The exercise. First: log₂ 20 / 4 = 1.08 bits per character, and log₂ 60 / 5.5 = 1.07, so they are equally good.
# Second: the small ones, because each additional token is a larger part of what they know. With six tokens back, 1,024
# tokens are as good as 4,096, with 1.36 bits each.

# %%
# the pictures of this lesson
figure, axes = canvas(7.9, 2.5)
starts = {"stop": 0.75, "pots": 1.75, "tokenization": 2.75, "unstoppable": 5.35}
axes.text(0.1, 2.38, "tokens", fontsize=8, color=GREY, va="center")
for line, size in enumerate((259, 400, 1024, 4096)):
    cut, y = BytePairTokenizer(tokenizer.merges[: size - 259]), 2.1 - 0.58 * line
    axes.text(0.1, y, f"{size:,}", fontsize=10, va="center", color=GREY)
    for word, left in starts.items():
        for id in cut.encode(word):
            piece = cut.decode([id])
            width, color = text_width(piece, 9) + 0.09, BLUE if len(piece) > 1 else GREY
            box = plt.Rectangle((left, y - 0.15), width, 0.3, facecolor=mix(color, 0.2), edgecolor=color, linewidth=0.8)
            axes.add_patch(box)
            axes.text(left + width / 2, y - 0.01, piece, fontsize=9, ha="center", va="center")
            left += width + 0.03
lesson.save(figure, "pieces")

figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.2))
left.loglog(SIZES, list(perplexity.values()), "o-", color=ORANGE, markersize=4)
left.set(title="Perplexity per token", xlabel="tokens in the vocabulary", ylabel="perplexity")
right.semilogx(SIZES, list(per_character.values()), "o-", color=BLUE, markersize=4)
right.set(title="Bits per character", xlabel="tokens in the vocabulary", ylabel="bits", ylim=(0, 3.5))
for axis in (left, right):
    axis.set_xticks([259, 1024, 4096], ["259", "1,024", "4,096"])
    axis.minorticks_off()
left.set_yticks([10, 30, 100], ["10", "30", "100"])
lesson.save(figure)
lesson.finish(globals())
