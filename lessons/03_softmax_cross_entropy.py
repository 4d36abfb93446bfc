# %% [markdown]
# # Lesson 03: How wrong is 70 per cent?
#
# [![The softmax and the loss](../plots/03_softmax_cross_entropy_map.png)](../plots/00_reverse_whole.png)
#
# **How wrong is a guess, and which way should each of its scores move?**
#
# 10 min, with a pencil 30, going deeper 5 · runs in 8 s (fast: 8 s) · needs 01, 02 · difficulty 2 of 5 · paper: section
# 3.4 (the softmax after the last layer), section 5.4 (label smoothing)
#
# ## Right, but not sure
#
# Our model has read "stop" and has written «p». Its row p→o must say which token comes next. The last layer gives it
# one number for each of the V = 7 tokens that it knows, the logits z:
#
#     pad      bos      eos      o        p        s        t
#     −1.215   −3.728   −7.717   5.559    4.705    0.561    −3.150
#
# The letter «o» has the largest logit, and «o» is right. Is anything left to learn? Yes: «p» is close behind, and
# another step of training, on other words, may put it ahead. But how would gradient descent know? The number of wrong
# rows stays the same when the weights move a little, until it jumps. We need a number that says how wrong the logits
# are, and moves whenever they do.

# %% Imports
from support.lab import BLUE, GREY, ORANGE, ROWS, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show
from support.pictures import grids

import numpy as np

lesson = begin("03_softmax_cross_entropy")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (02) What is the gradient of a bias that is added to every token, and why doesn't it depend on the input x?
# 2. (01) Your gradient is five times the complex step's, in every entry, and the loss is a mean over five rows. Which
#    mistake is this?
# 3. (00) What is the loss of a model that gives all V tokens the same probability? How can a model do worse?
#
# (The answers are at the end.)

# %% [markdown]
# ## Which logits are pulled up?
#
# 1. From its logits the row gives «o» 70 % and «p» 30 %. The gradient of the loss has seven entries, one for each
#    logit. Which are positive, which are negative, and what is their sum?
# 2. After the same text, «o» is right in 60 % of the cases, «s» in 30 % and «t» in 10 %, and a model can learn these
#    shares. But a student thinks the derivative of the softmax is p (1 − p), as it is for the sigmoid 1/(1 + exp(−z)).
#    What share does «t» get from such a model in the end?
# 3. The paper's loss wants about 90 % for the right one of its V = 37,000 tokens, and spreads 10 % over all of them.
#    What is the smallest loss that any model can have, in nats (lesson 00)?

# %%
guess_rare = ...  # the share of «t» after long training with the mistake, in per cent
guess_floor = ...  # the smallest loss, in nats

# %% [markdown]
# ## From seven logits to one number
#
# First turn the logits into probabilities: positive numbers that sum to 1, larger for larger logits. The exponential
# makes any number positive, and a division makes the sum 1. This is the softmax:
#
#     p_i = exp(z_i) / Σ_j exp(z_j)
#
# In our row the exponentials are 0.30, 0.02, 0.00, 259.45, 110.50, 1.75 and 0.04, with the sum 372.06, so «o» gets
# 259.45 / 372.06 = 0.697. Adding the same number to all logits gives all exponentials the same factor, and p stays the
# same. So code first subtracts the largest logit, and no exponential overflows.
#
# Then charge the model −ln of the probability that it gave to the right token, which is 0 for a probability of 1, and
# 0.361 in our row, and grows without bound as the probability goes to 0. The logarithm turns the probability of a word,
# a product, into a sum, so each token can be charged separately.
#
# Write p* for the probabilities that the loss wants: 1 for the right token, and 0 for all others. The loss is then the
# cross-entropy, a mean over the N tokens that count. (Padding doesn't count.)
#
#     L = −(1/N) Σ_n Σ_i p*_ni ln p_ni
#
# > **1948.** Claude Shannon measured the information in a message by the logarithms of its probabilities, and called
# > their mean the entropy. The exponentials of the softmax are older, since Ludwig Boltzmann used them in 1868,
# > with the energies of a gas as the logits. John Bridle brought the two together in networks, and named the
# > softmax, in 1989.


# %%
def softmax(z):
    """p_i = exp(z_i) / Σ_j exp(z_j), along the last axis."""
    p = np.exp(z - z.real.max(axis=-1, keepdims=True))  # real: the checks pass a complex z
    return p / p.sum(axis=-1, keepdims=True)


