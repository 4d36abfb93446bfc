# %% [markdown]
# # Lesson 02: Which of 110 numbers is to blame?
#
# [![The feed-forward networks](../plots/02_linear_relu_map.png)](../plots/00_reverse_whole.png)
#
# **The output of a layer should change. How much of that is up to each weight, each bias and each input?**
#
# 11 min, with a pencil 30, going deeper 6 · runs in 60 s (fast: 8 s) · needs 01 · difficulty 2 of 5 · paper: section
# 3.3, equation 2
#
# ## 110 numbers and one complaint
#
# Our tiny model reads "stop" and should write "pots". Its decoder, the half that writes, works on five rows at once,
# each named by what it has just read and what it must write next. Four of them do well, but row p→o gives «o» 70 % and
# «p» 30 %. The loss turns this into a complaint (lesson 03), which travels back through the model. By the time it
# reaches the decoder's feed-forward network, the complaint of row p→o has become six numbers, one for each output:
#
#     dy = (0.075, −0.007, −0.025, −0.078, 0.054, −0.019)
#
# The first one says that if output 0 grows by a little, the loss grows by 0.075 times as much. So output 0 should fall,
# and output 3, with −0.078, should rise. But we can't set outputs: the network computes them from its input and from
# 110 numbers of its own, two matrices and two biases. Which of the 110 are to blame, and by how much?

# %% Imports
from functools import partial

from support.graph import Graph
from support.lab import BLUE, GREY, ORANGE, PINK, ROWS, TARGET_OUT, VOCABULARY, begin, error, plt, running_example, show
from support.pictures import matrix_text, rectangles

import numpy as np

lesson = begin("02_linear_relu")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (01) With h = 1e-15 a difference quotient disagrees with your formula by 20 %. Why does this say nothing about the
#    formula?
# 2. (01) One forward pass judges all 826 gradients of the model. Which two numbers does it compare?
# 3. (00) Why does the loss use −ln p, and not simply 1 − p?
#
# (The answers are at the end.)

# %% [markdown]
# ## Three steps, and three guesses
#
# The network is equation 2 of the paper, max(0, x W_1 + b_1) W_2 + b_2. It works on N tokens, here our T = 5 rows, each
# on its own. A token comes in as a row of x with C = 6 numbers, its features, and there are three steps:
#
#     a = x W_1 + b_1      (N, F)     F = 8 units, each a weighted sum of the features
#     r = max(0, a)        (N, F)     ReLU: a unit whose sum is negative is off
#     y = r W_2 + b_2      (N, C)     each unit that is on adds its row of W_2, times its r
#
# (Without the max, two matrices in a row do nothing that the one matrix W_1 W_2 couldn't do.)
#
# 1. A layer multiplies x (N, C) by W (C, F), and dy (N, F) comes back. Multiply x and dy in either order, transposing
#    none, one or both. How many of these eight products have the shape of W? How many if W is square, C = F?
# 2. Gradient descent takes one step, on these 110 numbers only. Afterwards, row p→o gives its letter 88 % instead of
#    70 %. What happens to row bos→p, which gave its letter 95 %?
# 3. A colleague transposes dW in every square matrix of a Transformer. What percentage of unseen words will it reverse?

# %%
guess_bos = ...  # the probability of the right letter in row bos→p after the step, in per cent
guess_words = ...  # unseen words that the model with the transposed dW reverses, in per cent

# %% [markdown]
# ## Four units of eight are on
#
# Take unit 1 in row p→o. Its sum has a term for each feature, and the bias:
#
#     0.175 · (−0.62) + 1.020 · 0.79 − 1.544 · (−0.13) + 1.118 · 0.35 − 1.190 · 0.74 + 0.581 · 0.26 + 0.05 = 0.610
#
# The sum is positive, so the unit is on, and adds 0.610 times row 1 of W_2 to the output. Units 0, 5, 6 and 7 have
# negative sums, so for this row they are off.


