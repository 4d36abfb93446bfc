# %% [markdown]
# # Lesson 16: From probabilities to sentences
#
# * Question: the model gives probabilities of one next token; how does a sentence come of it, and at what cost?
# * You derive: why the best tokens are not the best sentence; what the length penalty trades; why keys can be kept
# * Reading: 27 min, going deeper 0 min
# * Run: 60 s (fast: 8 s)
# * Needs: 07, 12, 14
# * Difficulty: 3 of 5
# * Paper: sections 3.1, 3.2.3, 4 and 6.1, table 1

# %%
import itertools
import time
from functools import partial
from lab import BLUE, GREEN, GREY, ORANGE, begin, error, plt

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter

from minitransformer import decoding
from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score
from minitransformer.models import Transformer, TransformerConfig, named_config
from minitransformer.training import CrossEntropyLoss, TrainingSettings, noam, train

lesson = begin("16_decoding")
PAD, BOS, EOS = 0, 1, 2  # padding, begin and end of a sequence, as in all lessons

# %% [markdown]
# ## Predict
#
# A trained decoder gives, for all tokens so far, the probabilities of the next one. Training never asked for more.
# Somebody has to choose. Write down:
#
# 1. Choose the likeliest token each time. Is the sentence that comes out the likeliest sentence?
# 2. Keep not one but the 16 likeliest beginnings, and take the most probable sentence of all that come out. Are the
#    answers longer or shorter than the greedy ones? Are more of them right?
# 3. For token 65 the decoder could read the 64 before it again, or keep what it computed of them. How many times the
#    work does the first way take for 64 tokens in all?
# 4. Training swings. Is the mean of the last five sets of weights better than the last one, or is it a blur of five
#    models that belongs to none?

# %% [markdown]
# ## Small numbers
#
# A language of two letters, and "." that ends a sentence. The first token, and the one after it:
#
#                 a      b      .
#     first      0.5    0.4    0.1
#     after a    0.4    0.3    0.3
#     after b    0.05   0.05   0.9
#
# A sentence's probability is the product of its tokens' (each given those before it). With room for two tokens seven
# sentences can come out, four of them cut off by the lack of room; their probabilities sum to 1:
#
#     .  0.10     a.  0.15     aa  0.20     ab  0.15     b.  0.36     ba  0.02     bb  0.02
#
# Greedy takes a (0.5 beats 0.4), then a again: "aa", with probability 0.20. The best sentence is "b.", 0.36. It begins
# with the less likely letter, because what follows b is almost sure and what follows a is not. A first choice cannot
# know that. Keep TWO beginnings: a (0.5) and b (0.4). Their best extensions are b. (0.36) and aa (0.20), and the best
# is found.

# %%
first = np.array([0.5, 0.4, 0.1])
after = {"a": np.array([0.4, 0.3, 0.3]), "b": np.array([0.05, 0.05, 0.9])}
sentences = {".": first[2], **{x + y: first["ab.".index(x)] * after[x]["ab.".index(y)] for x in "ab" for y in "ab."}}
print(", ".join(f"{sentence} {p:.2f}" for sentence, p in sentences.items()), f"; sum {sum(sentences.values()):.2f}")
greedy = "ab."[first.argmax()] + "ab."[after["ab."[first.argmax()]].argmax()]
best = max(sentences, key=sentences.get)
lesson.quote('"aa", with probability 0.20', sentences[greedy])
lesson.quote('The best sentence is "b.", 0.36', sentences[best])
found = f"greedy gives {greedy!r} with {sentences[greedy]:.2f}, the best is {best!r} with {sentences[best]:.2f}"
lesson.claim("choosing the likeliest token each time gives the likeliest sentence", "wrong", found)

# %% [markdown]
# ## The derivation
# ### Part 1: what is searched, and why not everything
#
# Let y = y₁ ... y_l be the tokens of an answer, the last of them the end token. By the chain rule of probability
#
#     P(y) = p(y₁) p(y₂ | y₁) ... p(y_l | y₁ ... y_l₋₁)        log P(y) = Σ_t log p(y_t | those before it)
#
# each factor also given the source. Logarithms, because a product of many small numbers underflows and a sum does not.
# Greedy decoding makes each factor as large as possible given the choices before; the small numbers show that this does
# not make the product as large as possible. Trying everything does, but with V tokens there are about V^l answers of
# length l.
#
# Beam search is the compromise: keep the `beam` most probable beginnings. At each step extend each of them by each of
# the V tokens, and sort the extensions by log P. Of the first `beam`, those that end in the end token are finished
# answers. Of all that do not end, the first `beam` live on. When the room is full, what lives counts as finished.
# With beam = 1 this is greedy decoding until it ends; what lives on then, with the likeliest token that is no end, has
# a smaller log P ever after. If the beam is so wide that nothing is ever dropped, it is the search of everything. In
# between there is no guarantee at all, not even that a wider beam is better than a narrower.