def cross_entropy(z, wanted):
    """L = −(1/N) Σ_n Σ_i p*_ni ln p_ni, with ln p_i = z_i − ln Σ_j exp(z_j)."""
    z = z - z.real.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return -(wanted * log_p).sum(axis=-1).mean()


z = example["output.z"]
N, V = z.shape
right = [VOCABULARY.index(token) for token in TARGET_OUT]
wanted = np.eye(V)[right]
p, L = softmax(z), cross_entropy(z, wanted)
losses = -np.log(p[range(N), right])
show("loss of each row, in nats", losses, columns=ROWS)
print(f"mean {L:.4f}")

# %% [markdown]
# The mean is L = 0.1108 nats, and our row alone accounts for 65 % of it.
#
# ## One logit moves every probability
#
# How does p_i move when z_j moves? Call the sum of all exponentials the total. Each exponential depends only on its own
# logit, but the total depends on all of them (1[i = j] is 1 if i = j, and 0 if not):
#
#     ∂exp(z_i)/∂z_j = 1[i = j] exp(z_i)          ∂total/∂z_j = exp(z_j)
#
# From these two, the quotient rule gives the Jacobian of the softmax:
#
#     J_ij = ∂p_i/∂z_j = (1[i = j] exp(z_i) total − exp(z_i) exp(z_j)) / total²
#                      = 1[i = j] p_i − p_i p_j
#                      = p_i (1[i = j] − p_j)
#
# On the diagonal it is p_i (1 − p_i): a logit raises its own probability. Everywhere else it is −p_i p_j: the logit
# lowers all the others. Each row of J sums to 0, because p doesn't change when all logits move together, and each
# column sums to 0, because the probabilities always sum to 1.
#
# Going backward, a logit reaches the loss through all the probabilities that it touches (lesson 02):
#
#     dz_i = Σ_j dp_j J_ji
#          = Σ_j dp_j p_j (1[j = i] − p_i)
#          = p_i dp_i − p_i Σ_j p_j dp_j              1[j = i] picks the term j = i
#          = p_i (dp_i − Σ_j p_j dp_j)
#
# The sum Σ_j p_j dp_j is the mean of dp, weighted by p, so a logit gets a gradient if its own dp differs from the mean.
# It holds for any dp, and attention will need it (lessons 05 and 06).

# %% [markdown]
# ## What the loss says
#
# After our softmax comes the loss, for one token −Σ_i p*_i ln p_i. The derivative of ln p_i is 1/p_i, so
#
#     dp_i          = −p*_i / p_i
#
# **Your line.** Put this into the last formula for dz_i. What is left, for one token?

# %%
p_row, wanted_row = p[1], wanted[1]  # row p→o
dz_row = ...  # your line: from p_row and wanted_row, (V,)
lesson.judge("dz_row", dz_row)

# %% [markdown]
#     Σ_j p_j dp_j  = −Σ_j p*_j = −1
#     dz_i          = p_i (−p*_i / p_i + 1) = p_i − p*_i
#
# The division by p_i cancels, and **what remains is what the model said, minus what the loss wanted.** The mean over N
# tokens divides this by N. In our row «o» gets (0.697 − 1)/5 = −0.061, and «p» gets 0.297/5 = 0.059. So the right logit
# is pulled up by what it lacks, each wrong one is pushed down by what it took, and they sum to 0 (guess 1).
#
# [In the explorer: lower the logit of «o» as far as the slider goes. How large can its gradient become?
# Guess first.](../minitransformer/explorer/page/index.html#embed=output.dz[1,3]&turn=output.z[1,3])


# %%
def softmax_backward(dp, p):
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def cross_entropy_backward(p, wanted):  # from L back to z, through the softmax
    return (p - wanted) / len(p)


dz = cross_entropy_backward(p, wanted)

# %% [markdown]
# ![z, p, p* and dz of the running example](../plots/03_softmax_cross_entropy_numbers.png)
#
# A row whose p is close to its p* gets almost no gradient. (Gray entries are negative.)

# %%
from minitransformer import functional
from minitransformer.gradcheck import complex_step  # lesson 01

true = complex_step(lambda z: cross_entropy(z, wanted), z)
lesson.check("dz = (p − p*)/N against the complex step", error(dz, true), 1e-13)

rng = np.random.default_rng(3)
scores, upstream = 3 * rng.standard_normal((4, 6)), rng.standard_normal((4, 6))
true = complex_step(lambda scores: (upstream * softmax(scores)).sum(), scores)
lesson.check("softmax backward, any dp", error(softmax_backward(upstream, softmax(scores)), true), 1e-14)

