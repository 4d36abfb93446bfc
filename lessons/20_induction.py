# %% [markdown]
# # Lesson 20: Two heads that continue what they have read
#
# [![The Transformer, with self-attention lit](../plots/20_induction_map.png)](../plots/00_reverse_whole.png)
#
# **How does a model use what it has just read?**
#
# 10 min, with a pencil 30, going deeper 6 · runs in 50 s (fast: 30 s) · needs 03, 05, 07, 08, 11 · difficulty 3 of 5 ·
# paper: Elhage et al. 2021
#
# ## What came after it last time?
#
# Mira reads seven tokens to a friend, «s» «t» «o» «p» «s» «t» «o», and asks for the eighth. The friend says «p» at
# once, and would do just as well with seven squiggles she has never seen. You don't need to know anything about them:
# you go back to where the last token appeared before, and read on from there.
#
# Then she asks a model that has two layers and has been trained for ten seconds. Each of its texts is 8 to 16 random
# tokens, of 32 kinds, repeated until there are 32. A guess is right in 3 of 100 cases. The model is right in 98 of 100
# where texts repeat that it has never seen.
#
# Its weights can't hold the answers, because the answers are made up as the text is drawn. What they hold must be a
# procedure, like the friend's. Today we write one down, in two heads, without training, and then look for it in the
# trained model.

# %% Imports
from support.lab import BLUE, GREY, ORANGE, begin, error, plt, running_example
from support.pictures import grids

import numpy as np

from experiments.measuring.steps import make_training_step
from minitransformer.data.text import TextBatch
from minitransformer.functional import causal_mask, scaled_dot_product_attention
from minitransformer.inspection import heads, intervene
from minitransformer.models import GPT, gpt_config

lesson = begin("20_induction")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (05) A token is found by its key and hands over its value. Could it be found by one thing and hand over another?
# 2. (11) A layer-1 head has found something. How does a layer-2 head find out about it?
# 3. (08) The head that looks at the token before was set by hand. Which features did its query read, and which did it
#    ignore?
#
# (The answers are at the end.)
#
# ## One layer cannot ask for it
#
# Take the last row, which reads «o». It wants to look at «p», the token *after* the other «o», because «p» is what it
# must write. How could a query find that place, if the score of row t and key j is
#
#     s_tj = q_t·k_j / √D = x_t W_q W_kᵀ x_jᵀ / √D
#
# and x_t and x_j, in layer 1, are just a token and its position? What makes the place of «p» special is that «o» comes
# before it, and neither the vector of «p» nor the row's own vector says so. Swap the token before j for another one,
# and s_tj stays the same, whatever W_q and W_k are.
#
# The row can find the other «o», which has the same token. But that place hands over only what it has, and it doesn't
# have its successor: a causal mask (lesson 07) never lets it look ahead.

# %% [markdown]
# ## Let an earlier head bring it
#
# So the news must be carried there first. A layer-1 head looks at the token before, as in lesson 08, and writes what it
# finds into the vector of its row. After that, the vector of «p» says two things in different features: *I am «p»*, and
# *I have heard «o»*. Now a layer-2 head can ask: who has heard my token?
#
# We put «bos» before the word, so that every letter has a token before it. Row t of `letter` has a one at the token of
# position t, and row t of `heard` a one at the token before it («bos» hears itself).
#
# **Your line.** Write the layer-2 scores, without a scale: 1 where position j has heard the token of row t, and 0
# elsewhere.

# %%
TOKENS = ["bos", "o", "p", "s", "t"]
ids = np.array([TOKENS.index(token) for token in ["bos", *"stopsto"]])
V, T = len(TOKENS), len(ids)
letter = np.eye(V)[ids]
heard = letter[[0, *range(T - 1)]]

asks = ...  # your line: (T, T), from letter (T, V) and heard (T, V)
lesson.judge("asks", asks)

# %% [markdown]
# ## Two heads that fit each other
#
# It is a product of two arrays: the query is the letter, the key is what the position has heard. In the whole model, a
# token has 5 features for its letter, 8 for its position, and 5 that are empty until layer 1 fills them.
#
#     head of layer 1      asks for the position before mine, and copies its letter into the empty features
#     head of layer 2      asks for the position that has heard my letter, and copies its letter
#
# Each head has four matrices, and each only picks features. A score of 20 wins against a score of 0 by a factor of e²⁰,
# which is as good as a weight of 1 (lesson 03).


# %% Ours
def softmax(s):
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def head(x, W_q, W_k, W_v, W_o):
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    s = np.where(np.tri(len(x), dtype=bool), q @ k.T / np.sqrt(q.shape[-1]), -np.inf)  # causal
    p = softmax(s)
    return p @ v @ W_o, p


