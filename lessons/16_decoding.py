# %% [markdown]
# # Lesson 16: From probabilities to sentences
#
# [![Decoding](../plots/16_decoding_map.png)](../plots/00_reverse_whole.png)
#
# **A model gives probabilities for the next token. How do they become a sentence, and at what cost?**
#
# 12 min, with a pencil 30, going deeper 5 · runs in 60 s (fast: 20 s) · needs 00, 05, 07, 12, 14 · difficulty 3 of 5 ·
# paper: sections 3.1, 3.2.3, 4 and 6.1, table 1
#
# ## A word of one letter
#
# Our tiny model reverses 332 of its 340 words. The shortest one it fails on has a single letter, «t»: the model writes
# "tt". Leyla, who has to explain this, finds three numbers that make it worse: the model gives "tt" the probability
# 0.299 and the right answer 0.193, and it gives 0.486 to the answer without any letter. So it didn't even write what it
# believes in most.
#
# The decoder only gives the probabilities of the next token. A rule has to choose one, append it, and ask again.
# The simplest rule is *greedy decoding*: always take the most probable token. With the source "stop" it goes well:
#
#     read        bos       p         o         t         s
#     choose      p 0.953   o 0.697   t 0.945   s 0.917   eos 0.999
#
# After «p» it was close, «o» with 0.697 against «p» with 0.297. Greedy takes «o», the answer is "pots", and its
# probability is the product, 0.575.

# %% Imports
from functools import partial

from support.chart import averages_and_beams
from support.graph import Graph
from support.lab import TARGET_IN, VOCABULARY, begin, error, running_example
from support.pictures import grids

import numpy as np

from minitransformer import decoding
from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score
from minitransformer.example import load_example
from minitransformer.models import Transformer, named_config
from minitransformer.training import CrossEntropyLoss, TrainingSettings, noam, train
from minitransformer.vocabulary import BOS, EOS, PAD

lesson = begin("16_decoding")
example, numbers = load_example(), running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (03) Why do we add the logarithms of probabilities, and not multiply the probabilities themselves?
# 2. (12) A model writes an answer of five tokens. Which half of it doesn't need to run five times, and why?
# 3. (14) In training, the decoder reads the right answer. What does it read when it writes, and when does that matter?
#
# (The answers are at the end.)
#
# ## Sixteen beginnings, and five models
#
# 1. Keep the 16 most probable beginnings of a sentence instead of one, and take the most probable sentence that comes
#    out. Are more of these answers right than with greedy decoding? Of 200, how many will be empty?
# 2. For each new token, the decoder can either read all the tokens before it again, or keep what it computed for them.
#    For an answer of 64 tokens, how many times as much work is the first way?
# 3. Take the mean of the weights at five moments during training. Is this model better than the last of the five, or is
#    it a blur?

# %%
guess_empty = ...  # empty answers of 200, with a beam of 16
guess_work = ...  # times as much work for 64 tokens, if nothing is kept

# %% [markdown]
# ## Where greedy fails
#
# With the source «t», everything goes wrong that can:
#
#     first token     t 0.511     eos 0.486
#     after t         t 0.615     eos 0.378
#     after t t       t 0.048     eos 0.952
#
#     greedy answer      "tt"     0.511 · 0.615 · 0.952 = 0.299
#     most probable      ""       0.486
#     right answer       "t"      0.511 · 0.378 = 0.193
#
# Greedy takes «t», because 0.511 beats 0.486. But then the model is unsure again, and the product falls to 0.299, while
# the other choice, to end at once, would have kept 0.486. A first choice can't know what it will cost later, so
# choosing the most probable token each time doesn't make the most probable sentence. (That one is empty, and wrong,
# too.)


# %%
def ids_of(text):
    return tuple(VOCABULARY.index(letter) for letter in text)


def text_of(ids):
    return "".join(VOCABULARY[token] for token in ids if token != EOS)


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def reader(source):
    """The function ln_p(ids): ln p of each token of the vocabulary, if the tiny model has written these ids."""
    return lambda ids: log_softmax(example.model(np.array([ids_of(source)]), np.array([[BOS, *ids]]))[0, -1])