# %% [markdown]
# ### Part 2: short answers win, and the length penalty
#
# Every token adds log p ≤ 0. So log P only falls as an answer grows, and a short wrong answer can beat a long right
# one. The paper (section 6.1) ranks finished answers, as Wu et al. (2016) do, by
#
#     score(y) = log P(y) / lp(l)        lp(l) = ((5 + l) / 6)^α,  α = 0.6,  beam = 4
#
# l counts the tokens, the end token included. lp(1) = 1, and lp grows with l. log P is negative, so dividing by more
# makes the score larger. α = 0 is no penalty.
#
# What does it trade? Compare an answer of l tokens with one of l + k. The longer wins if
#
#     log P_long / lp(l + k) > log P_short / lp(l)     that is     |log P_long| / |log P_short| < lp(l + k) / lp(l)
#
# With α = 0.6, l = 9 and k = 1 the right side is (15 / 14)^0.6 = 1.042: the tenth token may make |log P| 4.2 % larger,
# no more. Suppose that every token costs the same, log p = -c. Then score = -c l ((5 + l) / 6)^-α. By the product rule,
# and because the derivative of ((5 + l) / 6)^-α is -α / (5 + l) times itself,
#
#     d(score)/dl = -c ((5 + l) / 6)^-α (1 - α l / (5 + l))
#
# For α ≤ 1 the last bracket is positive, as α l < 5 + l: the score still falls with length, only more slowly. For α > 1
# the bracket is negative once l > 5 / (α - 1), and from there on longer is better without end. So α = 0.6 does not
# reward length. It weakens the punishment.

# %%
lengths = np.arange(1, 21)
for alpha in (0.0, 0.6, 1.0, 2.0):
    score = -lengths * ((5 + lengths) / 6) ** -alpha  # c = 1
    print(f"alpha {alpha}: score of 1, 5, 10, 20 tokens " + " ".join(f"{score[i - 1]:7.3f}" for i in (1, 5, 10, 20)))
    if alpha <= 1:
        lesson.check(f"the score falls with length, alpha = {alpha}", np.diff(score).max(), 0.0)
lesson.check("from 5 tokens on it rises with alpha = 2", np.diff(score[4:]).min(), at_least=0.0)
lesson.quote("(15 / 14)^0.6 = 1.042", 15, 14, 0.6, decoding.length_penalty(10) / decoding.length_penalty(9))

# %% [markdown]
# ### Part 3: why keys and values can be kept
#
# Let x⁰ (T, C) be the embedded tokens, and xⁿ what decoder layer n makes of them. Row t is token t. Claim: for a given
# source, row t of xⁿ depends on rows 1 ... t of x⁰ alone. For n = 0 this is plain. If it holds for xⁿ⁻¹, then in layer
# n (here with one head, of D features)
#
#     q_t = xⁿ⁻¹_t W_q     k_j = xⁿ⁻¹_j W_k     v_j = xⁿ⁻¹_j W_v     o_t = Σ_(j ≤ t) p_tj v_j
#
# The causal mask (lesson 07) leaves only j ≤ t: the weights p_tj are the softmax of q_t · k_j / √D over these j. So o_t
# depends on rows 1 ... t. All else in the layer (the matrices, Norm, FFN, the residual, and cross-attention, where
# row t asks the memory) works on each row alone. So it holds for xⁿ.
#
# Hence a new token T + 1 changes NO old row, in no layer. Old rows are needed for one thing: their k_j and v_j, which
# the new row's query meets. So keep, in each layer, the keys and values (kv), and compute one row per token. The keys
# and values of the memory never change at all: compute them once per source. In an encoder, where everybody sees
# everybody, nothing of this holds.
#
# The work, in multiplications of a decoder layer (S source tokens, C features, F in the FFN), for the row of token t:
#
#     self-attention   4 C² for q, k, v and the output, 2 t C for scores and sum
#     cross-attention  2 C² for q and the output,       2 S C for scores and sum
#     FFN              2 C F
#
# With kv token t costs one such row. Reading all again costs t of them (each of the t rows meets all t keys before the
# mask, so 2 t² C for scores and sums), and 2 S C² for the memory's keys and values, again for every token.