def pick(first, size, scale=1.0):
    """(C, size): picks `size` features, from the feature `first` on, and multiplies them by a scale."""
    return scale * np.eye(C, size, k=-first)


C, LETTER, PLACE, HEARD = V + T + V, 0, V, V + T  # where the three kinds of features begin
x = np.hstack([letter, np.eye(T), np.zeros((T, V))])
before = pick(PLACE, T) @ (20 * np.sqrt(T) * np.eye(T, k=-1))  # row t asks for position t − 1
layer_1 = before, pick(PLACE, T), pick(LETTER, V), pick(HEARD, V).T
layer_2 = pick(LETTER, V, 20 * np.sqrt(V)), pick(HEARD, V), pick(LETTER, V), np.eye(V)

found, p_1 = head(x, *layer_1)
y = x + found  # the residual path: what the token was, and what it has heard
says, p_2 = head(y, *layer_2)
print("reads:", *(TOKENS[i] for i in ids))
print("says: ", *(TOKENS[row.argmax()] if row.max() > 0.9 else "?" for row in says))
lesson.check("the last row says p", says[-1, TOKENS.index("p")], at_least=0.999)
library, _ = scaled_dot_product_attention(*(y @ W for W in layer_2[:3]), causal_mask(T)[0, 0])
lesson.check("our head of layer 2, against the library's attention", error(says, library), 1e-12)

# %% [markdown]
# ![What the two heads look at](../plots/20_induction.png)
#
# At the first four letters no position has heard the token of the row yet, so all scores are 0, and the row spreads its
# weight over everything it sees. From the second «s» on, every answer is right.
#
# ## What the query meets
#
# Write y for what layer 1, with one head and without norms, hands to layer 2. It is what was there, plus what the head
# adds: the mean of the values, with the weights p of layer 1, times W_o (lesson 08):
#
#     y_j = x_j + Σ_i p_ji x_i W_v1 W_o1
#
# Layer 2 scores the vectors y. The transpose of a product is the product of the transposes, from right to left:
#
#     √D s_tj = (y_t W_q2)·(y_j W_k2)                 the score, by definition
#             = y_t W_q2 W_k2ᵀ y_jᵀ                   a dot product of two rows is row times column
#             = y_t W_q2 W_k2ᵀ x_jᵀ + Σ_i p_ji y_t W_q2 W_k2ᵀ (x_i W_v1 W_o1)ᵀ
#
# The first term compares y_t with token j itself, the second with each token i that j has looked at, and it needs
#
#     (x_i W_v1 W_o1)ᵀ = W_o1ᵀ W_v1ᵀ x_iᵀ
#
# so it is y_t, times one matrix (C, C), times x_iᵀ. No layer has this matrix. It is put together from the queries and
# keys of one layer and the values and outputs of another, which is why this is called composition.
#
# **Your line.** Here are random matrices for two heads. Write the matrix between y_t and x_iᵀ.

# %%
rng = np.random.default_rng(20)
W_q1, W_k1, W_v1, W_q2, W_k2 = rng.standard_normal((5, 7, 3))  # C = 7, D = 3
W_o1 = rng.standard_normal((3, 7))

between = ...  # your line: (7, 7), from W_q2, W_k2, W_v1 and W_o1
lesson.judge("between", between)

# %% [markdown]
# With p_ji = 1 for i = j − 1, as in our model, row t meets the token *before* j at the place j. **A head can find a
# place by what comes before it only if an earlier head has read that and written it down.**

# %% Ours
between = W_q2 @ W_k2.T @ W_o1.T @ W_v1.T
tokens = rng.standard_normal((6, 7))
moved, weights = head(tokens, W_q1, W_k1, W_v1, W_o1)
after = tokens + moved
scores = after @ W_q2 @ (after @ W_k2).T
direct = after @ W_q2 @ W_k2.T @ tokens.T
carried = after @ between @ (weights @ tokens).T
lesson.check("scores of layer 2 = direct + carried", error(direct + carried, scores), 1e-13)

# %% [markdown]
# ## Does training find it?
#
# We train two GPTs (decoders without cross-attention), one with one layer and one with two, with four heads in each
# layer, feed-forward networks, norms and the rest.
#
# **Your number.** Two layers get 98 of 100 tokens, and guessing gets 3. How many will one layer get?

# %%
guess = ...  # of 100 tokens where the texts repeat, right with one layer

LENGTH, PERIODS = 32, (8, 16)