# %%
def linear(x, W, b):
    return x @ W + b


def relu(a):
    return np.maximum(a, 0)


def feed_forward(x, W_1, b_1, W_2, b_2):
    a = linear(x, W_1, b_1)
    r = relu(a)
    return a, r, linear(r, W_2, b_2)


x, W_1, b_1, W_2, b_2 = (example[f"decoder.ffn.{name}"] for name in ("x", "W_1", "b_1", "W_2", "b_2"))
a, r, y = feed_forward(x, W_1, b_1, W_2, b_2)
show("a (T, F)", a, ROWS, range(8))

# %% [markdown]
# ## Follow each number to the loss
#
# There's only one rule, the chain rule. **Take each output that a number touches, multiply the gradient of this output
# by its slope with respect to the number, and add up.** Here is the linear layer y = x W + b, from C features to F
# outputs, with all of its indices:
#
#     y_ni = Σ_c x_nc W_ci + b_i          token n, feature c, output i
#
# The input x_nc touches all outputs of its own token. Output i has the slope W_ci, and the result is passed to the
# layer below:
#
#     dx_nc = Σ_i dy_ni W_ci              dx = dy Wᵀ
#
# **Your lines.** Which outputs does the weight W_ci touch? The matrix W_1 has the input x, (T, C), and the output a,
# whose gradient `da`, (T, F), has come back. And how does da come from dr, through r = max(0, a)?

# %%
dy, dr, da = (example[f"decoder.ffn.{name}"] for name in ("dy", "dr", "da"))
dW_1 = ...  # your line: from x and da
gated = ...  # your line: da, from dr and a
lesson.judge("dW_1", dW_1)
lesson.judge("gated", gated)

# %% [markdown]
# The weight W_ci touches only output i, but for *every* token, with the slope x_nc. The bias b_i also touches output i
# of every token, with the slope 1:
#
#     dW_ci = Σ_n x_nc dy_ni              dW = xᵀ dy
#     db_i = Σ_n dy_ni                    db is the sum of the rows of dy
#
# So tokens stay separate in dx and come together in dW and db. In ReLU each entry touches only itself, with the slope 1
# where it is positive and 0 where it is negative, which we write as 1[a > 0]. (At 0 itself there is no derivative; we
# take 0, as most code does.)
#
#     da_ni = dr_ni 1[a_ni > 0]           da = dr ∘ 1[a > 0]
#
# A unit that is off is a closed gate, and no complaint gets through. The whole network, backward, is its three steps
# from the last to the first.


# %%
def linear_backward(dy, x, W):
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)  # dx, dW, db


def relu_backward(dr, a):
    return dr * (a > 0)


def feed_forward_backward(dy, x, a, r, W_1, W_2):
    dr, dW_2, db_2 = linear_backward(dy, r, W_2)
    da = relu_backward(dr, a)
    dx, dW_1, db_1 = linear_backward(da, x, W_1)
    return {"x": dx, "a": da, "r": dr, "W_1": dW_1, "b_1": db_1, "W_2": dW_2, "b_2": db_2}


gradients = feed_forward_backward(dy, x, a, r, W_1, W_2)

