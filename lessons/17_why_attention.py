# %% [markdown]
# # Lesson 17: Why attention?
#
# [![The Transformer, with all three attentions lit](../plots/17_why_attention_map.png)](../plots/00_reverse_whole.png)
#
# **An LSTM can carry a gradient over a thousand tokens. Why did attention replace it anyway?**
#
# 12 min, with a pencil 35, going deeper 6 · runs in 10 s (fast: 10 s) · needs 01, 02, 04, 05, 06, 11 · difficulty 3 of
# 5 · paper: section 4, and Bahdanau et al. 2014, section 3
#
# ## One vector for a whole sentence
#
# Lesson 05 began with the translators of 2014. One half read the sentence, word by word, into a single vector. The
# other half wrote the translation from it, and long sentences fell apart.
#
# Suppose that our model worked this way: it reads «s», «t», «o», «p», letter by letter, and hands over six numbers. Its
# answer must end in «s», the letter it read first. If it gets that one wrong, the complaint has to go back through the
# steps of «p», «o» and «t» before the «s» hears about it, and on a page of 1,024 tokens through 1,023 steps.
#
# A colleague draws the usual conclusion: each step loses part of the gradient, so after a thousand steps nothing is
# left, and attention won because it has no steps. Let's measure.

# %% Imports
from collections import namedtuple
from functools import partial

from support.lab import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PINK,
    SKY,
    SOURCE,
    VOCABULARY,
    begin,
    error,
    plt,
    running_example,
    show,
)
from support.pictures import BLACK, canvas, mix

import numpy as np

from minitransformer import functional
from minitransformer.gradcheck import complex_step

lesson = begin("17_why_attention")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (04) A matrix that is used in three places gets the sum of three gradients. What if it is used at 1,024 steps?
# 2. (06) A row gives all its weight to one key. Why does the value of this key still learn, when no score of the row
#    does?
# 3. (11) What does the gradient meet on the path around a sub-layer, and does this depend on the sub-layer?
#
# (The answers are at the end.)

# %% [markdown]
# ## A memory with three gates
#
# The network of that time was the LSTM (long short-term memory). At each of its T steps it reads one token x_t, and
# gets two vectors of C numbers from the step before: what that step said, y (in the code `said`), and what it
# remembered, its cell. A linear layer makes four blocks of C sums from x_t and y_(t−1). Three go through a sigmoid and
# become gates, numbers between 0 and 1, and the fourth goes through a tanh, and is what this token has to tell:
#
#     sums_t = x_t W_x + y_(t−1) W_y + b                          four blocks
#     read_t, write_t, forget_t = sigmoid(the first three)        output, input, forget gate: "o", "i", "f"
#     new_t = tanh(the last)                                      the candidate, "g"
#     cell_t = forget_t ∘ cell_(t−1) + write_t ∘ new_t            the cell state, "c"
#     y_t = read_t ∘ tanh(cell_t)                                 the hidden state, "h"
#
# (At 1, the forget gate forgets nothing.)
#
# > **1997.** Sepp Hochreiter and Jürgen Schmidhuber publish the LSTM. Their cell has no forget gate, so its factor from
# > one step to the next is exactly 1: the constant error carousel. A gate that can forget is added in 2000, by Gers,
# > Schmidhuber and Cummins.


# %%
Step = namedtuple("Step", "read write forget new cell cell_before")


def lstm(x, W_x, W_y, b):
    """x (T, ..., C) -> y (T, ..., width), and the steps."""
    said = cell = np.zeros((*x.shape[1:-1], len(W_y)))
    y, steps = [], []
    for token in x:
        *gates, new = np.split(token @ W_x + said @ W_y + b, 4, axis=-1)
        read, write, forget = (1 / (1 + np.exp(-gate)) for gate in gates)
        cell_before, new = cell, np.tanh(new)
        cell = forget * cell_before + write * new
        said = read * np.tanh(cell)
        steps.append(Step(read, write, forget, new, cell, cell_before))
        y.append(said)
    return np.array(y), steps


