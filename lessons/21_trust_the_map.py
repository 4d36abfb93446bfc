# %% [markdown]
# # Lesson 21: Another map, the same answer
#
# [![The Transformer, with its attentions lit](../plots/21_trust_the_map_map.png)](../plots/00_reverse_whole.png)
#
# **Can the map be trusted?**
#
# 11 min, with a pencil 25, going deeper 7 · runs in 50 s (fast: 30 s) · needs 02, 05, 06, 08, 20 · difficulty 3 of 5 ·
# paper: Jain and Wallace 2019
#
# ## Which «s» was it?
#
# Our model has learned to reverse four-letter words, and it makes nonsense of "stops". Jonas and Aylin have to
# explain to an auditor why. They look at row t→s, which reads «t» and must write «s», the first letter of the word, but
# writes «eos». Each of them has a map of it, from head 1 of cross-attention:
#
#     letter        s        t        o        p        s
#     Jonas     0.513    0.000    0.023    0.238    0.225
#     Aylin     0.149    0.223    0.054    0.000    0.574
#
# Jonas says that the row looks for the right «s», the first, and Aylin says that it mistakes the last one for it. The
# auditor puts first one map, then the other, into the model. The head returns the same three numbers each time, to the
# last digit, and so does everything after it: nothing in the model can tell which map it has. (The model itself has
# computed a third one.)

# %% Imports
from support.example_numbers import numbers
from support.lab import GREY, begin, error, plt, running_example, show

import numpy as np

from experiments.adversary import fool, look
from experiments.knock_out import sharpness
from experiments.measuring.paired import train_steps
from experiments.measuring.ranks import spearman
from experiments.measuring.taps import moved, tapped
from minitransformer.data.tasks import Reverse
from minitransformer.example import load_example
from minitransformer.functional import softmax
from minitransformer.inspection import Rows, heads, intervene
from minitransformer.models import Transformer, named_config
from minitransformer.plotting import COLORS
from minitransformer.training import CrossEntropyLoss
from minitransformer.vocabulary import BOS, EOS

lesson = begin("21_trust_the_map")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (06) Each row of ds sums to 0. Why must it?
# 2. (08) A head has computed its weights p. What does the rest of the model get from them?
# 3. (20) The heads of the one-layer model look 7 to 15 places back. Does this tell you what they do with what they
#    find?
#
# (The answers are at the end.)
#
# ## What the rest of the model gets
#
# The rest of the model gets o = p v, and nothing else from p. So let's look for all other rows of weights that give the
# same o. Such a row, p + δ, must still sum to 1 and leave each of the D features of o as it is:
#
#     Σ_j (p_j + δ_j) = 1           so   Σ_j δ_j = 0               the p_j alone sum to 1
#     Σ_j (p_j + δ_j) v_jd = o_d    so   Σ_j δ_j v_jd = 0          the p_j alone give o_d
#
# The second line stands for D equations, one for each d, so these are D + 1 equations for S unknown numbers, all linear
# and with 0 on the right. Without any equation, δ can point in S independent directions. Each equation takes away one
# of them, or none if it follows from the others, so at least this many are left:
#
#     S − (D + 1) = S − D − 1
#
# In these directions the weights can move without o noticing. For "stop", our model has S = 4 and D = 3, and there
# is none: four equations determine four weights. For "stops", with S = 5, there is one.
#
# **Your line.** Write all D + 1 equations as one: δ, times a matrix with S rows, is 0. Which matrix? Put the equation
# of the sum last.

# %%
word = load_example()
ids = np.array([word.tokens.index(letter) for letter in "stops"])
target = {"target_in": np.array([[BOS, *ids[::-1]]]), "target_out": np.array([[*ids[::-1], EOS]])}
five = numbers(word._replace(source=ids[None], **target))  # all numbers of the model for "stops"
p, v = five["cross.p"][1], five["cross.v"][1]  # head 1: (6, 5) and (5, 3)