# %%
def work(tokens, S, C, F, keep):  # multiplications of one decoder layer for a whole answer
    row = 6 * C * C + 2 * C * F + 2 * S * C
    if keep:
        return 2 * S * C * C + sum(row + 2 * t * C for t in range(1, tokens + 1))
    return sum(2 * S * C * C + t * row + 2 * t * t * C for t in range(1, tokens + 1))


for tokens in (16, 64, 256):
    ratio = work(tokens, 16, 512, 2048, False) / work(tokens, 16, 512, 2048, True)
    print(f"{tokens:>4} tokens, base model's sizes, 16 source tokens: {ratio:6.1f} times the work without kv")
    if tokens == 64:
        lesson.quote("64 tokens cost 34 times the work", 64, ratio)

# %% [markdown]
# So with the base model's sizes and a source of 16 tokens, 64 tokens cost 34 times the work without kv: about half the
# number of tokens, as for each one 1 ... 64 tokens are read, 32.5 in the mean. The memory's keys and values, every time
# again, make the rest. That answers guess 3.
#
# ## From scratch
#
# Beam search over any function `log_p(ids)`, which takes the tokens so far to the log probabilities of the next one.
# Then the search of everything, to compare.


# %%
def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def beam_search(log_p, room, beam=4, alpha=0.6):
    alive, finished = [(0.0, ())], []
    for length in range(1, room + 1):
        extended = [(total + x, (*ids, token)) for total, ids in alive for token, x in enumerate(log_p(ids))]
        extended.sort(reverse=True)  # by log P
        penalty = ((5 + length) / 6) ** alpha
        finished += [(total / penalty, ids) for total, ids in extended[:beam] if ids[-1] == EOS]
        alive = [(total, ids) for total, ids in extended if ids[-1] != EOS][:beam]
    return max(finished + [(total / penalty, ids) for total, ids in alive])


def best_of_all(log_p, room, V, alpha=0.6):
    answers = []
    for length in range(1, room + 1):
        for ids in itertools.product(range(V), repeat=length):
            if EOS not in ids[:-1] and (ids[-1] == EOS or length == room):
                total = sum(log_p(ids[:t])[ids[t]] for t in range(length))
                answers.append((total / ((5 + length) / 6) ** alpha, ids))
    return max(answers)


# %% [markdown]
# And a causal decoder with kv: two layers of attention with a residual, one sequence, one head; `rows` reads
# everything, `one_more` one token with what was kept.


# %%
def attention_row(q, K, V):  # q (C,), K and V (t, C)
    return np.exp(log_softmax(K @ q / len(q) ** 0.5)) @ V


def rows(x, layers):  # x (T, C), all tokens at once
    for Wq, Wk, Wv, W1, W2 in layers:
        q, k, v = x @ Wq, x @ Wk, x @ Wv
        x = x + np.stack([attention_row(q[t], k[: t + 1], v[: t + 1]) for t in range(len(x))])
        x = x + np.maximum(x @ W1, 0) @ W2
    return x


def one_more(x, layers, kv):  # x (C,), the new token; kv: two lists for each layer
    for (Wq, Wk, Wv, W1, W2), (keys, values) in zip(layers, kv, strict=True):
        keys.append(x @ Wk)
        values.append(x @ Wv)
        x = x + attention_row(x @ Wq, np.stack(keys), np.stack(values))
        x = x + np.maximum(x @ W1, 0) @ W2
    return x


# %% [markdown]
# ## Checked
#
# A random "model" for the search: 4 tokens, and random logits for each beginning (drawn from a generator that is seeded
# with it). With room for 4 tokens and a beam of 64 nothing that could win is dropped. The library's beam search takes a
# state, which reads the last tokens and gives logits; `Table` is one.

# %%
VOCABULARY, ROOM = 4, 4


def random_model(seed):
    return lambda ids: log_softmax(2 * np.random.default_rng([seed, len(ids), *ids]).standard_normal(VOCABULARY))


class Table:
    def __init__(self, log_p):
        self.log_p, self.said = log_p, [()]

    def extend(self, ids):  # the next token of each row; the first is BOS
        self.said = [(*said, *row) for said, row in zip(self.said, ids.tolist(), strict=True)]
        return np.stack([self.log_p(said[1:]) for said in self.said])

    def select(self, chosen):
        self.said = [self.said[i] for i in chosen]


wide, library, greedy_missed, narrow_lost, models = 0.0, 0.0, 0, 0, lesson.pick(full=60, fast=12)
for seed in range(models):
    log_p = random_model(seed)
    for alpha in (0.0, 0.6):
        best, ids = best_of_all(log_p, ROOM, VOCABULARY, alpha)
        score, found = beam_search(log_p, ROOM, 64, alpha)
        wide = max(wide, abs(score - best), float(found != ids))
        for beam in (1, 2, 4):
            score, found = beam_search(log_p, ROOM, beam, alpha)
            theirs = decoding.beam_search(Table(log_p), 1, ROOM, BOS, beam, alpha)[0][0]
            library = max(library, abs(score - theirs.score), float(found != theirs.ids))
            if alpha == 0.0:
                greedy_missed += beam == 1 and found != ids
                narrow_lost += beam == 4 and found != ids