def weights(width, rng):
    """Random W_x and W_y, and the bias 0."""
    bound = np.sqrt(3 / width)
    return *rng.uniform(-bound, bound, (2, width, 4 * width)), np.zeros(4 * width)


E, PE = example["E"], example["PE"][:4]
e = E[[VOCABULARY.index(letter) for letter in SOURCE]]
x = np.sqrt(6) * e + PE  # what the encoder gets, lesson 04
rng = np.random.default_rng(17)
W_x, W_y, b = weights(6, rng)
y, steps = lstm(x, W_x, W_y, b)
show("forget gates (T, C)", [step.forget for step in steps], SOURCE, digits=2)
show("cells (T, C)", [step.cell for step in steps], SOURCE, digits=2)

# %% [markdown]
# ## Two ways out of a cell
#
# For the way back, ask which numbers are computed from cell_t. There are two: what its own step says, y_t, and the next
# cell. Both derivatives are factors:
#
#     ∂y_t/∂cell_t = read_t (1 − tanh²(cell_t))                    tanh' = 1 − tanh²
#     ∂cell_(t+1)/∂cell_t = forget_(t+1)                           cell_t stands there once, behind this gate
#
# **Your line.** Take the step of «o». Let dy_o be everything that comes back to its y, and dcell_p what comes back to
# the next cell, the one for «p». What is the gradient of the cell of «o»?

# %%
at_o, at_p = steps[2], steps[3]
dy_o, dcell_p = rng.standard_normal((2, 6))
dcell_o = ...  # your line: from dy_o, dcell_p, and gates such as at_o.read; np.tanh helps
lesson.judge("dcell_o", dcell_o)

# %% [markdown]
# The chain rule multiplies what comes back to each by its factor, and adds the two:
#
#     dcell_t = dcell_(t+1) ∘ forget_(t+1) + dy_t ∘ read_t ∘ (1 − tanh²(cell_t))
#
# A gate gets the gradient of its product, times the other factor, and passes it on through its own sigmoid, whose
# derivative is gate · (1 − gate). For the forget gate this gives
#
#     dforget_t = dcell_t ∘ cell_(t−1)                              of forget_t ∘ cell_(t−1)
#     dsum_forget = dforget_t ∘ forget_t ∘ (1 − forget_t)           through the sigmoid
#
# Side by side, the four blocks are dsums_t, and the rest is a linear layer (lesson 02): dx_t = dsums_t W_xᵀ. What a
# step said goes into the sums of the next step, too, so dsums_(t+1) W_yᵀ is added to dy_t before step t begins.


# %% Ours
def lstm_backward(dy, steps, W_y):
    """dy (T, ..., width) -> dsums (T, ..., 4 width), from the last step to the first."""
    dsums, back, dcell = [], 0.0, 0.0
    for dy_t, step in zip(dy[::-1], steps[::-1], strict=True):
        dsaid = dy_t + back
        dcell = dcell + dsaid * step.read * (1 - np.tanh(step.cell) ** 2)
        gates = step.read, step.write, step.forget
        dgates = dsaid * np.tanh(step.cell), dcell * step.new, dcell * step.cell_before
        dsum = [dgate * gate * (1 - gate) for dgate, gate in zip(dgates, gates, strict=True)]
        dsum_new = dcell * step.write * (1 - step.new**2)
        dsums.append(np.concatenate([*dsum, dsum_new], axis=-1))
        back, dcell = dsums[-1] @ W_y.T, dcell * step.forget  # both for the step before
    return np.array(dsums[::-1])