def draw(rng, count):
    """Texts that repeat after 8 to 16 tokens, with what comes next; and where they repeat."""
    period = rng.integers(PERIODS[0], PERIODS[1] + 1, (count, 1))
    tokens = rng.integers(1, 33, (count, PERIODS[1]))
    ids = np.take_along_axis(tokens, np.arange(LENGTH + 1) % period, axis=1)
    return TextBatch(ids[:, :-1], ids[:, 1:]), np.arange(LENGTH) >= period


tested, again = draw(np.random.default_rng(5), 256)


def right(model):
    """The share of right tokens where the texts repeat."""
    return (model(tested.ids).argmax(axis=-1) == tested.targets)[again].mean()


def train(layers, steps):
    """A trained model, and how it came to it: (step, share of right tokens)."""
    sizes = {"d_model": 64, "num_heads": 4, "d_ff": 64, "max_len": LENGTH, "dropout": 0.0}
    model = GPT(gpt_config(33, num_layers=layers, positions="rope", **sizes), seed=1)
    make_step, rng, path = make_training_step(model, 0.0, threads=1), np.random.default_rng(1), []
    for step in range(1, steps + 1):
        make_step(draw(rng, 16)[0], 5e-3 * min(1, step / 50, 5 * (1 - (step - 1) / steps)))
        if step % 100 == 0:
            path.append((step, right(model)))
    return model, path


two, path_two = train(2, lesson.pick(full=1100, fast=800))
one, path_one = train(1, lesson.pick(full=1100, fast=500))
lesson.check("right with two layers, of 100", 100 * right(two), at_least=lesson.pick(full=94, fast=70))
lesson.compare("right with one layer, of 100", guess, 100 * right(one))

# %% [markdown]
# Now look inside the two-layer model. For each layer-1 head we ask how much of its weight lies on the token before, and
# for each layer-2 head how much lies on the tokens that come after copies of the row's token.


# %%
def role(weights, where):
    """The mean weight (heads,) on the keys in `where` (B, T, T), over all rows where the texts repeat."""
    return (weights * where[:, None]).sum(axis=3).swapaxes(0, 1)[:, again].mean(axis=1)


shifted = np.pad(tested.ids[:, :-1], ((0, 0), (1, 0)))
follows = shifted[:, None, :] == tested.ids[:, :, None]  # (B, T, T): has position j heard the token of row t?
first, second = two.attention_weights(tested.ids)
before_it, after_copies = role(first, np.eye(LENGTH, k=-1)[None]), role(second, follows)
print("layer 1, weight on the token before:    ", *(f"{share:.2f}" for share in before_it))
print("layer 2, weight on tokens after copies: ", *(f"{share:.2f}" for share in after_copies))

# %% [markdown]
# ![A trained pair of heads, and how it came about](../plots/20_induction_trained.png)
#
# Above is one text of 32 tokens, with a period of 8. The layer-1 head, on the left, puts about half of its weight,
# 0.49, on the token before. In layer 2, on the right, the lines begin where the text repeats, 7 places back (the period
# − 1), where the copies of the row's token have their successors. Unlike in our hand-made model, no single pair does
# all the work.
#
# At the lower left you should see the blue curve leave the orange one after about 200 steps. If both rise together, all
# of your texts have the same period, and a distance is enough.
#
# > **2021.** Elhage, Nanda, Olsson and others at Anthropic trained Transformers without feed-forward networks, with one
# > layer and with two, and multiplied out their matrices, as we did. In the two-layer ones they found such pairs, and
# > called the second head an induction head. In 2022 Olsson and others reported that in larger models, too, these heads
# > appear in a short stretch of training, and that the loss bends in the same stretch.
#
# ## How far, but not which
#
# With one layer, no row can find what it is looking for, and still 23 of 100 tokens are right, where guessing gives 3.
# The lower right picture shows the weight of its four heads by distance: most of it lies 7 to 15 places back. So let's
# try a rule without any model: say the token that is most frequent there.

# %%
(only,) = one.attention_weights(tested.ids)
far = [only[:, :, np.arange(20, LENGTH), np.arange(20, LENGTH) - n].mean(axis=(0, 2)) for n in range(20)]  # (20, heads)
print("one layer, weight 7 to 15 places back:", *(f"{share:.2f}" for share in np.sum(far[7:16], axis=0)))
back = [np.pad(tested.ids, ((0, 0), (n, 0)))[:, :LENGTH] for n in range(7, 16)]  # the token n places back, 0 for none
votes = np.eye(33)[back].sum(axis=0)[..., 1:]  # (B, T, 32): how often each token stands there
most = votes == votes.max(axis=-1, keepdims=True)  # if several are as frequent, the rule draws one of them
rule = np.take_along_axis(most / most.sum(axis=-1, keepdims=True), tested.targets[..., None] - 1, axis=-1)[again].mean()
print(f"the most frequent token 7 to 15 places back is right in {100 * rule:.0f} of 100 cases")