both = ...  # your line: (5, 4), from v (5, 3)
lesson.judge("both", both)

# %% [markdown]
# ## The one direction
#
# It is [v 1], the values with a column of ones beside them. The rows δ that it takes to 0 are its left null space. A
# singular value decomposition of its transpose finds them: the last array that NumPy returns has S rows, and the ones
# with no singular value, or a singular value of 0, are the directions.
#
# But weights have one more duty, and it isn't an equation: none of them may be negative. So we start at p and walk
# along δ until the first weight is 0, and then the other way. Everything between the two ends is a map with the same o.


# %% Ours
def unnoticed(v):
    """The directions (number, S) in which weights can move without moving o = p v, or their sum."""
    both = np.column_stack([v, np.ones(len(v))])
    _, sizes, directions = np.linalg.svd(both.T)
    return directions[np.sum(sizes > 1e-10 * sizes[0]) :]


def slide(p, delta):
    """From p (S,) along delta (S,), until a weight is 0."""
    falling = delta < -1e-12
    return p + np.min(p[falling] / -delta[falling]) * delta


(delta,) = unnoticed(v)
row = p[4]  # row t→s
ends = [slide(row, sign * delta * np.sign(delta[1])) for sign in (-1, 1)]
show("three maps of row t→s", np.array([ends[0], row, ends[1]]), ["Jonas", "model", "Aylin"], [*"stops"])
show("... and what the head returns", np.array([ends[0] @ v, row @ v, ends[1] @ v]), ["Jonas", "model", "Aylin"])
lesson.check("the same o", max(error(end @ v, row @ v) for end in ends), 1e-14)
lesson.check("the same sum", max(abs(end.sum() - 1) for end in ends), 1e-14)
short = np.column_stack([example["cross.v"][1], np.ones(4)])  # for "stop" it is square
back = np.column_stack([example["cross.o"][1], np.ones(5)]) @ np.linalg.inv(short)  # (T, S)
lesson.check('for "stop", p follows from o: [o 1] times the inverse', error(back, example["cross.p"][1]), 1e-13)

# %% [markdown]
# ![All maps of one row](../plots/21_trust_the_map.png)
#
# With "stop" there would have been nothing to argue about, because there o determines p. From five letters on, p is one
# of many.
#
# [In the explorer: turn the score of «p» in row p→o. Can two of its values give exactly the same o?
# Guess first.](../minitransformer/explorer/page/index.html#embed=cross.o[0,1,0]&turn=cross.s[0,1,3])
#
# ## All heads at once
#
# Is that a rare case? We train a model that reverses words of up to 8 letters, with 2 layers and 8 heads of D = 4
# features. A word of 8 letters and its end are S = 9 keys. For ten words we walk with every row, and run the model with
# the weights we reach.
#
# **Your number.** In how many directions can a row of cross-attention move, in each head?

# %%
guess = ...  # directions, for 9 keys and 4 features


# %% Training
# words of up to eight letters, from a to h


class Words(Reverse):
    symbols, max_len, min_len_held_out = "abcdefgh", 8, 8


task = Words()
sizes = {"d_model": 32, "num_heads": 8, "d_ff": 64, "num_layers": 2, "dropout": 0.0}
model = Transformer(named_config("tiny", len(task.vocabulary), **sizes), seed=1)
train_steps(model, task, lesson.pick(full=1000, fast=600), seed=1, peak=3e-3)
test = task.held_out_batch(np.random.default_rng(1), 200)

exact = Transformer(model.config, dtype=np.float64)  # the same weights, with 16 digits
for mine, given in zip(exact.parameters(), model.parameters(), strict=True):
    mine.data[...] = given.data
few = type(test)(*(array[:10] for array in test))
with tapped(exact, "cross_attention") as taps:  # remembers weights and values
    before = exact(*few.inputs)