dy = rng.standard_normal(y.shape)
dsums = lstm_backward(dy, steps, W_y)
dx = dsums @ W_x.T
true = complex_step(lambda x: (dy * lstm(x, W_x, W_y, b)[0]).sum(), x)
lesson.check("dx of the LSTM, against the complex step", error(dx, true), 1e-14)
_, cache = functional.lstm(x[None], W_x, W_y, b)  # the library's batch comes first
library_dx, _, library_dU, library_db, _ = functional.lstm_backward(dy[None], cache)
said_before = np.concatenate([np.zeros((1, 6)), y[:-1]])
parts = (dx, library_dx[0]), (said_before.T @ dsums, library_dU), (dsums.sum(axis=0), library_db)
lesson.check("dx, dW_y and db, against the library's", max(error(*part) for part in parts), 1e-13)

# %% [markdown]
# ## What is left after T steps
#
# On the path from cell to cell, the gradient meets one factor at each step:
#
#     ∂cell_T/∂cell_1 = ∂cell_T/∂cell_(T−1) · ... · ∂cell_2/∂cell_1   on this path alone
#                     = forget_T · forget_(T−1) · ... · forget_2
#
# The bias of a fresh LSTM is 0, so its gates scatter around sigmoid(0) = 1/2, as those above do. If each of them were
# 1/2, the product would be 2^−(T−1). After 24 steps that is 6.0e-8, about the rounding error of float32. After 1,023
# steps it is 1.1e-308, and so far the colleague is right.
#
# But we choose the bias that a gate starts with. Let the forget gate start at ln T, to reach back over the whole text:
#
#     sigmoid(ln T) = 1 / (1 + exp(−ln T))
#                   = 1 / (1 + 1/T)                                exp(−ln T) = 1/T
#                   = T / (T + 1)
#
# **Your number.** With T = 1,024 each gate is 1024/1025. How much is left of a gradient after 1,023 of them?

# %%
guess = ...  # a share between 0 and 1
T = 1024
kept = (T / (T + 1)) ** (T - 1)
lesson.compare("left after 1,023 gates", guess, kept)

# %% [markdown]
# It is more than a third, because the product tends to a constant:
#
#     (T/(T+1))^(T−1) = (1 + 1/T)^−(T−1) → 1/e = 0.368             (1 + 1/T)^T → e
#
# But a cell that forgets nothing, and lets in half of what each token says, grows until its tanh is flat. So the
# recipe (Tallec and Ollivier 2018) has a second half: the write gate begins at −ln T.
#
#     write = sigmoid(−ln T) = 1 / (T + 1)                           sigmoid(−z) = 1 − sigmoid(z)
#     forget + write = T/(T + 1) + 1/(T + 1) = 1
#
# The cell is now a running mean: to hold T tokens, it lets in about 1/T of each.
#
# ## The first attention
#
# Bahdanau, Cho and Bengio didn't repair the reader. They let it keep all its vectors, one for each of the S tokens (T
# now counts queries), and the half that writes looks at all of them. A small network compares query and key. It adds
# them, so this is called *additive attention*:
#
#     match_tjd = tanh(q_td + k_jd)
#     s_tj = Σ_d scorer_d match_tjd
#     p = softmax(s)
#     o_t = Σ_j p_tj v_j
#
# The last two lines are the same as in lesson 05, and so are their gradients: from row t, the value of token j gets
# p_tj do_t. If all S scores are equal, then p_tj = 1/S, and each value gets do_t / S. And for any scores, all the
# values together get do_t, because the weights sum to 1. Gates multiply a gradient at every token; attention divides it
# once.
#
# ![Four cells in a row, and one row of attention](../plots/17_why_attention_paths.png)
#
# On the left is one feature of the LSTM above, on the right row t→s, head 0.

# %% [markdown]
# **Your line.** Only the comparison is new. In row p→o, go from ds, the gradient of its four scores (lesson 06), to dq.
# Which scores depend on q_d, and through what?

# %%
q, k, v, do = (example[f"cross.{name}"][0] for name in ("q", "k", "v", "do"))
scorer = rng.standard_normal(3)