# %% [markdown]
# A text repeats after 8 to 16 tokens, so the answer *must* be 7 to 15 places back, and 0.8 of the weight, on
# average, lies there. The model just doesn't know which of the nine it is. Nor does the rule, but it is right in 26 of
# 100 cases, not in 11: some tokens repeat by chance, with period 8 the answer appears there twice, and early rows have
# fewer places. One layer has learned how far away the answer is, because a distance is a fact about positions. It can't
# learn *which* it is, because that is a fact about what comes before.
#
# The curve by itself only shows a model that learns something. To see what, look inside, and ask what could be right
# without it.
#
# **In papers:** Elhage et al. (2021) call x, with everything that is added to it, the *residual stream*, W_q W_kᵀ the
# *QK circuit*, W_v W_o the *OV circuit*, our composition *K-composition*, and our layer-1 head a *previous-token head*.
# Using what was just read is *in-context learning*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 21.
#
# ### A head taken out
#
# A map shows where a head looks. Whether the model needs that look is a different question, and there is a way to ask
# it: take the head out, and see what is lost. Its D features, which W_o would read, become 0 (zero ablation), or their
# mean over many rows (mean ablation), so that the rest of the model gets what it usually gets.

# %%
lost = {}
for change in heads(two):
    seen = []
    with intervene(two, change._replace(scale=1.0, watch=seen.append)):
        right(two)  # as before, only watched
    means = seen[0].mean(axis=(0, 1))
    for kind, value in (("zero", 0.0), ("mean", means)):
        with intervene(two, change._replace(value=value)):
            lost[change.path.split(".")[2], change.piece[0], kind] = 100 * right(two)
print("right of 100          zero   mean")
for layer, number, _ in list(lost)[::2]:
    shares = (lost[layer, number, kind] for kind in ("zero", "mean"))
    print(f"layer {int(layer) + 1}, head {number}  ", *(f"{share:6.0f}" for share in shares))

# %% [markdown]
# The best induction head can go, and 79 of 100 tokens are still right, because its three neighbors do the same work.
# And head 1 of layer 1 costs 31 tokens if it becomes 0, but 3 if it becomes its mean. What is missed then is mostly a
# constant, which the layers above rely on like a bias. Zero is a value like any other, and one that the model has never
# seen. (Why head 3 of layer 1 is missed most is in docs/inside.md.)
#
# ### A key taken out
#
# You can also take out a single key: what would the row get if it couldn't see key j? Its score becomes −∞, so
# exp(s_j) leaves the sum of the softmax, and nothing else changes. Write p for the weights before. For each other key
# i, and for what the head returns,
#
#     exp(s_i) / (total − exp(s_j)) = p_i / (1 − p_j)                  divide above and below by total = Σ_i exp(s_i)
#     Σ_i p_i v_i / (1 − p_j) = (o − p_j v_j) / (1 − p_j)              the sum is over all keys i but j
#
# The others share the weight that was freed. If you set p_j to 0 and leave it at that, the weights sum to 1 − p_j, and
# you have measured something else: a shorter o.
#
# ### Composition in our own model
#
# The "stop" model has just one decoder layer, but it has two attentions, one after the other. The row that reads «s»
# and writes «eos», row s→eos, gives 0.92 of its weight in head 0 of cross-attention to «s», the first letter of the
# source. Who told it to ask for that? Its query is made from x, to which its own token, the two heads of self-attention
# and a bias have been added, so if we keep the norm's σ fixed, the score splits into a sum of their shares.

# %%
own, o, W_o = (example[f"decoder.self.{name}"] for name in ("x", "o", "W_o"))
gamma, sigma = (example[f"decoder.norm1.{name}"] for name in ("gamma", "sigma"))
W_q, keys = example["cross.W_q"][:, :3], example["cross.k"][0]
lead = {}
for name, part in {"own token": own, "head 0": o[0] @ W_o[:3], "head 1": o[1] @ W_o[3:]}.items():
    normed = gamma * (part - part.mean(axis=-1, keepdims=True)) / sigma
    share = normed @ W_q @ keys.T / np.sqrt(3)
    lead[name] = share[4, 0] - share[4, 3]
whole_lead = example["cross.s"][0, 4, 0] - example["cross.s"][0, 4, 3]
print(f"row s→eos: «s» leads «p» by {whole_lead:.2f};", *(f"{name} {value:.2f}," for name, value in lead.items()))