ids = np.array([5, 1, 3, 3, 0, 0, 0])  # 0 is padding, which must not count
logits = 3 * rng.standard_normal((7, 6))
loss, cache = functional.cross_entropy(logits, ids, pad=0)
dlogits = functional.cross_entropy_backward(1.0, cache)
lesson.check("loss equal to the library's", error(cross_entropy(logits[:4], np.eye(6)[ids[:4]]), loss), 1e-13)
mine = cross_entropy_backward(softmax(logits[:4]), np.eye(6)[ids[:4]])
lesson.check("its gradient equal to the library's", error(mine, dlogits[:4]), 1e-13)
lesson.check("padding gets no gradient", np.abs(dlogits[4:]).max(), 0.0)

# %% [markdown]
# ## A mistake that learns
#
# Now for the student's p (1 − p), entry by entry, which keeps the diagonal of J and loses the rest. The right token's
# logit still gets its p − 1, the wrong ones get 0, and every shape fits. Let a model meet the same row again and again,
# with the shares of guess 2. On average the loss wants p* = (0.6, 0.3, 0.1), and the gradients are
#
#     right       dz_i = p_i − p*_i
#     mistaken    dz_i = p_i (1 − p_i) dp_i = −p*_i (1 − p_i)

# %%
shares = np.array([0.6, 0.3, 0.1])


def descend(wanted, mistaken, steps, z):
    """The probabilities after each step of gradient descent on the logits z, at the learning rate 0.1."""
    path = [softmax(z)]
    for _ in range(steps):
        p = path[-1]
        dz = -wanted * (1 - p) if mistaken else p - wanted
        z = z - 0.1 * dz
        path.append(softmax(z))
    return np.array(path)


runs = {mistaken: descend(shares, mistaken, 20000, np.zeros(3)) for mistaken in (False, True)}
for steps in (10, 80, 1000, 20000):
    for mistaken, path in runs.items():
        name = "mistaken" if mistaken else "right"
        print(f"{steps:5d} steps, {name:8s}: p = {path[steps].round(3)}, loss {-shares @ np.log(path[steps]):.4f}")
lesson.compare("the share of «t» with the mistake, in per cent", guess_rare, round(100 * runs[True][-1][2], 3))

# %% [markdown]
# ![Gradient descent with the right and with the mistaken gradient](../plots/03_softmax_cross_entropy.png)
#
# A point in the triangle stands for three probabilities: the closer it is to a corner, the more likely that corner's
# token. Paths begin at the dots, the gray lines are levels of the loss, and the star is p*. On the left all paths end
# at the star. On the right all end on the lower edge, where the probability of «t» is 0.
#
# The surprise: with two tokens, the mistake finds the right shares (see Going deeper), but with three, the rare one
# dies out, and the others take its share. Look, too, at the path that begins in the middle. After 80 steps the mistaken
# gradient has the *lower* loss, 0.8982 against 0.9031 nats, because on its way to the wrong place it passes the right
# one. After 20,000 steps its loss is 20.7 nats, but in a short run you would never notice. One look reveals the mistake
# without any training: the entries of dz must sum to 0.
#
# ## A loss that cannot reach 0
#
# A wanted probability of 1 asks for infinite logits. Label smoothing asks for a little less: it takes a share ε from
# the right token and spreads it over all V tokens, the right one included.
#
#     p*_i = (1 − ε) 1[i = right] + ε/V
#
# The gradient is p − p* as before, and it is 0 where p = p*. There the loss is −Σ_i p*_i ln p*_i, and no p makes it
# smaller (see Going deeper). This is the floor that guess 3 asked for.

# %%
V = 37000
one_hot = np.eye(1, V)  # (1, V): the right token has the number 0


def smooth(one_hot, eps):
    """p*, a share eps of which is spread over all tokens."""
    return (1 - eps) * one_hot + eps / one_hot.shape[-1]


wanted = smooth(one_hot, 0.1)
floor = cross_entropy(np.log(wanted), wanted)
library, _ = functional.cross_entropy(np.log(wanted), np.array([0]), smoothing=0.1, pad=-1)
lesson.check("the library's loss at p = p* is the floor", error(library, floor), 1e-12)
lesson.compare("the floor, in nats", guess_floor, floor)