def softmax(s):
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def additive_attention(q, k, v, scorer):
    """q (T, D), k (S, D), v (S, width), scorer (D,) -> o (T, width), and match (T, S, D) and p (T, S)."""
    match = np.tanh(q[:, None] + k)
    p = softmax(match @ scorer)
    return p @ v, match, p


o, match, p = additive_attention(q, k, v, scorer)
dp = do @ v.T
ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
match_row, ds_row = match[1], ds[1]  # (S, D) and (S,)
dq_row = ...  # your line, (D,): from match_row, ds_row and scorer
lesson.judge("dq_row", dq_row)

# %% [markdown]
# q_td is in all S scores of its row, and on the way to each there is a tanh with its own slope, and then scorer_d. For
# a key, the same terms are summed over the queries:
#
#     dq_td = Σ_j ds_tj scorer_d (1 − match_tjd²)
#     dk_jd = Σ_t ds_tj scorer_d (1 − match_tjd²)


# %% Ours
def additive_attention_backward(do, v, scorer, match, p):
    dp = do @ v.T
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dsum = ds[..., None] * scorer * (1 - match**2)  # (T, S, D)
    return dsum.sum(axis=1), dsum.sum(axis=0), p.T @ do, (ds[..., None] * match).sum(axis=(0, 1))


found = additive_attention_backward(do, v, scorer, match, p)
arguments = {"q": q, "k": k, "v": v, "scorer": scorer}


def loss(name, value):
    """The loss with `value` instead of the argument called `name`."""
    return (do * additive_attention(**{**arguments, name: value})[0]).sum()


worst = max(
    error(d, complex_step(partial(loss, name), arguments[name])) for name, d in zip(arguments, found, strict=True)
)
lesson.check("dq, dk, dv and dscorer, against the complex step", worst, 1e-14)
_, cache = functional.additive_attention(q[None], k[None], v[None], scorer)
theirs = [
    np.reshape(d, mine.shape)
    for d, mine in zip(functional.additive_attention_backward(do[None], cache), found, strict=True)
]
lesson.check("... and against the library's", max(map(error, found, theirs)), 1e-13)

# %% [markdown]
# ## How far does it reach?
#
# Now all paths count. A layer with C = 64 features reads random tokens, and the loss is on the last one. We divide the
# length of dx_1, the gradient of the first, by its length for a text of one token.

# %%
DISTANCES = [2**i for i in range(11)]
BIASES = {  # of the write gate and of the forget gate
    "LSTM, forget 0": lambda log: (0.0, 0.0),
    "LSTM, forget 1": lambda log: (0.0, 1.0),
    "LSTM, forget ln T": lambda log: (0.0, log),
    "LSTM, forget ln T, write −ln T": lambda log: (-log, log),
}
NAMES = [*BIASES, "attention, random scores", "attention, equal scores"]


def gate_biases(name, tokens):
    """The bias (4 C,) that a fresh LSTM begins with."""
    write, forget = BIASES[name](np.log(max(tokens, 2)))
    return np.repeat([0.0, write, forget, 0.0], 64)


def first_gradient(name, tokens, seed=0):
    """The geometric mean, over eight sequences, of the length of dx_1."""
    rng = np.random.default_rng(seed)
    dlast, W_x, W_y = rng.standard_normal((8, 64)), *weights(64, rng)[:2]
    x = rng.standard_normal((tokens, 8, 64))
    if name in BIASES:
        _, steps = lstm(x, W_x, W_y, gate_biases(name, tokens))
        dy = np.concatenate([np.zeros((tokens - 1, 8, 64)), dlast[None]])
        first = lstm_backward(dy, steps, W_y)[0] @ W_x.T
    else:
        W_q, W_k, W_v, _ = np.split(W_x, 4, axis=1)
        scorer = rng.standard_normal(64) / 8 if "random" in name else np.zeros(64)
        first = []
        for row, one in zip(np.moveaxis(x, 1, 0), dlast, strict=True):  # each sequence by itself
            v = row @ W_v
            _, match, p = additive_attention(row[-1:] @ W_q, row @ W_k, v, scorer)
            dq, dk, dv, _ = additive_attention_backward(one[None], v, scorer, match, p)
            first.append(dk[0] @ W_k.T + dv[0] @ W_v.T + (dq[0] @ W_q.T if tokens == 1 else 0.0))
    lengths = np.maximum(np.linalg.norm(first, axis=-1), 1e-320)
    return np.exp(np.log(lengths).mean())