# %% [markdown]
# Of a lead of 22.74 over «p», the other end of the word, head 1 of self-attention brings 16.53, and the row's own token
# and position only 2.51: an earlier head has written into the row where the word begins.
#
# [In the explorer: in row s→eos, head 1 of self-attention gives «o» the largest weight. If you turn that score up, does
# «s» in cross-attention rise or fall?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.s[0,4,0]&turn=decoder.self.s[1,4,2])

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. Do the same with the query: put y_t = x_t + Σ_i p_ti x_i W_v1 W_o1 into the score. Which matrix
#    is between x_i and x_j, and whose tokens does it compare?
# 2. Keyboard, 20 minutes. Make the hand-made model go by the last two tokens: after «a x b c x d a x» it should say
#    «b», and after «a x b c x d c x» it should say «d». How many heads do you need, and in how many layers?
#
# Exercises with a checker: `minitransformer start 20`. In one you set the two heads by hand, without «bos»; in the
# other you take out a key, and a head.
#
# ## Questions
#
# 1. Why did we put «bos» before the word? What does the second «s» of "stops" get without it?
# 2. Why can't the two heads be side by side in one layer?
# 3. In a text, «a» is followed once by «b» and once by «c». What does the hand-made model say after the next «a»?
# 4. The row says "?" where nobody has heard its token. Why does it say anything at all there?
# 5. *Somewhere else.* A convolution that is 16 tokens wide also sees the last 16 tokens. Let one layer of it say logits
#    that are sums over the places n back, each of which adds what its own token says there. Can it find what came after
#    the row's token last time? What can it do?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Yes, because key and value come from two matrices. Here a place is found by what it has heard, and hands over its
#    own letter.
# 2. By the residual path: the head's output is added to the vector of its row, and layer 2 reads that vector.
# 3. It read the features of the position and none of the letter. The layer-2 head does the opposite.
#
# ### The questions
#
# 1. Position 0 sees only itself, so it hears its own letter. Without «bos» the second «s» finds two places that have
#    heard an «s»: the first «t», and the first «s» itself. It says half of each.
# 2. All heads of a layer read the same x. What one of them writes is added to x only after the layer.
# 3. Two places have heard «a», with equal scores. It says half «b» and half «c».
# 4. A softmax must give away all of its weight. With equal scores the row gets the mean of everything it sees.
# 5. No: what place n adds depends on the token there, and not on whether the row's token comes before it. That takes a
#    product of two tokens, such as q·k. But it can let places 7 to 15 vote, each for its own token, and that is the
#    rule above, right in 26 of 100 cases.
#
# The exercise. First: W_v1 W_o1 W_q2 W_k2ᵀ. It compares a token that row t has looked at with token j itself. Second:
# each place must hear two tokens, so layer 1 needs a second head, which looks two places back, and six more features.
# In layer 2 one head is enough: its query has the row's token and the one before, which the row has also heard.

# %%
# the pictures of this lesson
labels = {"T": [TOKENS[i] for i in ids]}
lesson.save(grids({"layer 1: p (T, T)": p_1, "layer 2: p (T, T)": p_2}, labels))

figure, axes = plt.subplots(2, 2, figsize=(7.2, 6.4), height_ratios=(3.4, 2.2))
text = int(again.sum(axis=1).argmax())
for axis, layer, shares in ((axes[0, 0], first, before_it), (axes[0, 1], second, after_copies)):
    axis.imshow(layer[text, shares.argmax()], vmin=0, vmax=1)
    axis.set(xlabel="position attended to", ylabel="position that attends")
axes[0, 0].set_title(f"layer 1, head {before_it.argmax()}: the token before")
axes[0, 1].set_title(f"layer 2, head {after_copies.argmax()}: after copies")
for path, color, name in ((path_two, BLUE, "two layers"), (path_one, ORANGE, "one layer")):
    axes[1, 0].plot(*zip(*((step, 100 * share) for step, share in path), strict=True), color=color, label=name)
axes[1, 0].set(title="Right where the texts repeat", xlabel="step", ylabel="of 100 tokens", ylim=(0, 105))
axes[1, 0].legend(loc="upper left")
axes[1, 1].axvspan(6.5, 15.5, color=GREY, alpha=0.2)
axes[1, 1].plot(far, ".-", color=ORANGE)
axes[1, 1].set(title="One layer: where its four heads look", xlabel="places back", ylabel="attention weight")
axes[1, 1].set_xticks(range(0, 20, 3))
lesson.save(figure, "trained")
lesson.finish(globals())