counts, shares, same, changes = [], [], [], []
for path, tap in taps.items():
    other = tap.weights.copy()
    for place in np.ndindex(other.shape[:3]):  # word, head, row
        weights, values = tap.weights[place], tap.values[place[:2]]
        free = unnoticed(values)
        delta = -free.T @ free[:, weights.argmax()]  # of all directions, the one in which the largest weight falls most
        other[place] = slide(weights, delta)
        counts.append(len(free))
        shares.append(0.5 * np.abs(other[place] - weights).sum())
        same.append(other[place].argmax() == weights.argmax())
    changes.append(Rows(path, other))

# %%
with intervene(exact, *changes):
    after = exact(*few.inputs)
lesson.compare("directions", guess, np.mean(counts))
print(f"weight that has moved: {np.mean(shares):.2f} of 1; the same largest weight in {100 * np.mean(same):.0f} of 100")
lesson.check("logits, with the weights of all heads moved", error(after, before), 1e-11)

# %% [markdown]
# The weights of all 16 heads have moved, and not one logit has changed. (Layer 2 keeps its values, since layer 1
# returns the same.) How far the weights can go is another matter: a direction is useless if its first step makes a
# weight negative, and a row that is nearly sure has many weights near 0. On average 0.09 of the weight moves, and in 68
# of 100 rows the largest weight stays where it is.
#
# ## The objection
#
# You may object that these maps come from nowhere: for all rows at once, no queries and keys would ever compute them.
# Wiegreffe and Pinter said so, and asked for more: a model that computes other maps itself, even for words it has never
# seen.
#
# So we take a copy of the model and train it further, to give the same answers with different maps. Average the weights
# of a row over all 16 heads, and write model_j for the mean in the model, and copy_j for the mean in the copy. The
# copy's loss has two parts,
#
#     L = KL(model ‖ copy) + 3 Σ_j model_j copy_j                    for each row
#     KL(model ‖ copy) = Σ_w p_model(w) ln(p_model(w) / p_copy(w))   over all tokens w
#
# The first, the Kullback-Leibler divergence, is 0 where both answer with the same probabilities. The second is large
# where both look at the same place (3 is our choice). A single head's p_j enters copy_j by a sixteenth, so the second
# part gives it the gradient 3 model_j / 16. It is added to the dp of lesson 06, the price of a look: looking where the
# model looks becomes more expensive.
#
# **Your number.** Of 100 rows, in how many does the trained copy have its largest weight where the model has it?

# %%
guess_2 = ...  # of 100 rows, the same largest weight
copy = fool(model, task, lesson.pick(full=600, fast=300), seed=1)
mirror = 7 - np.arange(8)  # the letter that row t has to write


def study(model):
    """Right words, of 100; the mean map (B, 8, S); the maps of all heads of cross-attention (heads, B, 8, S)."""
    p, mean, each = look(model, test)
    right = (p.argmax(axis=-1) == test.targets).all(axis=1)
    return 100 * right.mean(), mean[:, :8], each[:, :, :8]


(right, mean, _), (right_copy, mean_copy, each_copy) = study(model), study(copy)
print(f"right words, of 100: model {right:.1f}, copy {right_copy:.1f}")
equal = (mean.argmax(axis=-1) == mean_copy.argmax(axis=-1)).mean()
lesson.compare("the same largest weight, of 100 rows", guess_2, 100 * equal)
lesson.check("right words of the copy, of 100", right_copy, at_least=lesson.pick(full=90, fast=30))

# %% [markdown]
# ![One word, and three maps of it](../plots/21_trust_the_map_copy.png)
#
# On the left, in the model's map, you should see a line from the last letter to the first, and no line in the copy's
# map. If the two look alike, the second part of the loss is missing. The copy still gets 98 of 100 words right.
#
# > **2019.** In "Attention is not Explanation", Jain and Wallace found, for one text at a time, other weights with the
# > same answer. Wiegreffe and Pinter replied in the same year with "Attention is not not Explanation": such weights
# > come from nowhere, and an adversary must be a model. Brunner and others then counted dimensions, as we did.
#
# ## Where does the copy look?
#
# Each row needs one letter, and cross-attention is the only path to it. How can the copy look away from that letter,
# and still write it? We were sure that its encoder carries the letters to other places, as in lesson 20, so that the
# copy finds them there. That can be tested for each letter:
#
# 1. Encode the word, and then the same word with another letter in its place.
# 2. Put a single vector of the second memory into the first, in the same place, and leave all the others alone.
# 3. See how far this moves the probabilities of the row that writes the letter, and which place moves them most.