reach = {name: [first_gradient(name, n + 1) / first_gradient(name, 1) for n in DISTANCES] for name in NAMES}
for name, values in reach.items():
    print(f"{name:30}", *(f"{values[i]:9.2e}" for i in (0, 4, 6, 8, 10)))

# %% [markdown]
# ![The gradient of the first token over its distance from the loss](../plots/17_why_attention.png)
#
# Two of the LSTMs lose a share at every token, and fall off the picture. Both attentions follow a straight line, like
# 1/S, and so does the LSTM with the whole recipe. With half of it, the curve stays at the top.
#
# ## What a gate cannot choose
#
# The whole recipe leaves 0.0020 for the first of 1,025 tokens. Attention with equal scores leaves 0.00098, which is
# 1/1025. By the colleague's yardstick nobody has won: one is a running mean, the other a plain mean, and in a mean of T
# tokens each has a share of about 1/T, forward and back.
#
# (At the top the gradient is 18 times as long as that of a single token, but the cells have grown to a size of 50.)
#
# So why did attention win? In a running mean all tokens are mixed into the same C numbers, and all of them hear the
# same dcell, no matter which one is to blame. Gates could keep them apart, but they have to choose while a token is
# being read, before anyone knows what will be asked. Attention chooses when it is asked, by learned weights: in head 0,
# row t→s gives 70 % of its weight to «s», so the value of «s» hears 70 % of the row's do. **A gate can carry the
# gradient over any distance, but only attention can choose, when it is asked, which token gets it.**
#
# Trained models show this too (docs/compare.md). Shown 26 pairs of a letter and a digit, and asked for the digit of one
# letter, an LSTM with one vector is right in 33 of 100 cases, and with additive attention in all. And its steps wait
# for each other, while attention computes all rows at once.
#
# **In papers:** a reader and a writer with one vector between them are an *encoder-decoder* (Cho et al. 2014) or
# *seq2seq* (Sutskever et al. 2014), the vector is the *bottleneck*, and going back through the steps is
# *backpropagation through time* (BPTT, Werbos 1990).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 18. How well such models do when trained is in docs/compare.md.
#
# ### How much room is in a sum?
#
# Add up 1,024 random vectors of 64 numbers, like a cell that forgets nothing, and compare the sum with each of them.

# %%
tokens = np.random.default_rng(3).standard_normal((20, 1024, 64))  # 20 texts
cells = tokens.sum(axis=1, keepdims=True)
cosines = (cells * tokens).sum(-1) / np.linalg.norm(cells, axis=-1) / np.linalg.norm(tokens, axis=-1)
print(f"cosine of the sum and one of its tokens: {cosines.mean():.3f} on average, and {cosines.std():.3f} of noise")

# %% [markdown]
# The cosine is 0.030 on average, about 1/√1024, and it scatters by 0.12, as it does for any two random directions. So
# the gradient finds its way back to the first token, but nothing in the sum tells you which token that was. A row of
# attention that is sure returns the token itself.
#
# ### The paths that we left aside
#
# The cell's own path is a product of T − 1 gates. But the next cell also depends on this one through what its step
# says, which is in the gates of the next step. All of these paths add. We measure both halves of the recipe: the
# product of the 1,024 gates, the cells at the end, and with five seeds the whole gradient.