ln_p, graph, product = reader("t"), Graph(), {"": 1.0}
graph.node("", (0, 0), "bos")
for beginning, token, place in (
    ("", "t", (1.7, 0.5)),
    ("", "eos", (1.7, -0.5)),
    ("t", "t", (3.7, 0.95)),
    ("t", "eos", (3.7, 0.05)),
    ("tt", "eos", (6.0, 0.95)),
):
    p_token = np.exp(ln_p(ids_of(beginning)))[VOCABULARY.index(token)]
    longer = beginning + token
    product[longer] = product[beginning] * p_token
    graph.node(longer, place, f"{beginning} {token}  {product[longer]:.3f}".strip(), lit=token == "eos")
    graph.edge(beginning, longer, forward=f"{p_token:.3f}", flip=token == "eos")
lesson.save(graph.draw(title="Beginnings of an answer to “t”, with their probabilities"), "tree")

# %% [markdown]
# ![The beginnings of an answer to «t»](../plots/16_decoding_tree.png)
#
# Finished answers are yellow, and the numbers on the arrows multiply to the number in a box. Of this tree, greedy knows
# only the upper path.
#
# ## Keep several beginnings
#
# To be sure to find the most probable answer, try them all, but with V tokens there are about V^T answers of T tokens.
# *Beam search* is a compromise that keeps the few most probable beginnings, the *beam*. At each step, extend each of
# them by each token, sort, and look at the best ones, as many as the beam is wide. The ones that end in eos are
# finished answers, and the best of the others fill the beam again. A beam of 2 finds the lowest yellow box in its first
# step.
#
# > **1976.** Lowerre's HARPY understood spoken sentences by following only the most probable beginnings at each moment,
# > which Reddy called beam search. Sutskever, Vinyals and Le used it in 2014, when they translated with LSTMs, and in
# > 2016 Wu and colleagues at Google added the length penalty that the paper adopted from them.
#
# ## Short answers win
#
# Every further token multiplies the probability by a number below 1, so short answers have an advantage that they
# didn't earn. For "oo", the tiny model gives the wrong answer «o» the probability 0.456, and the right answer "oo" only
# 0.447, because it needs one more token. The paper (section 6.1) therefore ranks finished answers by
#
#     score = ln p(answer) / ((5 + T) / 6)^α          T tokens, eos included; α = 0.6, a beam of 4
#
# ln p is negative, so dividing by a larger number makes the score larger, which helps longer answers:
#
#     "o"      T = 2      −0.785 / (7/6)^0.6 = −0.716
#     "oo"     T = 3      −0.806 / (8/6)^0.6 = −0.678      the best score, and right


# %%
def beam_search(ln_p, at_most, beam, alpha):
    """All finished answers (score, ids), the best first. With a beam of 1 and α = 0 the best is the greedy one."""
    alive, finished = [(0.0, ())], []  # a beginning is (ln p, ids)
    for T in range(1, at_most + 1):
        longer = [(total + more, (*ids, token)) for total, ids in alive for token, more in enumerate(ln_p(ids))]
        longer.sort(reverse=True)
        penalty = ((5 + T) / 6) ** alpha
        finished += [(total / penalty, ids) for total, ids in longer[:beam] if ids[-1] == EOS]
        alive = [(total, ids) for total, ids in longer if ids[-1] != EOS][:beam]
    finished += [(total / penalty, ids) for total, ids in alive]  # these had no time to end
    return sorted(finished, reverse=True)


apart = []
for source in ("stop", "t", "oo"):
    for beam, alpha in ((1, 0.0), (4, 0.0), (4, 0.6)):
        score, ids = beam_search(reader(source), 6, beam, alpha)[0]
        print(f'"{source}", beam {beam}, α = {alpha}: "{text_of(ids)}", score {score:.3f}')
        state = decoding.decoding_state(example.model, np.array([ids_of(source)]), 6)
        library = decoding.beam_search(state, 1, 6, BOS, beam, alpha)[0][0]
        apart.append(abs(score - library.score) + (ids != library.ids))