# %% [markdown]
# For the paper's ε = 0.1 and V = 37,000 it is
#
#     the right token     p* = 0.9000027                  0.0948
#     36,999 others       p* = 0.0000027 each             1.2821
#     floor                                               1.3769 nats
#
# ![The loss with and without smoothing](../plots/03_softmax_cross_entropy_floor.png)
#
# Here all wrong logits are equal, and the right one leads. Both curves begin at ln V = 10.519 and fall. The blue one
# ends at 0, but the orange one touches the floor at a lead of 12.7 and then rises again, because now the model is too
# sure.
#
# The right token accounts for 0.095 of the 1.377 nats, and the rest, 93 % of the floor, is charged for the 36,999 wrong
# tokens. So a loss that is stuck at 1.4 may be very good news.
#
# **In papers:** −ln p of the right token is its *negative log-likelihood* (NLL), exp(L) is the *perplexity* (Jelinek et
# al. 1977), ln Σ_j exp(z_j) is *log-sum-exp*, and label smoothing is due to Szegedy et al. (2016).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 04.
#
# ### Why nothing is below the floor
#
# For every x > 0, ln x ≤ x − 1, with equality only at x = 1, where the straight line touches the logarithm.
# Take x = p_i / p*_i:
#
#     −Σ_i p*_i ln p_i + Σ_i p*_i ln p*_i  = −Σ_i p*_i ln(p_i / p*_i)
#                                          ≥ −Σ_i p*_i (p_i / p*_i − 1)
#                                          = −Σ_i p_i + Σ_i p*_i = −1 + 1 = 0
#
# So the loss is never below −Σ_i p*_i ln p*_i, which is called the entropy of p*, and only p = p* reaches it.

# %% [markdown]
# ### The logarithm of 0
#
# For the logits (1000, 0, 0), p is (1, 0, 0) in floating point. If you write the loss as −Σ_i p*_i ln p_i, it meets
# 0 · ln 0, which is NaN. With smoothing it meets ln 0 with a positive weight, and is infinite. Our `cross_entropy`
# takes ln p_i from the logits, as z_i − ln Σ_j exp(z_j). With the largest logit subtracted, the sum is at least 1, and
# ln 0 never happens. The true losses are 0 and 66.7 nats.

# %%
far, sure = np.array([1000.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0])
exact = [cross_entropy(far, target) for target in (sure, smooth(sure, 0.1))]
with np.errstate(divide="ignore", invalid="ignore"):
    naive = [-(target * np.log(softmax(far))).sum() for target in (sure, smooth(sure, 0.1))]
show("the two losses", [naive, exact], ["from p", "from the logits"], ["not smoothed", "smoothed"], digits=1)

# %% [markdown]
# ### Why three tokens differ from two
#
# With the mistaken gradient all logits rise forever, and p stays put if all rise at the same speed: p*_i (1 − p_i) =
# speed for all i. With two tokens, 1 − p_0 = p_1 and 1 − p_1 = p_0. So p stays put where p*_0 p_1 = p*_1 p_0, which
# means p = p*. With three tokens and p* = (0.6, 0.3, 0.1), p_i = 1 − speed/p*_i, and the three must sum to 1:
#
#     3 − speed (1/0.6 + 1/0.3 + 1/0.1) = 3 − 15 speed = 1          speed = 2/15
#     p of the rare token = 1 − (2/15)/0.1 = −1/3
#
# There is no such place. The rare logit falls behind for good, and the other two settle as if they were the only ones,
# at (2/3, 1/3, 0).

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. With the mistaken gradient and p*_0 ≥ p*_1 ≥ p*_2, when does the third token survive? Check
#    with `descend` that p* = (0.4, 0.35, 0.25) ends at (0.466, 0.389, 0.145): the rare become rarer.
# 2. Keyboard, 15 minutes. Write `smooth` for the definition that spreads ε over the V − 1 other tokens. Which line of
#    `cross_entropy_backward` changes?
#
# Exercises with a checker: `minitransformer start 03`.
#
# ## Questions
#
# 1. Why must each row of J sum to 0? Give the reason without a formula.
# 2. A batch has 100 tokens, and 40 of them are padding. A colleague divides the loss by 100. Why isn't that the same as
#    a smaller learning rate?
# 3. A model with V = 37,000 and ε = 0.1 reports 1.50 nats. How far is it from the best that it can do?
# 4. Why should a test of a softmax's backward pass have at least three entries in a row?
# 5. *Somewhere else.* A filter for spam has one logit z, p = 1/(1 + exp(−z)), and pays −ln p for spam and −ln(1 − p)
#    for other mail. What is the gradient of z? And if it paid (1 − p)² for spam, how much would it learn from a spam
#    message to which it gave p = 0.001?