# %% [markdown]
# ![The feed-forward network with its numbers, forward and backward](../plots/02_linear_relu_graph.png)
#
# Read the orange numbers from right to left. Those below r are dr, whose last is 0.055: the loss would like less of
# unit 7. But unit 7 is off: its gate is closed, da is 0, and the weights that feed it hear nothing from this row.
# The heaviest complaint goes to unit 1, and the largest gradient of all 110 belongs to the weight from feature 2 to
# unit 1:
#
#     dW_1[2, 1] = Σ_n x[n, 2] da[n, 1] = 0.028 − 0.206 − 0.031 + 0.000 + 0.000 = −0.209
#
# There is one term for each row, and nearly all of the sum comes from row p→o. The minus sign says that this weight
# should grow. Unit 6 is off in all five rows, so the six weights that feed it, its bias and its six weights in W_2 all
# have a gradient of 0: from this word, 13 of the 110 numbers learn nothing.
#
# [In the explorer: raise the bias of unit 0 from −0.18 to −0.1. What becomes of its da in row p→o?
# Guess first.](../minitransformer/explorer/page/index.html#embed=decoder.ffn.da[1,0]&turn=decoder.ffn.b_1[0])
#
# > **1986.** David Rumelhart, Geoffrey Hinton and Ronald Williams showed in Nature that units inside a network learn
# > useful features on their own, if errors travel back through the weights. Others had found the rule before: Seppo
# > Linnainmaa in 1970, for rounding errors, and Paul Werbos in 1974. Units then had a smooth slope; ReLU, which
# > Kunihiko Fukushima used in 1969, became common only after 2010.
#
# To act on the blame, subtract 0.3 times its gradient from each of the 110 numbers.

# %%
from support.example_numbers import numbers

from minitransformer.example import load_example

PARAMETERS = ("W_1", "b_1", "W_2", "b_2")
right = [VOCABULARY.index(letter) for letter in TARGET_OUT]


def after_step(size):
    """The example's loss, and each row's probability of its right letter, after a step on the 110 numbers."""
    tiny = load_example()
    layer = tiny.model.decoder.layers[0].feed_forward.sublayer
    for name, parameter in zip(PARAMETERS, layer.parameters(), strict=True):
        parameter.data -= size * gradients[name]
    after = numbers(tiny)  # run the model again, and keep all of its numbers
    return float(after["output.L"]), after["output.p"][range(5), right]


stepped = {size: after_step(size) for size in (0.0, 0.3, 1.0)}
for size, (loss, sure) in stepped.items():
    show(f"step {size}, loss {loss:.4f}: probability of the right letter", sure, columns=ROWS)
lesson.compare("row bos→p after the step of 0.3, in per cent", guess_bos, 100 * stepped[0.3][1][0])

# %% [markdown]
# It works: row p→o now gives «o» 88 % instead of 70 %, and the loss falls from 0.1108 to 0.0710. But row bos→p pays for
# it, and falls from 95 % to 89 %. A longer step serves as a warning: at 1.0 our row reaches 96 %, and bos→p is down to
# 40 %. All rows share the 110 numbers, which is why dW sums over the tokens, and why steps are small.
#
# ## The shapes nearly know it
#
# Don't memorize these formulas: write down the shapes of x, W and dy, and only one product fits.
#
# ![Shapes of the linear layer, forward and backward](../plots/02_linear_relu_shapes.png)
#
# One of the eight products fits dW. But let W be square, C = F, as some matrices of attention are (lesson 08), and two
# fit: dyᵀ x, which is dW transposed, has the same shape. In dx, dy W fits as well as dy Wᵀ, and no error message tells
# you. If N equals C and F, all eight fit. So give every axis of a test a different length, and check the numbers too:

# %%
from minitransformer.gradcheck import complex_step  # the gradient of a number f(x), as in lesson 01
from minitransformer.layers import FeedForward

rng = np.random.default_rng(0)
N, C, F = 7, 4, 5
shapes = {"x": (N, C), "W_1": (C, F), "b_1": F, "W_2": (F, C), "b_2": C}
given = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
upstream = rng.standard_normal((N, C))  # the random dy of lesson 01
hidden_a, hidden_r, mine = feed_forward(**given)
found = feed_forward_backward(upstream, given["x"], hidden_a, hidden_r, given["W_1"], given["W_2"])


def loss_with(name, value):
    """Σ upstream ∘ y, with another value for one of the five inputs."""
    return (upstream * feed_forward(**{**given, name: value})[2]).sum()


for name in given:
    true = complex_step(partial(loss_with, name), given[name])
    lesson.check(f"d{name} against the complex step", error(found[name], true), 1e-14)