lesson.check("a wide beam against the search of everything", wide, 1e-12)
lesson.check("beams of 1, 2, 4 against the library's", library, 1e-12)
print(f"  of {models} random models greedy misses the best answer in {greedy_missed}, a beam of 4 in {narrow_lost}")

rng = np.random.default_rng(16)
T, C, F = 7, 6, 9
layers = [[rng.standard_normal(s) for s in ((C, C), (C, C), (C, C), (C, F), (F, C))] for _ in range(2)]
x = rng.standard_normal((T, C))
kv = [([], []) for _ in layers]
kept = np.stack([one_more(row, layers, kv) for row in x])
lesson.check("with kept keys and values against all at once", error(kept, rows(x, layers)), 1e-12)
lesson.check("old rows after a new token", error(rows(x, layers)[:-1], rows(x[:-1], layers)), 1e-12)

# %% [markdown]
# Three models of the library's, to decode with: they learn to copy, reverse and sort up to 12 letters (lesson 14), for
# 400 short steps only, so that they still make mistakes. Their weights are kept every 20 steps. (Sorting is trained in
# float64, because we shall look at that model closely: in float32 another processor's rounding grows, over 400 steps,
# into other weights and other answers.)

# %%
STEPS = lesson.pick(full=400, fast=60)
TESTS = lesson.pick(full=1000, fast=50)
tasks, snapshots, tests = {}, {}, {}
dtypes = {"copy": np.float32, "reverse": np.float32, "sort": np.float64}
for name, dtype in dtypes.items():
    task = tasks[name] = get_task(name)
    model = Transformer(named_config("tiny", len(task.vocabulary), dropout=0.0), dtype=dtype)
    kept_weights = snapshots[name] = {}

    def keep(step, history, model=model, kept_weights=kept_weights):
        kept_weights[step] = model.state_dict()

    settings = TrainingSettings(steps=STEPS, batch_size=32, eval_interval=20)
    schedule = partial(noam, d_model=model.config.d_model, warmup=100, factor=0.3)
    train(model, task, schedule=schedule, loss_fn=CrossEntropyLoss(0.1), settings=settings, evaluate=keep)
    tests[name] = task.held_out_batch(np.random.default_rng(1), TESTS)

source, target = tests["sort"].source[:8], tests["sort"].target_in[:8]
at_once, _ = model.forward(source, target)
state = model.decoding_state(source, target.shape[1])
one_by_one = np.stack([state.extend(target[:, t : t + 1]) for t in range(target.shape[1])], axis=1)
lesson.check("the library's kv against reading all, a trained model", error(one_by_one, at_once), 1e-12)

# %% [markdown]
# ## Averaging the last weights
#
# Section 6.1: the base models are the mean of the last 5 sets of weights, saved every 10 minutes. Ours are 20 steps
# apart. One model comes out, so decoding costs the same. Exact match on 1,000 held-out sources, decoded greedily:
#
#     copy       the last 84 %     the mean of five 98 %
#     reverse    the last 65 %     the mean of five 96 %
#     sort       the last 63 %     the mean of five 61 %
#
# That answers guess 4: better, or at least hardly worse. While the learning rate is large the weights swing around a
# place that they do not reach, and the mean of five points of the swing is nearer to it. Sorting is another matter: it
# is still being learnt, so the older of the five are behind, and pull the mean back as much as averaging gains. (One
# training each is no statistic: another seed, or for copy and reverse another processor's rounding, moves these numbers
# by ten points and more.)


# %%
def exact_match(name, state):
    model = Transformer(named_config("tiny", len(tasks[name].vocabulary), dropout=0.0), seed=None, dtype=dtypes[name])
    model.load_state_dict(state)
    return 100 * decode_and_score(model, tests[name])[1]


def mean_of(states):
    return {key: np.mean([state[key] for state in states], axis=0) for key in states[0]}


averaged = {}
for name, kept_weights in snapshots.items():
    five = [kept_weights[step] for step in sorted(kept_weights)[-5:]]
    averaged[name] = exact_match(name, five[-1]), exact_match(name, mean_of(five))
    print(f"  {name:<8} the last {averaged[name][0]:5.1f} %   the mean of five {averaged[name][1]:5.1f} %")