# %%
def where_it_counts(model, words=50):
    """How far a memory vector, from a word with another letter, moves the answer -> (8 letters, 9 places, words)."""
    source, target = test.source[:words], test.target_in[:words]

    def probabilities(memory):
        return softmax(model.head.forward(model.decode(target, memory, source)[0])[0])[0]

    memory, found = model.encode(source)[0], []
    before = probabilities(memory)
    for j in range(8):
        other = source.copy()
        other[:, j] = 3 + (source[:, j] - 2) % 8  # the next letter of the alphabet
        new, moves = model.encode(other)[0], []
        for place in range(9):
            mixed = memory.copy()
            mixed[:, place] = new[:, place]
            moves.append(0.5 * np.abs(probabilities(mixed) - before).sum(axis=-1)[:, mirror[j]])
        found.append(moves)
    return np.array(found)


moves, own = where_it_counts(copy), np.eye(8, 9, dtype=bool)
own_place = 100 * (moves.argmax(axis=1) == np.arange(8)[:, None]).mean()
elsewhere = moves[~own].reshape(8, 8, -1).max(axis=1).mean()  # the best of the 8 other places
on_letter = each_copy[:, :, np.arange(8), mirror].mean(axis=(1, 2))  # (16,) weight of each head on the right letter
working = np.argsort(-on_letter)[:2]
cross = [head for head in heads(copy) if "cross" in head.path]
left = []
for head in cross:
    with intervene(copy, head):
        left.append(100 * (copy(*test.inputs).argmax(axis=-1) == test.targets).mean())
print(f"it counts most at the letter's own place, of 100: {own_place:.0f}")
print(f"the answer moves by {moves[own].mean():.2f} from there, and by {elsewhere:.2f} from the best other place")
print("weight of each head on the right letter: ", *(f"{weight:4.2f}" for weight in on_letter))
print("right letters without this head, of 100: ", *(f"{share:4.0f}" for share in left))

# %% [markdown]
# We were wrong. In 100 of 100 rows it is the letter's own place that counts most, for the copy too: from there the
# probabilities move by 0.99, and from the best other place by 0.01. The encoder has carried next to nothing elsewhere.
# The copy has done something simpler: two of its 16 heads still give the right letter 0.47 and 0.43 of their weight,
# and nearly all others give it nothing. In the mean over 16 heads, the two vanish behind the others. But take the first
# of the two away, and of 100 letters only 54 are right, while any one of the 14 others can go, and at least 96 are
# right.
#
# The loss had asked for a different mean, and got one. The maps of single heads contradict each other, and none says
# which of them counts: to find out, we had to replace a vector and take out a head. **Other weights can give the same
# output, so a map shows only where a row looks, and a change shows what it needs.**
#
# **In papers:** whether a map shows what the model used is *faithfulness* (Jacovi and Goldberg 2020), weights that o
# doesn't determine are *not identifiable* (Brunner et al. 2019), replacing a vector is *causal tracing* (Meng et al.
# 2022) or *activation patching*, and taking a head out is *ablation*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 22.
#
# ### How far the largest weight can fall
#
# We walked in one direction until the first weight was 0. From there you can continue, in a direction that leaves that
# weight alone. The smallest value that the largest weight of a row can take is the solution of a linear program: its
# objective, its equations and its bounds are linear. One of the best maps is always at a corner, where S of the
# equations and bounds hold exactly: the D + 1 equations, and S − D − 1 bounds, which make as many weights 0. So at most
# D + 1 weights are left. `moved`, in lessons/experiments/measuring/taps.py, finds such a map, and proves that none with
# the same o has a smaller weight there.