layer = FeedForward(C, F, dtype=np.float64)
for name, parameter in zip(PARAMETERS, layer.parameters(), strict=True):
    parameter.data[...] = given[name]
library, cache = layer.forward(given["x"])
lesson.check("y equal to the library's", error(mine, library), 1e-14)
lesson.check("dx equal to the library's", error(found["x"], layer.backward(upstream, cache)), 1e-14)

# %% [markdown]
# ## Does a wrong gradient show?
#
# For the third guess we train a small Transformer with C = 32 to reverse words of up to six letters «o», «p», «s» and
# «t». Four of its matrices are square, all of them in attention. Then we train it again, with a mistake in the backward
# pass of these four: dW transposed, or dx = dy W; one more run is a control in which dW = 0, so the four stay as random
# as they began.

# %%
from unittest.mock import patch

from minitransformer import functional
from minitransformer.data import get_task
from minitransformer.evaluation import decode_and_score
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import TrainingSettings, cosine, train

MISTAKES = {  # what the backward pass of a square matrix returns instead of dx and dW
    "no mistake": lambda dx, dW, dy, W: (dx, dW),
    "dW transposed": lambda dx, dW, dy, W: (dx, dW.T),
    "dW = 0": lambda dx, dW, dy, W: (dx, 0 * dW),
    "dx = dy W": lambda dx, dW, dy, W: (dy @ W, dW),
}


def train_with(mistake, seed=4):
    """The loss of each step, and the share of unseen words that the trained model reverses."""

    def backward(dy, cache, out=None):
        dx, dW, db = functional.linear_backward(dy, cache)
        if dW.shape[0] == dW.shape[1]:
            dx, dW = MISTAKES[mistake](dx, dW, dy, cache.W)
        return dx, dW, db

    task, steps = get_task("reverse"), lesson.pick(full=600, fast=40)
    task.symbols, task.max_len = "opst", 6
    sizes = {"d_model": 32, "num_heads": 2, "d_ff": 64, "num_layers": 1, "dropout": 0.0}
    model = Transformer(TransformerConfig(len(task.vocabulary), **sizes), seed=seed)
    schedule, settings = partial(cosine, steps=steps, peak=6e-3, warmup=50), TrainingSettings(steps)
    with patch("minitransformer.layers.linear.linear_backward", backward):  # in all linear layers of the model
        losses = train(model, task, schedule=schedule, settings=settings).losses
    return losses, decode_and_score(model, task.held_out_batch(np.random.default_rng(5), 500))[1]


trained = {mistake: train_with(mistake) for mistake in MISTAKES}
for mistake, (losses, share) in trained.items():
    print(f"{mistake:13s}: last losses {np.mean(losses[-20:]):.4f}, unseen words reversed {share:.1%}")
if not lesson.fast:
    lesson.compare("unseen words with dW transposed, in per cent", guess_words, 100 * trained["dW transposed"][1])