lesson.check("scores and answers against the library's", max(apart), 1e-12)

answers = beam_search(reader("t"), at_most=4, beam=10_000, alpha=0.0)
everything = sum(np.exp(score) for score, _ in answers)
lesson.check(f"a beam of 10,000 finds all {len(answers)} answers: their p sum to 1", error(everything, 1.0), 1e-13)

# %% [markdown]
# ## Keys that never change
#
# To write the fifth token, greedy decoding (lesson 00) runs the decoder over all five tokens again, so it computes 1 +
# 2 + 3 + 4 + 5 = 15 rows, and 10 of them for the second time or more, always with the same result. In the first layer,
# the causal mask lets row t see tokens 0 to t and no later ones (lesson 07), and everything else in the layer works on
# each row separately. In the second layer, row t is made from rows 0 to t of the first, and so on, so a new token
# changes no old row in any layer.
#
# [In the explorer: row s→eos reads the last token. Set its x_0 to 3. Does the key of row p→o move? Guess
# first.](../minitransformer/explorer/page/index.html#embed=decoder.self.k[0,1,0]&turn=target.x[4,0])
#
# **Your line.** All five keys and values of head 0 are in `k` and `v`, and the row that has just read «s» has the query
# `q_new`. Write its answer before you read on. Is anything masked?

# %%
k, v = (numbers[f"decoder.self.{name}"][0] for name in "kv")  # (T, D)
q_new, D = numbers["decoder.self.q"][0][-1], 3  # (D,)
o_new = ...  # your line: the answer (D,) of the new row
lesson.judge("o_new", o_new)

# %% [markdown]
# The new row compares its query with all keys and takes a mean of all values (lesson 05). Nothing is masked, since no
# later key exists. So keep all keys and values, and compute one row per token. This is the *KV cache*, here with the
# numbers of our decoder:

# %%
x = numbers["decoder.self.x"]  # (T, C)
W_q, W_k, W_v = (numbers[f"decoder.self.W_{name}"][:, :D] for name in "qkv")
b_q, b_k, b_v = (numbers[f"decoder.self.b_{name}"][:D] for name in "qkv")


def one_more(row, keys, values):
    """The answer o (D,) for one new token, row (C,). Its key and value are kept."""
    keys.append(row @ W_k + b_k)
    values.append(row @ W_v + b_v)
    s = np.array(keys) @ (row @ W_q + b_q) / np.sqrt(D)
    return np.exp(log_softmax(s)) @ np.array(values)


keys, values = [], []
o = np.array([one_more(row, keys, values) for row in x])
k, v = np.array(keys), np.array(values)
new = [(4, 0), (4, 1), (4, 2)]
figure = grids({"keys (T, D)": k, "values (T, D)": v}, {"T": TARGET_IN}, highlight={"keys": new, "values": new})
lesson.save(figure, "cache")
lesson.check("head 0, token by token, against all at once", error(o, numbers["decoder.self.o"][0]), 1e-14)

state = decoding.decoding_state(example.model, example.source, 5)
z_cached = np.array([state.extend(example.target_in[:, t : t + 1])[0] for t in range(5)])
lesson.check("the library's KV cache against all at once", error(z_cached, numbers["output.z"]), 1e-13)

# %% [markdown]
# ![Keys and values of the five tokens, the last of them framed](../plots/16_decoding_cache.png)
#
# There is one row for each token, and when the decoder reads «s», only the framed rows are computed. (If old rows
# change, the mask leaks: lesson 07.) Cross-attention makes its keys and values from the memory, once for each source.
#
# The whole word takes 5 rows with the cache, and 15 without. For 64 tokens and 16 source tokens, the work without the
# cache is 34 times as much in the paper's base model, as Going deeper counts.

# %% [markdown]
# ## A model in training
#
# A larger model learns to reverse words of up to 12 letters, as in lesson 00, but only for 400 steps with small
# batches. Every 20 steps we keep its weights, and then compare the weights at each of these moments with the mean of
# the last five. (The paper does so with its last 5 checkpoints. The mean is one model, so writing costs no more.)