lesson.quote("copy       the last 84 %     the mean of five 98 %", *averaged["copy"], within=0.35, full_only=True)
lesson.quote("reverse    the last 65 %     the mean of five 96 %", *averaged["reverse"], within=0.35, full_only=True)
lesson.quote("sort       the last 63 %     the mean of five 61 %", *averaged["sort"], within=0.1, full_only=True)
if not lesson.fast:
    gains = [mean - last for last, mean in averaged.values()]
    lesson.check("points gained by averaging, mean of the three tasks", np.mean(gains), at_least=3.0)

# %% [markdown]
# ## Wider beams, shorter answers
#
# Now the sorting model as it was after half of these steps, when it had much to be unsure of. 200 sources, room for 16
# tokens; the right answers have 9.91 tokens in the mean, end token included. Without penalty:
#
# * the wider the beam, the more probable the answers: log P is -3.68 in the mean with a beam of 1 and -3.28 with 16;
# * and the shorter: 11.03 tokens with a beam of 1, 10.36 with 4, 9.81 with 16. Unsure of the next letter, the model
#   gives a little to the end token, and whoever ends pays for no more letters;
# * and, beyond a beam of 4, not better: 10.5 % are right with a beam of 1, 14.5 % with 4 and 14.5 % with 16.
#
# With α = 0.6 a beam of 16 keeps to 10.57 tokens, and 14.0 % are right: the penalty holds the length, and brings no
# right answers here. With α = 5 (part 2: longer is better from l = 1.25 on) the mean is 13.66 tokens, and 3.0 % are
# right. That answers guess 2: shorter answers, and hardly more of them right. (That 9.81 is near the right 9.91 is an
# accident of this model, whose greedy answers are too long.)