# %% [markdown]
# ![Training with wrong gradients](../plots/02_linear_relu.png)
#
# Three curves run together, and one stays above them. (If your gray curve does too, your task needs the four matrices.)
# The transposed dW does no harm: 100 % of the unseen words come out right, as with the right gradient. The control says
# why: with no gradient at all for the four matrices it is 100 % too, because the layers around a random matrix learn
# and adapt to it. The wrong dx is worse, because it garbles the complaint for every layer below: 22 % of the words, and
# 91 % from another start. But its curve falls smoothly for 600 steps. Without the blue curve next to it, you'd call it
# a slow learner and try another learning rate.
#
# So a falling loss isn't evidence that a gradient is right. The complex step is, and it takes a second.
#
# **In papers:** dy is the *upstream gradient*, dy Wᵀ a *vector-Jacobian product* (VJP), the network a *multilayer
# perceptron* (MLP), a unit that is always off a *dead ReLU*, and the lesson's question *credit assignment* (Minsky
# 1961).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 03.
#
# ### The kink
#
# Which method from lesson 01 can you trust near a = 0? If |a| < h, a two-sided difference has a point on each side of
# 0, and says
#
#     (max(0, a + h) − max(0, a − h)) / 2h = (a + h − 0) / 2h = 1/2 + a/2h
#
# That is a ramp where a step should be, and 1/2 at the kink. The complex step stays at a, so it is right everywhere
# except at 0 itself, where it says 1, the slope on the right.
#
# How often does a difference step over a kink? Move the inputs of many units by ±h along a random direction. Let the
# sum a of a unit, and the rate at which it changes on the way, be independent and standard normal. The two points are
# on opposite sides of the kink if |a| < h |rate|. The density of a near 0 is 1/√(2π), so this has the probability 2h
# |rate| / √(2π). The mean of |rate| is √(2/π). Together this is 2h/π.
#
# That is small, but a network has many units. With 2,000 tokens and 512 units there are 1,024,000 sums. We expect 6.5
# of them to cross at h = 1e-5, and 9 did, which alone make the two-sided difference wrong by 0.67 %. The complex step
# crosses none.

# %%
h, rng = 1e-5, np.random.default_rng(2)
N, C, F = 2000, 64, 512
x, direction, dy = rng.standard_normal((N, C)), rng.standard_normal((N, C)), rng.standard_normal((N, F))
W = rng.standard_normal((C, F)) / np.sqrt(C)  # then x W is standard normal, and direction W as well


def loss_at(step):
    return (dy * relu((x + step * direction) @ W)).sum()


exact = (relu_backward(dy, x @ W) * (direction @ W)).sum()
crossed = np.count_nonzero(((x + h * direction) @ W > 0) != ((x - h * direction) @ W > 0))
off = error((loss_at(h) - loss_at(-h)) / (2 * h), exact)
print(f"expected to cross {N * F * 2 * h / np.pi:.1f}, crossed {crossed}, difference off by {off:.2%}")
lesson.check("complex step along the direction", error(loss_at(1e-30j).imag / 1e-30, exact), 1e-12)

# %% [markdown]
# ### Where a mistake hides
#
# If W is symmetric, dx = dy W is right, so a check at W = 0, or at the identity, passes with the wrong formula. Check
# at random weights.
#
# In a batch, x is (B, T, C). Count the tokens of all sequences together, N = B T, and all the formulas above hold. So
# db is a sum over two axes, B and T. If you sum only over the first one, db has the shape (T, F), and NumPy silently
# broadcasts b − lr db to that shape. (lr is the learning rate, the size of the step.)
#
# ## Exercise
#
# 1. Pencil, 10 minutes. A layer uses one matrix twice: y = x W Wᵀ. Derive dx and dW, and compare with the complex step.
# 2. Keyboard, 15 minutes. Leaky ReLU is y = a for a > 0 and y = 0.01 a otherwise. Write it in a file my.py as a class
#    MyLayer, derived from `minitransformer.core.Layer`: forward(a) returns y and a cache, and backward(dy, cache)
#    returns da. Then run `minitransformer gradcheck my.py:MyLayer`.
#
# Exercises with a checker: `minitransformer start 02`.
#
# ## Questions
#
# 1. Why does dW sum over the tokens, and dx not?
# 2. W is (512, 512), and a student wrote dx = dy W. Which of these would find it: an assertion on shapes, a check at
#    the identity, a check at random weights, a look at the loss?
# 3. You check a large ReLU network by differences. Three of many thousand entries are wrong by a few percent. Is there
#    a mistake?
# 4. A unit is off for every token of every batch. Can training switch it on again?
# 5. *Somewhere else.* A convolution slides three weights over a row of numbers: y_n = Σ_i x_(n+i) W_i with i = 0, 1, 2.
#    Which outputs does W_i touch, and which x_m? What are dW and dx for x = (1, 2, 3, 4), W = (1, 0, −1) and dy = (1,
#    10)?