# %%
first, least, apart = [], [], []
for tap in taps.values():
    for place in np.ndindex(4, 8, 9):  # words, heads, rows
        weights = tap.weights[place]
        best = moved(weights, tap.values[place[:2]])
        first.append(weights.max())
        least.append(best[weights.argmax()])
        apart.append(0.5 * np.abs(best - weights).sum())
print(f"largest weight {np.mean(first):.3f}, least it can be {np.mean(least):.3f}, moved {np.mean(apart):.2f} of 1")

# %% [markdown]
# Four directions out of nine, and still the largest weight can fall only from 0.452 to 0.316 on average. The more keys
# a row has, the freer it is: docs/inside.md has a text model with 64 keys, in which it falls by more than half.
#
# ### Which heads are needed?
#
# Taking out each head and measuring the loss gives the answer, at the cost of one forward pass per head. Can one pass
# do for all of them? Multiply what a head returns by a scale, which is 1, so that scale · o takes the place of o. By
# the chain rule,
#
#     ∂L/∂scale = Σ_t do_t·o_t                        over all rows of the head
#
# That is lesson 06 again: do_t·o_t = p·dp, the average price that the row pays. Michel et al. (2019) rank heads by the
# mean of |∂L/∂scale| over many sequences. It matters where the absolute value is taken. At the end of training, the
# slope of the mean loss is near 0 for every trained head, including the most useful ones, because a larger W_o would do
# the same as a larger scale. Single sequences pull up and down.

# %%
every, ones = heads(model), np.ones((len(test.targets), 1, 1))
loss_fn = CrossEntropyLoss()
with intervene(model, *(head._replace(scale=ones) for head in every)) as altered:
    logits, cache = model.forward(*test.inputs)
    whole, cache_loss = loss_fn.forward(logits, test.targets)
    model.backward(loss_fn.backward(1.0, cache_loss), cache)
slopes = np.array([head.scale.grad[:, 0, 0] for head in altered], float)  # (heads, words)
model.zero_grad()
costs = []
for head in every:
    with intervene(model, head):
        costs.append(float(loss_fn.forward(model(*test.inputs), test.targets)[0] - whole))
ranks = {
    "sharpness of the map": sharpness(model, test, every),
    "|slope of the mean loss|": np.abs(slopes.sum(axis=1)),
    "mean of |slope|, word by word": np.abs(slopes).sum(axis=1),
}
for name, values in ranks.items():
    print(f"{name:30} rank correlation with the cost {spearman(values, costs):5.2f}")