# %%
half = snapshots["sort"][STEPS // 2 // 20 * 20]
model = Transformer(named_config("tiny", len(tasks["sort"].vocabulary), dropout=0.0), seed=None, dtype=np.float64)
model.load_state_dict(half)
count, beams = lesson.pick(full=(200, (1, 2, 4, 8, 16)), fast=(10, (1, 4)))
batch = tests["sort"]
right = [tuple(row[row != PAD].tolist()) for row in batch.target_out[:count]]
searched = {}  # (alpha, beam): the best answers, mean log P, mean length, per cent right
for alpha, beam in [*itertools.product((0.0, 0.6), beams), (5.0, 4)]:
    state = model.decoding_state(batch.source[:count], 16)
    answers = [best[0] for best in decoding.beam_search(state, count, 16, BOS, beam, alpha)]
    log_p, length = (np.mean([x(answer) for answer in answers]) for x in (lambda a: a.log_prob, lambda a: len(a.ids)))
    match = 100 * np.mean([answer.ids == ids for answer, ids in zip(answers, right, strict=True)])
    searched[alpha, beam] = answers, log_p, length, match
    print(f"  alpha {alpha}, beam {beam:>2}: mean log P {log_p:7.3f}, mean length {length:6.2f}, right {match:5.1f} %")
true_length = np.mean([len(ids) for ids in right])
print(f"  the right answers: mean length {true_length:.2f}")
if not lesson.fast:
    a, b, c, p, long = (searched[key] for key in ((0.0, 1), (0.0, 4), (0.0, 16), (0.6, 16), (5.0, 4)))
    lesson.check("tokens that a beam of 16 cuts off, without penalty", a[2] - c[2], at_least=0.3)
    lesson.check("tokens that the penalty brings back", p[2] - c[2], at_least=0.1)
    lesson.quote("have 9.91 tokens in the mean", true_length)
    lesson.quote("log P is -3.68 in the mean with a beam of 1 and -3.28 with 16", a[1], 1, c[1], 16, within=0.02)
    lesson.quote("11.03 tokens with a beam of 1, 10.36 with 4, 9.81 with 16", a[2], 1, b[2], 4, c[2], 16, within=0.02)
    shares = a[3], 1, b[3], 4, c[3], 16
    lesson.quote("10.5 % are right with a beam of 1, 14.5 % with 4 and 14.5 % with 16", *shares, within=0.1)
    lesson.quote("a beam of 16 keeps to 10.57 tokens, and 14.0 % are right", 16, p[2], p[3], within=0.1)
    lesson.quote("the mean is 13.66 tokens, and 3.0 % are right", long[2], long[3], within=0.2)

# %% [markdown]
# ## Steps that must wait for each other
#
# "An RNN takes 100 steps where a Transformer takes 1", one reads of table 1's column "sequential operations". Count
# them. A recurrent network's state h_t needs h_t₋₁, so 100 tokens are 100 steps, one after the other. In training the
# Transformer's decoder knows all 100 tokens before (they are the answer, shifted), and the causal mask lets all rows be
# computed at once: one pass. But in decoding token t + 1 cannot be read before it has been chosen, and it is chosen
# from row t. So the count goes up to 100 for both.

# %%
steps = {}
TOKENS = 100
U, W = rng.standard_normal((2, C, C))
for when in ("training", "decoding"):
    h, steps["RNN", when] = np.zeros(C), 0
    for x_t in rng.standard_normal((TOKENS, C)):  # in decoding x_t is what the step before has chosen
        h = np.tanh(h @ U + x_t @ W)
        steps["RNN", when] += 1
calls = []
ids = rng.integers(3, 20, (1, TOKENS))
bottom = model.decoder.layers[0]
for method in ("forward", "extend"):  # count the passes through the decoder's first layer
    original = getattr(bottom, method)
    setattr(bottom, method, lambda *x, original=original, **y: (calls.append(1), original(*x, **y))[1])
model.forward(ids, ids)
steps["Transformer", "training"] = len(calls)
calls.clear()
decoding.generate(model.decoding_state(ids, TOKENS), np.array([[BOS]]), TOKENS, eos=None)
steps["Transformer", "decoding"] = len(calls)
found = ", ".join(
    f"{who} {steps[who, 'training']} in training and {steps[who, 'decoding']} in decoding"
    for who in ("RNN", "Transformer")
)
lesson.check("steps of the Transformer in training", steps["Transformer", "training"], 1)
lesson.check("steps of the Transformer in decoding", steps["Transformer", "decoding"], at_least=TOKENS)
lesson.claim("for 100 tokens an RNN takes 100 steps and a Transformer 1", "half right", f"one after the other: {found}")

# %% [markdown]
# ## Sampling, in short
#
# Where many answers are good, one draws. From p one may first make another distribution:
#
#     temperature τ     p_i^(1/τ), divided by their sum            below 1 sharper, towards 0 greedy, above 1 flatter
#     top-k             the k likeliest, divided by their sum      (Fan et al. 2018)
#     top-p             the fewest likeliest whose sum is at least p, divided by their sum      (Holtzman et al. 2020)
#
# For p = 0.5, 0.25, 0.15, 0.07, 0.03: τ = 0.5 squares, and gives 0.734, 0.183, 0.066, 0.014, 0.003. Top-2 leaves 0.667
# and 0.333. Top-p with 0.8 needs three tokens (0.5 + 0.25 is too little): 0.556, 0.278, 0.167.


# %%
def sharpened(p, temperature=1.0, top_k=None, top_p=1.0):  # p sorted, the likeliest first
    p = p ** (1 / temperature) / (p ** (1 / temperature)).sum()
    p = np.where(np.arange(len(p)) < (top_k or len(p)), p, 0)
    p = np.where(np.cumsum(p) - p < top_p * p.sum(), p, 0)  # keep a token if those before it are still too little
    return p / p.sum()


p = np.array([0.5, 0.25, 0.15, 0.07, 0.03])
for options in ({"temperature": 0.5}, {"top_k": 2}, {"top_p": 0.8}, {"temperature": 2.0, "top_k": 4, "top_p": 0.7}):
    theirs = decoding.Sampling(rng, **options).probabilities(np.log(p)[None])[0]
    lesson.check(f"sampling against the library's, {options}", error(sharpened(p, **options), theirs), 1e-12)
lesson.quote("0.734, 0.183, 0.066, 0.014, 0.003", *sharpened(p, temperature=0.5))
lesson.quote("leaves 0.667 and 0.333", *sharpened(p, top_k=2)[:2])
lesson.quote("0.556, 0.278, 0.167", *sharpened(p, top_p=0.8)[:3])

# %% [markdown]
# ## The picture
#
# One more measurement: the time for one more token, with kv and by reading all again, in a model of 2 layers with
# d_model = 256, one source at a time.

# %%
LONGEST = lesson.pick(full=256, fast=64)
timed = Transformer(TransformerConfig(30, d_model=256, num_heads=4, d_ff=1024, num_layers=2, max_len=300), seed=0)
source, ids = rng.integers(3, 30, (1, 16)), rng.integers(3, 30, (1, LONGEST))
memory, _ = timed.encode(source)
places = 2 ** np.arange(int(np.log2(LONGEST)) + 1)  # the tokens so far: 1, 2, 4, ...


def seconds(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


keep, again = [], []
for _ in range(6):  # the fastest of six: whoever else computes on this machine only slows
    state = timed.decoding_state(source, LONGEST)
    keep.append([seconds(lambda t=t, state=state: state.extend(ids[:, t : t + 1])) for t in range(LONGEST)])
for _ in range(6):
    again.append([seconds(lambda t=t: timed.decode(ids[:, :t], memory, source)) for t in places])
keep, again = 1000 * np.min(keep, axis=0)[places - 1], 1000 * np.min(again, axis=0)
print("  tokens so far    " + " ".join(f"{t:>7}" for t in places))
print("  with kv, ms      " + " ".join(f"{x:7.2f}" for x in keep))
print("  all again, ms    " + " ".join(f"{x:7.2f}" for x in again))
lesson.check(f"time without kv over time with kv at token {LONGEST}", again[-1] / keep[-1], at_least=lesson.pick(4, 1))

figure, (left, right_half) = plt.subplots(1, 2, figsize=(6.8, 3.3))
for alpha, colour, marker in ((0.0, ORANGE, "o"), (0.6, BLUE, "s")):
    lengths = [searched[alpha, beam][2] for beam in beams]
    left.plot(beams, lengths, color=colour, marker=marker, label=f"α = {alpha}")
left.axhline(true_length, color=GREY, ls="--", lw=1, label="right answers")
left.set_xscale("log", base=2)
left.set_xticks(beams, [str(beam) for beam in beams])
left.set_xlabel("beam (beginnings kept)")
left.set_ylabel("mean length of the best answer (tokens)")
left.set_title("Length of the best answer")
left.legend()
right_half.plot(places, again, color=ORANGE, marker="o", label="all tokens computed again")
right_half.plot(places, keep, color=GREEN, marker="s", label="with a KV cache")
right_half.set_xscale("log", base=2)
right_half.set_yscale("log")
right_half.set_ylim(top=max(again) * (max(again) / min(keep)) ** 0.5)  # room for the legend, whatever the times are
right_half.set_xticks(places[::2], [str(t) for t in places[::2]])
right_half.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
right_half.yaxis.set_major_formatter("{x:g}")
right_half.yaxis.set_minor_formatter(NullFormatter())
right_half.set_xlabel("tokens so far")
right_half.set_ylabel("time for one more token (ms)")
right_half.set_title("Time for one more token")
right_half.legend(loc="upper left")
lesson.save(figure)

# %% [markdown]
# You should see on the left an orange line that falls with every wider beam and ends below the grey one, and a blue
# line that soon stops falling. (That both begin above the right length is this model's mistake.) If blue rises, look at
# the sign: log P is negative and is DIVIDED by the penalty. On the right the green line is nearly level, and the orange
# one, which begins nearly level (a small matrix product costs mostly the call), comes to double with each doubling of
# the tokens. (The first tokens are slower: nothing is in the processor's cache yet.) If green rises as steeply, the
# keys and values are kept but the old rows are computed all the same.
#
# ## The surprise
#
# A beam search seems made for a model that is often wrong. Ask of each wrong answer what went wrong: was the right
# answer more probable, and the search did not find it (a search error)? Or does the model itself give its wrong answer
# more than the right one (a model error)? Of the 179 wrong answers of the beam of 1 (without penalty) only 24 are
# search errors; in the other 155 the model prefers what is wrong. A beam of 16 has no search errors left. But of these
# 24 answers it makes only 12 right: for the other 12 it finds a third answer that is more probable still, and wrong.
# And 4 answers that were right it loses in the same way. More search makes a model say what it believes. It does not
# make it believe the right thing.

# %%
logits, _ = model.forward(batch.source[:count], batch.target_in[:count])
log_p = np.take_along_axis(log_softmax(logits), batch.target_out[:count, :, None], axis=-1)[..., 0]
of_right = (log_p * (batch.target_out[:count] != PAD)).sum(axis=1)  # log P of each right answer
missed = {}  # beam: the wrong answers, and those of them that the search could have avoided
for beam in (beams[0], beams[-1]):
    wrong = [i for i in range(count) if searched[0.0, beam][0][i].ids != right[i]]
    missed[beam] = wrong, [i for i in wrong if of_right[i] > searched[0.0, beam][0][i].log_prob + 1e-9]
    print(f"  beam {beam:>2}: {len(wrong)} wrong answers, {len(missed[beam][1])} of them errors of the search")
if not lesson.fast:
    (wrong, of_search), mended = missed[1], sum(searched[0.0, 16][0][i].ids == right[i] for i in missed[1][1])
    lesson.check(
        "errors of the search, share of the errors of a beam of 16", len(missed[16][1]) / len(missed[16][0]), 0.03
    )
    lesson.quote("Of the 179 wrong answers of the beam of 1", len(wrong), 1, within=0.03)
    lesson.quote("only 24 are", len(of_search), within=0.1)
    lesson.quote("in the other 155 the", len(wrong) - len(of_search), within=0.03)
    lesson.quote("only 12 right: for the other 12 it finds", mended, len(of_search) - mended, within=0.1)
    lost = [i for i in missed[16][0] if i not in wrong]
    lesson.quote("And 4 answers that were right it loses", len(lost), within=0.3)
wide = searched[0.0, beams[-1]]
found = f"beam {beams[-1]} for 1, no penalty: log P {wide[1]:.2f} for {searched[0.0, 1][1]:.2f}, right {wide[3]:.1f} %"
found += f" for {searched[0.0, 1][3]:.1f} %, length {wide[2]:.2f} for {searched[0.0, 1][2]:.2f}"
lesson.claim("a wider beam gives better answers", "half right", found)

# %% [markdown]
# ## Exercise
#
# 1. Early stopping (20 minutes). `beam_search` above always fills the room. Stop as soon as no living beginning can
#    beat the best finished answer any more. (What is the largest score that a beginning with log probability L may
#    still reach, if log p ≤ 0 and there is room for `room` tokens? For α = 0, and for α > 0?) It passes if all checks
#    against the library and the search of everything still pass, and `log_p` is called less often; count the calls.
# 2. Heads (15 minutes). Give `rows` and `one_more` H heads. It passes if both agree to 10⁻¹².
# 3. `of_right` above holds log P of each right answer. Find a source whose right answer is more probable than what a
#    beam of 2 finds, and draw the tree of beginnings by hand, down to where the right one was dropped (10 minutes).
#
# ## Questions
#
# 1. In the language of the small numbers, what does a beam of 2 with α = 0.6 answer: still "b."?
# 2. The base model keeps keys and values in float32, for a source and a target of 100 tokens each. How many bytes is
#    that per sentence, and how many with a beam of 4?
# 3. Why must `state.select` reorder the kept keys and values after each step of a beam search?
# 4. Can one keep keys and values in an encoder, and read a source token by token?
# 5. May one average the weights of two models that were trained from different random weights?

# %% [markdown]
# ## In the wild
#
# * The penalty has many forms. Hugging Face's `generate` divides by l^`length_penalty`, with 1.0 as the default, not by
#   ((5 + l) / 6)^0.6; a value above 0 there helps longer answers, as α does here. Scores of two libraries are not
#   comparable, and an α must not be carried over.
# * Which answers count as finished differs, too: some keep 2 · beam candidates so that end tokens cannot use up the
#   beam (as the library does), some stop at the first `beam` finished ones, which need not be the best.
# * The paper allows answers of the source's length + 50 tokens, and stops early where possible (section 6.1).
# * Some libraries make keys and values longer with `concatenate`, token by token, which copies all of them each time;
#   ours takes all the room at the start.
# * A decoder that sees padding in a batch of unequal beginnings gives other answers in a batch than alone. It is one of
#   the commonest bugs of decoding code; the mask and the positions have to know of the padding.

# %%
rest = 2 * 2 * 6 * 100 * 512 * 4  # keys and values; self and cross; layers; tokens; features; bytes
lesson.quote("4,915,200 bytes", rest)
lesson.quote("beam of 4 it is 19.7 million", 4, 4 * rest / 1e6)
beam_2 = {x: np.log(q) / decoding.length_penalty(len(x)) for x, q in sentences.items()}
lesson.quote('"b." has -0.931, "aa" -1.467, and "." -2.303', *(beam_2[x] for x in ("b.", "aa", ".")))
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. Yes. lp(1) = 1 and lp(2) = (7 / 6)^0.6 = 1.097. Divided by it "b." has -0.931, "aa" -1.467, and "." -2.303. All
#    answers of one length keep their order under any α.
# 2. 2 (keys, values) · 2 (of the target, of the memory) · 6 layers · 100 tokens · 512 features · 4 bytes = 4,915,200
#    bytes. With a beam of 4 it is 19.7 million, if each of the beam's rows has its own copy of the memory's.
# 3. Each row of the batch is one beginning, and its keys and values are those of its own tokens. After a step the
#    living ones may all come from one row: then that row's are copied to all others, and the dropped ones' forgotten.
# 4. No. Row t of an encoder layer sees all rows, also those that come later, so a new token changes every old row and
#    with it all keys and values from layer 2 on. With a causal mask in the encoder one could: it is another model.
# 5. Not to any use. Hidden units can be permuted without changing the function, and each training ends with its own
#    order; the mean mixes units that have nothing to do with each other. Sets from one training share their order.