# %%
task, steps = get_task("reverse"), lesson.pick(full=400, fast=120)
model = Transformer(named_config("tiny", len(task.vocabulary), dropout=0.0), dtype=np.float64)
schedule = partial(noam, d_model=model.config.d_model, warmup=100, factor=0.3)
settings, snapshots = TrainingSettings(steps=steps, batch_size=32, eval_interval=20), {}


def keep(step, history):
    snapshots[step] = model.state_dict()


train(model, task, schedule=schedule, loss_fn=CrossEntropyLoss(0.1), settings=settings, evaluate=keep)
test = task.held_out_batch(np.random.default_rng(1), lesson.pick(full=200, fast=20))


def words_right(weights):
    model.load_state_dict(weights)
    return 100 * decode_and_score(model, test)[1]


when, last, averaged = [step for step in snapshots if step >= 100], [], []
for step in when:
    five = [snapshots[step - 20 * i] for i in range(5)]
    last.append(words_right(five[0]))
    mean = {name: np.mean([weights[name] for weights in five], axis=0) for name in five[0]}
    averaged.append(words_right(mean))

# %% [markdown]
# For the beams we take the weights after 220 steps, when the model is still unsure, and allow answers of up to 16
# tokens.

# %%
model.load_state_dict(snapshots[lesson.pick(full=220, fast=120)])
right = [tuple(row[row != PAD].tolist()) for row in test.target_out]
beams, found = (1, 2, 4, 8, 16), {}
for alpha in (0.0, 0.6):
    for beam in beams:
        state = decoding.decoding_state(model, test.source, 16)
        best = [ranked[0] for ranked in decoding.beam_search(state, len(right), 16, BOS, beam, alpha)]
        found[alpha, beam] = best
        length, mean = np.mean([(len(answer.ids), answer.log_prob) for answer in best], axis=0)
        share = np.mean([answer.ids == ids for answer, ids in zip(best, right, strict=True)])
        empty = sum(answer.ids == (EOS,) for answer in best)
        print(f"α = {alpha}, beam {beam:2d}: ln p {mean:.2f}, {length:.2f} tokens, {empty:2d} empty, {share:.1%} right")

lesson.compare("empty answers, with a beam of 16", guess_empty, sum(answer.ids == (EOS,) for answer in found[0.0, 16]))
lengths = {key: np.mean([len(answer.ids) for answer in best]) for key, best in found.items()}
lesson.save(averages_and_beams(when, last, averaged, lengths, np.mean([len(ids) for ids in right])))

# %% [markdown]
# ![Averaged weights, and the length of answers by beam](../plots/16_decoding.png)
#
# On the left you should see a gray line that jumps up and down, and a blue one that rises smoothly, at first below it
# and then far above. The learning rate is large, so the weights swing around a point they don't reach, and the mean of
# five points of the swing is closer to it. At first it loses, because four of its five models have learned less. On the
# right the green line falls, and the blue one doesn't. If yours rises with the beam, look at a sign: ln p is negative,
# and it is *divided* by the penalty.
#
# ## A wider search finds nothing to say
#
# A beam of 16 finds more probable answers than greedy decoding: the mean of ln p rises from −4.08 to −3.62. But they
# are shorter, 7.80 tokens instead of 9.75, and no more of them are right, 17.0 % instead of 18.0 %. Why? Of the 200
# answers, 36 are *empty*, as for «t»: saying nothing costs one token, and saying a long word costs ten unsure ones,
# whose product is smaller. With α = 0.6 no answer is empty, and 19.0 % are right.
#
# This isn't a quirk of small models. Stahlberg and Byrne (2019) searched *all* translations with a trained Transformer
# base model, and for more than half of the sentences, the most probable translation is the empty one. They conclude
# that such models need the errors of a narrow search.
#
# So who is to blame for a wrong answer? Of the 164 wrong greedy answers only 7 are *search errors*: the right answer
# was more probable, and greedy didn't find it. The other 157 are *model errors*: the model prefers what is wrong.
# **More search makes a model say what it believes; it doesn't make it believe the right thing.**
#
# In lesson 00 every box of the map was lit, and none of them were yours. Now they all are.