# %%
survivor = descend(np.array([0.4, 0.35, 0.25]), True, 20000, np.zeros(3))[-1]
two = descend(np.array([0.7, 0.3]), True, 2000, np.zeros(2))[-1]
print("survivor", survivor.round(3), "two tokens", two.round(4))

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The sum of the rows of dy. The bias has the slope 1 in every token, whatever x is.
# 2. You forgot the mean: its 1/5 is a constant factor, and the same ratio everywhere means a wrong constant.
# 3. ln V. A model does worse if it is bold without knowing anything: its logits differ, and luck doesn't make up for
#    it.
#
# ### The questions
#
# 1. If all logits move together, no probability changes.
# 2. The factor 0.6 depends on how much padding the batch happens to have. Batches with more padding count less.
# 3. 0.123 nats, since the floor is 1.377.
# 4. With two entries, the diagonal of J by itself leads to the right place. The lost entries only cost a factor of 2 in
#    speed.
# 5. p − p* again, with p* = 1 for spam and 0 for other mail, because the sigmoid is the softmax of the two logits z
#    and 0. So that mail gets −0.999. With the square it gets −2 (1 − p) · p (1 − p) = −0.002, next to nothing: a
#    sigmoid that is sure is flat, and here there's no 1/p to make up for it.
#
# The exercise. First: the speed is 2 / (1/p*_0 + 1/p*_1 + 1/p*_2), and the third token survives if 1 − speed/p*_2 > 0,
# which is p*_2 (1/p*_0 + 1/p*_1) > 1. Second: `np.where(one_hot == 1, 1 - eps, eps / (V - 1))`. No line of backward
# changes: the gradient is p − p* for any p* with the sum 1.


# %%
# the pictures of this lesson
def on_paper(p):
    """Probabilities of three tokens (..., 3) as points of a triangle."""
    return p[..., 1] + p[..., 2] / 2, p[..., 2] * np.sqrt(3) / 2


fine = np.array([(i, j, 60 - i - j) for i in range(1, 59) for j in range(1, 60 - i)]) / 60
starts = np.log([[1, 1, 1], [8, 1, 1], [1, 8, 1], [1, 1, 8], [1, 9, 9], [9, 1, 9], [20, 20, 1]])
figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.7))
for panel, mistaken, color in zip(axes, (False, True), (BLUE, ORANGE), strict=True):
    panel.tricontour(*on_paper(fine), -np.log(fine) @ shares, levels=14, colors="#dddddd", linewidths=0.7)
    panel.plot(*on_paper(np.eye(3)[[0, 1, 2, 0]]), color=GREY, linewidth=1)
    for start in starts:
        path = descend(shares, mistaken, 2000, start)
        panel.plot(*on_paper(path), color=color, linewidth=1.2)
        panel.plot(*on_paper(path[0]), "o", color=color, markersize=3)
    panel.plot(*on_paper(shares), "k*", markersize=11)
    for corner, token, place in zip(np.eye(3), "ost", ((0, -12), (0, -12), (0, 4)), strict=True):
        panel.annotate(token, on_paper(corner), place, textcoords="offset points", ha="center", weight="bold")
    panel.set(title="mistaken: −p* (1 − p)" if mistaken else "right: p − p*", aspect="equal", xticks=[], yticks=[])
    panel.set_axis_off()
lesson.save(figure)

values = {f"{name} (T, V)": example[f"output.{name}"] for name in ("z", "p")}
values |= {"p* (T, V)": np.eye(7, dtype=int)[right], "dz (T, V)": dz}
marked = {name: [(1, 3), (1, 4)] for name in ("z", "p", "p*", "dz")}
figure = grids(values, labels={"T": ROWS, "V": VOCABULARY}, gradients={"dz"}, highlight=marked)
lesson.save(figure, "numbers")

leads = np.linspace(0, 40, 81)
figure, axis = plt.subplots(figsize=(6.4, 3.4))
for eps, color, label in ((0.0, BLUE, "ε = 0"), (0.1, ORANGE, "ε = 0.1")):
    axis.plot(leads, [cross_entropy(lead * one_hot, smooth(one_hot, eps)) for lead in leads], color=color, label=label)
axis.axhline(floor, color=GREY, linestyle=":", label=f"floor, {floor:.3f} nats")
axis.set(xlabel="lead of the right logit over all others", ylabel="loss (nats)", title="A smoothed loss has a floor")
axis.legend()
lesson.save(figure, "floor")
lesson.finish(globals())