# %%
# This gives away exercise 1. Skip it until you have your own answer.
W = rng.standard_normal((4, 5))
x, dy = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
true = complex_step(lambda W: (dy * (x @ W @ W.T)).sum(), W)
lesson.check("exercise 1: dW = (xᵀ dy + dyᵀ x) W", error((x.T @ dy + dy.T @ x) @ W, true), 1e-14)

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Because f is rounded, and dividing the rounding error, about 2e-16, by 1e-15 gives 0.2. The formula may be right.
# 2. The slope of the loss along a random direction u, from the complex step, and Σ_j g_j u_j, from the backward pass.
# 3. The probability of an answer is a product. The logarithm makes it a sum, whose gradient is a sum too, and there's
#    no limit to what it charges for being sure and wrong.
#
# ### The questions
#
# 1. All tokens use the same W, so a change of W reaches the loss through all of them. A row of x enters only its own
#    row of y.
# 2. Only the check at random weights.
# 3. Perhaps not: a difference may have stepped over a kink. If you make h smaller, errors from kinks become rarer, but
#    a mistake stays. Or use the complex step.
# 4. Not through its own weights, whose gradients are all 0. But the layers below still learn and change x, and that can
#    make its sum positive.
# 5. W_i touches all outputs, each with the slope x_(n+i), so dW_i = Σ_n dy_n x_(n+i), and dW = (21, 32, 43). x_m
#    touches the outputs n = m − i, at most three, so dx_m = Σ_i dy_(m−i) W_i over those that exist, and dx = (1, 10,
#    −1, −10).
#
# The exercise. First: dx = dy W Wᵀ. W is used twice, so dW has two terms. With r = x W held fixed, y = r Wᵀ gives the
# term dyᵀ r, which is dyᵀ x W. With Wᵀ held fixed, dr = dy W, and r = x W gives the term xᵀ dr, which is xᵀ dy W.
# Together dW = (xᵀ dy + dyᵀ x) W. Second: da = dy where a > 0, and 0.01 dy elsewhere.

# %%
# the pictures of this lesson
graph = Graph()
nodes = ["row p→o", "x W_1 + b_1", "max(0, a)", "r W_2 + b_2", "to the loss"]
for place, node in enumerate(nodes):
    graph.node(node, (1.6 * place, 0), lit=0 < place < 4)
edges = {name: (example[f"decoder.ffn.{name}"], example[f"decoder.ffn.d{name}"]) for name in "xary"}
for place, (name, (value, gradient)) in enumerate(edges.items()):
    above, below = matrix_text(value[1:2].T), matrix_text(gradient[1:2].T, digits=3)
    graph.edge(nodes[place], nodes[place + 1], above, below, label=name)
lesson.save(graph.draw("The row p→o: values above, gradients below"), "graph")

picture = [("y", "N", "F"), "=", ("x", "N", "C"), "×", ("W", "C", "F"), "\n"]
picture += [("dW", "C", "F"), "=", ("xᵀ", "C", "N"), "×", ("dy", "N", "F"), "\n"]
picture += [("dx", "N", "C"), "=", ("dy", "N", "F"), "×", ("Wᵀ", "F", "C")]
lesson.save(rectangles(picture, {"N": 5, "C": 6, "F": 8}, gradients={"dW", "dy", "dx"}), "shapes")

figure, axis = plt.subplots(figsize=(6.4, 3.4))
for mistake, color, style in zip(trained, (BLUE, ORANGE, GREY, PINK), ("-", "--", ":", "-"), strict=True):
    smooth = np.convolve(trained[mistake][0], np.ones(20) / 20, mode="valid")
    axis.semilogy(smooth, style, color=color, label=mistake)
axis.set(xlabel="step of training", ylabel="loss (mean of 20 steps)", title="Only one wrong gradient shows")
axis.legend()
lesson.save(figure)
lesson.finish(globals())