# %%
product, size, slopes, ratios = {}, {}, {}, {}
for name in ("LSTM, forget ln T", "LSTM, forget ln T, write −ln T"):
    rng = np.random.default_rng(0)
    rng.standard_normal((8, 64))
    W_x, W_y, _ = weights(64, rng)
    _, long = lstm(rng.standard_normal((1025, 8, 64)), W_x, W_y, gate_biases(name, 1025))
    product[name] = np.prod([step.forget for step in long[1:]], axis=0).mean()
    size[name] = np.abs(long[-1].cell).mean()
    slopes[name] = (1 - np.tanh(long[-1].cell) ** 2 > 0.01).mean()
    ratios[name] = [first_gradient(name, 1025, seed) / first_gradient(name, 1, seed) for seed in range(5)]
    print(f"{name:30} gates {product[name]:.2f}, cells {size[name]:.2f}, open tanhs {slopes[name]:.0%}", end="")
    print(f", dx_1 {min(ratios[name]):.2g} to {max(ratios[name]):.2g}")

# %% [markdown]
# The product is the same with and without the write gate's half: 0.19 on average, half of 1/e, because the gates
# scatter around 1024/1025, and one that is too far closed takes more than one that is too far open gives back. The rest
# isn't the same. With the forget gate's half alone the cells grow to a size of 50, where tanh is flat: only 4 % of them
# still have a slope above 0.01. What arrives is long, 10 to 34 times as long as for one token, because each of a
# thousand gates changes a little if the first token changes, through the y before it, and these small terms add up.
# With the whole recipe the cells stay at 0.06, every tanh is open, and with five seeds the gradient is between 0.0014
# and 0.0020. A long gradient isn't a good sign by itself.
#
# ### What they cost
#
# For each token, an LSTM multiplies x_t by W_x and y_(t−1) by W_y, with 4 C² multiplications each. Self-attention has
# four matrices of C² numbers, and its scores and its mean take S C each:
#
#     LSTM          8 C²
#     attention     4 C² + 2 S C                                   equal for S = 2 C
#
# For C = 512 the two are equal at 1,024 tokens. On shorter texts attention is even cheaper. But the LSTM's products
# come one after another, because y_(t−1) must be known first, while attention's come all at once. This is the paper's
# argument in section 4. Additive attention adds T · S · D numbers that go through a tanh, and keeps them all for its
# backward. The dot product of lesson 05 keeps D times fewer.

# %% [markdown]
# ## Exercise
#
# 1. *Somewhere else.* Pencil, 10 minutes. A GRU has only one vector: y_t = keep_t ∘ y_(t−1) + (1 − keep_t) ∘ new_t.
#    Which bias of its gate `keep` leaves 1/e of the gradient after T steps, on the path through `keep` alone, and what
#    does it do to new_t?
# 2. Keyboard, 15 minutes. Give each feature its own forget bias, the logarithm of a distance that you draw
#    between 1 and 1,024, and its write gate the negative of that. Which features still hear the first token?
#
# Exercises with a checker: `minitransformer start 17`.
#
# ## Questions
#
# 1. The LSTM of 1997 had no forget gate. What is ∂cell_T/∂cell_1 there, and what can its cell never do?
# 2. With the bias 1, after how many steps is less than 1 % left on the cell's path?
# 3. One vector is added to all keys, and subtracted from all queries. What changes in additive attention, and what
#    with dot products?
# 4. Why is dv_j = p_j do_t for both attentions?
# 5. The entries of the scorer are 1, −1 and 2. How many times as much weight as another key can the best key get?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The sum of its gradients from all 1,024 steps. They add, just as the three gradients of E did.
# 2. The value enters the output with the weight 1, so it hears all of do. The score of a sure row moves no weight,
#    because p_j (dp_j − p·dp) is 0 when this key is the average.
# 3. A plain 1: in y = x + f(x), dy goes to x undiminished, whatever the sub-layer does, and the sub-layer's own path is
#    added.
#
# ### The questions
#
# 1. Exactly 1, for any T. It can never forget: what has been written to the cell stays until the end.
# 2. sigmoid(1) = 0.731, and 0.731^15 = 0.0091, so after 15 steps.
# 3. In additive attention nothing, because only the sums q + k enter. With dot products all scores change. (This is
#    why, in additive attention, the gradients of all queries and the gradients of all keys have the same sum. The
#    checker uses this law.)
# 4. o = p v is the same line in both. How the weights were made doesn't matter to the values.
# 5. match lies between −1 and 1, so two scores differ by at most 2 · (1 + 1 + 2) = 8, and two weights by e⁸, which is
#    2,981. A dot product has no such limit.
#
# The exercise. First: ln T, as before; then 1 − keep = 1/(T + 1), so new_t is let in by 1/(T + 1). A GRU's one gate
# follows both halves of the recipe at once. Second: those with a large distance. With 1,024 tokens and the distance
# 128, about exp(−1024/128) = 0.00034 is left.