# %%
z, _ = model.forward(*test.inputs)
ln_p = np.take_along_axis(log_softmax(z), test.target_out[..., None], axis=-1)[..., 0]
of_right = (ln_p * (test.target_out != PAD)).sum(axis=1)  # ln p of each right answer
wrong = [i for i, answer in enumerate(found[0.0, 1]) if answer.ids != right[i]]
search_errors = [i for i in wrong if of_right[i] > found[0.0, 1][i].log_prob]
print(f"greedy: {len(wrong)} wrong answers, {len(search_errors)} of them errors of the search")

# %% [markdown]
# **In papers:** the most probable answer is the *mode* or *MAP* answer, the fact that wider beams find worse ones is
# the *beam search curse* (Yang et al. 2018), and the mean of weights along a run *Polyak averaging* or *SWA* (Izmailov
# et al. 2018).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 17.
#
# ### What α trades
#
# Let every token cost the same, ln p = −cost. Then an answer of T tokens has the score −cost · T · ((5 + T)/6)^(−α),
# and
#
#     d score / dT = −cost · ((5 + T)/6)^(−α) · (1 − α T / (5 + T))
#
# For α ≤ 1 the bracket is positive, and the score falls with every token, only more slowly. So α = 0.6 doesn't reward
# length; it softens the punishment: a tenth token may make |ln p| larger by (15/14)^0.6 − 1 = 4.2 % before the score
# falls. For α > 1 the bracket is negative from T = 5/(α − 1) on, and longer is always better.
#
# ### The work with and without a cache
#
# Multiplications in a decoder layer, for the row of token number t:
#
#     self-attention      4 C² for q, k, v and the output      2 t C for scores and means
#     cross-attention     2 C² for q and the output            2 S C
#     feed-forward        2 C F
#
# With the cache a token costs one such row. Without it, token number t costs t rows, each of which meets t keys (the
# mask is applied to the finished scores), and the keys and values of the memory, 2 S C², are computed again. For 64
# tokens, 32.5 rows are read on average, and the memory adds the rest.


# %%
def work(tokens, S, C, F, cache):
    row = 6 * C * C + 2 * C * F + 2 * S * C
    if cache:
        return 2 * S * C * C + sum(row + 2 * t * C for t in range(1, tokens + 1))
    return sum(2 * S * C * C + t * row + 2 * t * t * C for t in range(1, tokens + 1))


times = {tokens: work(tokens, 16, 512, 2048, False) / work(tokens, 16, 512, 2048, True) for tokens in (16, 64, 256)}
print("work without the cache over work with it:", {tokens: round(ratio, 1) for tokens, ratio in times.items()})
lesson.compare("times as much work, for 64 tokens", guess_work, times[64])

# %% [markdown]
# ### Steps that wait for each other
#
# Recurrent networks (RNNs) read one token after another. Summaries of table 1, column "sequential operations", say that
# an RNN takes 100 steps where a Transformer takes 1. In training this is right, because the causal mask lets all rows
# be computed in one pass (lesson 14). In decoding it isn't: a token can't be read before it has been chosen, and it is
# chosen from the row before. Both take 100 steps for 100 tokens.
#
# ### Sampling, in short
#
# When many answers are good, draw one at random. First the probabilities are often sharpened:
#
# * *Temperature*: take p_w^(1/temperature), and divide by the sum. Below 1 it is sharper, and as it approaches 0 it
#   becomes greedy.
# * *Top-k* (Fan and others, 2018): keep the k most probable tokens, and divide by their sum.
# * *Top-p* (Holtzman and others, 2020): keep the fewest of the most probable tokens whose sum is at least a given
#   number.
#
# Our row p→o gives «o» 0.697 and «p» 0.297. A temperature of 0.5 squares all probabilities and makes these two 0.846
# and 0.154. Top-2 makes them 0.701 and 0.299.