# %% [markdown]
# Taken word by word, the slope ranks the 48 heads of all three kinds of attention nearly as their cost does, with a
# rank correlation of 0.90. How sharp a map looks says much less, 0.50, and the slope of the mean loss, 0.43, says no
# more than that. A gradient, unlike a map, says what would happen if something changed, though only for a very small
# step.
#
# ## Exercise
#
# 1. Pencil, 10 minutes. The values of a row are v = (0, 1, 2), with D = 1 and S = 3, and p = (1/4, 1/2, 1/4). Find δ,
#    both ends of the walk, and the smallest value that the middle weight can take.
# 2. Keyboard, 20 minutes. The overlap is a mean over heads, so it can't tell one head with a weight of 0.8 from eight
#    with 0.1. Square the overlap of each single head, and add up the squares. What is the gradient now, and can the
#    copy still answer?
#
# Exercises with a checker: `minitransformer start 21`. In one you count the directions and walk to the end of one; in
# the other you rank heads by what they cost.
#
# ## Questions
#
# 1. All values of a head are the same vector. How many directions are there, and what does the map tell you then?
# 2. Any row of positive weights can be reached by some scores. Can any map (T, S) be reached by some q and k?
# 3. A mask hides all but three keys from a row, in a head with D = 4. Does another map give the same o? And can this
#    one be trusted?
# 4. Without head A a model loses nothing, and without head B it loses nothing. Can you take out both?
# 5. *Somewhere else.* A linear model predicts the price of an apartment from five columns, one of which is the sum of
#    two others. In how many directions can its weights move without moving any prediction? Does a large weight mean
#    that its column matters?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The weights of a row always sum to 1, so adding one number to all scores changes nothing. The slope along that
#    direction, which is the sum of ds, is 0.
# 2. Only o = p v, through W_o. The weights themselves go nowhere else.
# 3. No. A rule that says the most frequent token there is right about as often, but so might others be. A map says
#    where a row looks, and no more.
#
# ### The questions
#
# 1. The D + 1 equations are multiples of one, so S − 1 directions are left. Each map gives the same o, and the map
#    tells you nothing at all.
# 2. No. The scores q kᵀ have rank D at most, and the softmax forgets one number for each row. ln p must be, up to
#    one number for each row, a matrix of rank D. A single row always is.
# 3. No other map does, if the three rows of [v 1] that belong to these keys are independent, as they are unless the
#    three values lie on a line. Then δ [v 1] = 0 has no solution but δ = 0. The null space counts only keys that the
#    row may see. But a map that is the only one possible isn't an explanation yet: whether the answer depends on the
#    keys with the large weights is a question for an intervention. In the models of docs/inside.md the two agree in
#    part, with a rank correlation of 0.72 ± 0.03.
# 4. No. Each may do the other's work. In lesson 20, three induction heads stood in for the fourth.
# 5. In one. If column c is a + b, the weights of a, b and c can move along (1, 1, −1). So a large weight says nothing:
#    there are other weights, with 0 in its place, that predict the same. Take the column out, fit again, and see what
#    is lost.
#
# The exercise. First: δ = (1, −2, 1), up to a factor. From p you can go to (1/2, 0, 1/2) and to (0, 1, 0), so the
# middle weight can become 0. Second: the gradient becomes 2 · 3 model_j times the head's own overlap, so that a head
# pays more the more it looks. In our trial the copy kept most of its words, and no head kept much of its weight on the
# right letter.

# %%
# the pictures of this lesson
figure, axis = plt.subplots(figsize=(6.4, 3.4))
shares_of_way = np.linspace(0, 1, 50)
way = ends[0] + shares_of_way[:, None] * (ends[1] - ends[0])
at = np.abs(row - ends[0]).sum() / np.abs(ends[1] - ends[0]).sum()
for j, (name, color) in enumerate(zip(["first «s»", "«t»", "«o»", "«p»", "last «s»"], COLORS, strict=False)):
    axis.plot(shares_of_way, way[:, j], color=color)
    axis.annotate(name, (1, way[-1, j]), (6, 0), textcoords="offset points", va="center", color=color)
axis.axvline(at, color=GREY, linewidth=1)
axis.annotate("the model's own map", (at, 0.62), (-4, 0), textcoords="offset points", ha="right", color=GREY)
axis.set(title="Maps of row t→s with the same o", xlabel="way from Jonas's map (0) to Aylin's (1)")
axis.set(ylabel="attention weight", xlim=(0, 1), ylim=(-0.02, 0.66))
lesson.save(figure)

figure, axes = plt.subplots(1, 3, figsize=(7.4, 3.1))
letters = [task.vocabulary[i].strip("<>") for i in test.source[0]]
layer, number_of_head = divmod(int(working[0]), 8)
titles = ("model, mean of heads", "copy, mean of heads", f"copy, layer {layer + 1}, head {number_of_head}")
for axis, weights, title in zip(axes, (mean[0], mean_copy[0], each_copy[working[0], 0]), titles, strict=True):
    axis.imshow(weights, vmin=0, vmax=0.7)
    axis.set(title=title, xlabel="source", ylabel="letter to be written")
    axis.set_xticks(range(9), letters)
    axis.set_yticks(range(8), letters[:8][::-1])
    axis.tick_params(length=0)
lesson.save(figure, "copy")
lesson.finish(globals())