# %%
# the pictures of this lesson
figure, axis = plt.subplots(figsize=(7.2, 3.6))
for name, color in zip(NAMES, (ORANGE, SKY, BLUE, PINK, GREEN, BLACK), strict=True):
    axis.loglog(DISTANCES, reach[name], "o-", color=color, markersize=4, label=name)
axis.axhline(2.0**-24, color=GREY, linewidth=1, linestyle=":", label="rounding error of float32")
axis.set(xlabel="tokens between the first one and the loss", ylabel="length of dx_1 (one token: 1)", ylim=(1e-16, 1e3))
axis.set_title("How far a gradient reaches, before training")
axis.legend(fontsize=8, loc="lower left")
lesson.save(figure)

figure, axes = canvas(7.4, 2.5)


def box(x, y, text, width=0.5):
    axes.add_patch(plt.Rectangle((x - width / 2, y - 0.16), width, 0.32, facecolor=mix(BLUE, 0.2), edgecolor=BLUE))
    axes.text(x, y - 0.01, text, fontsize=10, ha="center", va="center")


def arrow(start, end, width):
    style = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops={**style, "mutation_scale": 12})


axes.text(1.8, 2.3, "LSTM: multiplied at every step", fontsize=11, weight="bold", ha="center")
axes.text(5.6, 2.3, "attention: divided once", fontsize=11, weight="bold", ha="center")
share = 1.0
for i in (3, 2, 1, 0):
    box(0.45 + 0.9 * i, 1.2, SOURCE[i])
    axes.text(0.45 + 0.9 * i, 0.75, f"{share:.2f}", fontsize=10, color=ORANGE, weight="bold", ha="center")
    if i:
        arrow((0.2 + 0.9 * i, 1.2), (-0.2 + 0.9 * i, 1.2), 4 * share + 0.3)
        axes.text(0.9 * i, 1.45, f"× {steps[i].forget[5]:.2f}", fontsize=9, ha="center")
        share *= steps[i].forget[5]
axes.text(1.8, 0.35, "what is left of the gradient at each cell, on its own path", fontsize=8, color=GREY, ha="center")
box(5.6, 1.85, "row t→s", 0.9)
for i in range(4):
    weight = example["cross.p"][0, 3, i]
    box(4.4 + 0.8 * i, 0.65, SOURCE[i])
    arrow((5.3 + 0.2 * i, 1.69), (4.4 + 0.8 * i, 0.83), 4 * weight + 0.3)
    axes.text(4.4 + 0.8 * i, 0.3, f"{weight:.2f}", fontsize=10, color=ORANGE, weight="bold", ha="center")
axes.text(5.6, 0.07, "what each value gets of do", fontsize=8, color=GREY, ha="center")
lesson.save(figure, "paths")
lesson.finish(globals())