# %%
def sharpened(p, temperature=1.0, top_k=None, top_p=1.0):
    """p (V,), the likeliest first."""
    p = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
    p = np.where(np.arange(len(p)) < (top_k or len(p)), p, 0)
    p = np.where(np.cumsum(p) - p < top_p * p.sum(), p, 0)  # kept if the sum before it is below top_p
    return p / p.sum()


star = np.sort(numbers["output.p"][1])[::-1]
for options in ({"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.8}, {"temperature": 2.0, "top_k": 4, "top_p": 0.7}):
    theirs = decoding.Sampling(np.random.default_rng(0), **options).probabilities(np.log(star)[None])[0]
    lesson.check(f"sampling with {options} against the library's", error(sharpened(star, **options), theirs), 1e-12)

# %% [markdown]
# ## Exercise
#
# 1. Twenty minutes. Our `beam_search` always continues to the last step. Stop as soon as no living beginning can beat
#    the best finished answer. (What is the best score that a beginning can still reach, for α = 0 and for α > 0?)
# 2. Ten minutes, pencil. Draw the tree of beginnings for the source "oo" with a beam of 2.
#
# Exercises with a checker: `minitransformer start 16`.
#
# ## Questions
#
# 1. Can a beam of 4 with α = 0.6 give a right answer to «t»?
# 2. After each step of a beam search, the kept keys and values have to be reordered. Why?
# 3. Can you keep keys and values in an encoder, and read a source token by token?
# 4. The base model keeps keys and values in float32, for 100 source and 100 target tokens. How many bytes is that?
# 5. Would it help to average the weights of two models with different random starts?
# 6. *Somewhere else.* A navigator adds up minutes, where we add up −ln p. It finds the fastest of all routes with one
#    number for each intersection. Why can't anyone find the most probable sentence like that? For which language model
#    could you?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. A product of many numbers below 1 soon underflows to 0. The sum of their logarithms doesn't, and the order stays
#    the same.
# 2. The encoder. Its memory depends only on the source, which doesn't change while the model writes.
# 3. Its own tokens, right or wrong. It matters where the next token depends on the previous ones, as in text, and
#    matters little where it goes by position.
#
# ### Questions
#
# 1. No. The empty answer has the score −0.721 / 1. The right one has −1.643 / (7/6)^0.6 = −1.498.
# 2. The living beginnings may all come from the same row of the batch. Then all rows need the keys and values of that
#    row, and those of the dropped beginnings are discarded.
# 3. No. Each row of an encoder sees all rows, so a new token changes every old row, and from the second layer on its
#    keys and values. With a causal mask you could, but that is a different model.
# 4. 2 (keys, values) · 2 (target, memory) · 6 layers · 100 tokens · 512 features · 4 bytes = 4,915,200 bytes.
# 5. No. You can permute hidden features without changing the function, and each training ends with its own order. The
#    mean mixes features that have nothing to do with each other.
# 6. How long the rest of a route takes depends only on the intersection, not on how you got there, so of all routes to
#    an intersection the fastest is enough. What the rest of a sentence costs depends on all of its tokens, so no two
#    beginnings are the same place. If a model looks back only one token, there are V places, and T tokens take T V²
#    additions (Viterbi's algorithm): for V = 7 and T = 5, 245 instead of 7⁵ = 16,807 sentences.
#
# The exercise. First: with α = 0 a beginning can keep its ln p at best, because every further token has ln p ≤ 0. With
# α > 0 it can also reach the largest penalty, that of the last step: compare ln p / ((5 + at_most)/6)^α. Second: the
# first step keeps «o» (0.967) and «s» (0.020). From «o» come the finished «o» (0.456) and the beginning "oo" (0.455),
# and from "oo" the finished "oo" (0.447).

# %%
tree_of_oo = {ids: np.exp(total) for total, ids in beam_search(reader("oo"), 3, 10_000, 0.0)}
lesson.finish(globals())
