# %% [markdown]
# # Lesson 11: Residuals, dropout, and the norm that moved
#
# [![The Transformer, its residual paths and norms lit](../plots/11_residuals_map.png)](../plots/00_reverse_whole.png)
#
# **The paper puts a norm after each sub-layer, and most code puts it before. Who is right, and what difference does it
# make?**
#
# 12 min, with a pencil 30, going deeper 8 · runs in 50 s (fast: 9 s) · needs 02, 04, 06, 08, 10 · difficulty 3 of
# 5 · paper: sections 3.1 and 5.4, figure 1
#
# ## What the row would forget
#
# Our row p→o arrives at cross-attention with six numbers. They carry what it knows: it has read «p», and it is at
# position 1. Cross-attention answers with six other numbers, which are made only from the source. If this answer
# replaced the row, the row would forget who it is, and the paper's decoder has 18 such steps, called sub-layers.
#
# So the paper adds. A sub-layer f reads the row x, and its answer is added to the row:
#
#     x        = (0.427, 0.635, −1.310, 0.368, −1.138, 1.203)
#     f(x)     = (0.119, 0.671, −0.082, 0.854, 0.374, −0.380)
#     x + f(x) = (0.546, 1.305, −1.392, 1.222, −0.765, 0.823)
#
# This is a residual connection, and the way past the sub-layer is called the identity path. In our row x has the length
# 2.28 and f(x) 1.22, so the sum is mostly old. In row o→t it is 2.25 and 4.81, mostly new.

# %% Imports
from functools import partial

from support.graph import Graph
from support.lab import BLUE, GREY, ORANGE, ROWS, SKY, YELLOW, begin, error, plt, running_example, show
from support.pictures import matrix_text

import numpy as np

from minitransformer.core import Layer, Parameter
from minitransformer.functional import cross_entropy, cross_entropy_backward, layer_norm, layer_norm_backward
from minitransformer.gradcheck import complex_step
from minitransformer.layers import FeedForward, LayerNorm, Residual, SelfAttention
from minitransformer.layers.embedding import Embedding, OutputProjection
from minitransformer.system.progress import tqdm
from minitransformer.training import Adam

lesson = begin("11_residuals")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (04) Why do the gradients of the three uses of E add up, instead of being averaged?
# 2. (06) Which gradients of attention become 0 if all tokens of a source are alike, and which don't?
# 3. (10) What does LayerNorm do to the gradient of a row that is ten times as large as another?
#
# (The answers are at the end.)

# %% [markdown]
# ## Four models that should do nothing
#
# 1. Four models are asked to repeat each token, which takes no sub-layer at all: with the norm after the sum or before
#    the sub-layer, and with or without warm-up (a learning rate that rises slowly from 0). Which of them learn it?
# 2. In those that don't: is the gradient too small from the start, or does it become too small?
#
# ## One sum, two paths back
#
# With a name for each step of the forward pass:
#
#     f(x) = CrossAttention(x, M)
#     sum  = x + f(x)
#     y    = LayerNorm(sum)
#
# Backward begins at the last line. LayerNorm takes dy to dsum (lesson 10), and cross-attention takes the gradient of
# its answer to a gradient of what it has read, here through the queries (lesson 06).

# %%
x, f_x = example["cross.x"], example["cross.y"]
total = x + f_x
y, cache = layer_norm(total, example["decoder.norm2.gamma"], example["decoder.norm2.beta"])
dsum, _, _ = layer_norm_backward(example["decoder.norm2.dy"], cache)
dq = np.concatenate(list(example["cross.dq"]), axis=-1)  # the two heads side by side (lesson 08)
through = dq @ example["cross.W_q"].T  # what comes back through cross-attention, if its answer gets dsum

# %% [markdown]
# **Your line.** What is the gradient of x?

# %%
dx_of_x = ...  # your line: from dsum and through, (T, C)
lesson.judge("dx_of_x", dx_of_x)

# %% Ours
dx = dsum + through
row_lengths = np.linalg.norm([x, f_x, dsum, through], axis=-1).T
show("lengths", row_lengths, ROWS, ["x", "f(x)", "dsum", "through f"])

# %% [markdown]
# The row x is used twice, so its gradient has one term for each use. **A sum doesn't divide the gradient that arrives:
# it hands all of it to each of its terms.**
#
#     dx = dsum + CrossAttention's backward of dsum
#
# On the identity path the gradient arrives unchanged, and on the other it may come back larger or smaller.
#
# ![The residual path of row p→o, with its numbers](../plots/11_residuals_graph.png)
#
# In our row, dsum has the length 0.216, and what comes back through cross-attention has 0.532. Forward, the row is
# mostly itself, but backward, most of its gradient comes through the attention: what the row asks for matters more to
# the loss than what it carries along.
#
# > **2015.** He, Zhang, Ren and Sun saw a network of 56 layers fit even its training images worse than one of 20. They
# > let each block add to its input instead of replacing it, and won ImageNet with 152 layers. Srivastava, Greff and
# > Schmidhuber had opened such highways, with gates as in an LSTM, a few months before. In 2016, He's group moved the
# > norm to the front of the block.

# %% [markdown]
# ## Dropout
#
# Dropout is the paper's way to keep a model from relying on single features. In training, each number of f(x) is set to
# 0 with a small probability, 0.1 in the paper, and divided by 0.9 otherwise:
#
#     mask  = 0 with probability 0.1, else 1/0.9
#     mean of mask = 0.1 · 0 + 0.9 · 1/0.9 = 1
#     sum   = x + mask ∘ f(x)           so     d(f(x)) = mask ∘ dsum
#
# Thanks to the division, the mean of mask ∘ f(x) is f(x), so after training we leave the mask out. Backward must use
# the mask that forward drew. And the mask goes on f(x), not on the sum: on the sum, a feature would survive 24
# sub-layers with a probability of only 0.9²⁴ = 0.080.
#
# ## The norm that moved
#
# Few questions about the Transformer are asked more often than this one: why doesn't the code do what the paper says?
# Its section 3.1 and figure 1 put the norm after the sum, but much code puts it before the sub-layer:
#
#     post-norm   y = LayerNorm(x + mask ∘ f(x))        the paper, BERT
#     pre-norm    y = x + mask ∘ f(LayerNorm(x))        GPT-2, T5, LLaMA, the Annotated Transformer
#
# Both are right: two models with different gradients. In pre-norm nothing on the identity path is normalized, and x
# grows from sum to sum, so the model has one more norm at its very end.
#
# ![Two sub-layers with post-norm, and with pre-norm](../plots/11_residuals_norms.png)
#
# (Orange is what is left of the gradient on the identity path, as derived below.) The way back through pre-norm:
#
#     dnormed = f's backward of mask ∘ dy
#     dx      = dy + LayerNorm's backward of dnormed
#
# The first term of dx, which in post-norm is dsum and has gone through the norm, is now dy itself, untouched. In code,
# each piece returns its output and a function `back` that takes dy to dx.


# %%
def post_norm(x, mask, sublayer, norm):
    f_x, back_sublayer = sublayer(x)
    y, back_norm = norm(x + mask * f_x)

    def back(dy):
        dsum = back_norm(dy)
        return dsum + back_sublayer(mask * dsum)

    return y, back


def pre_norm(x, mask, sublayer, norm):
    normed, back_norm = norm(x)
    f_x, back_sublayer = sublayer(normed)

    def back(dy):
        dnormed = back_sublayer(mask * dy)
        return dy + back_norm(dnormed)

    return x + mask * f_x, back


def piece(layer):
    """A layer of the library as a function, x -> y and `back`."""

    def forward(x):
        y, cache = layer.forward(x)
        return y, lambda dy: layer.backward(dy, cache)

    return forward


rng = np.random.default_rng(3)
B, T, C, F = 2, 3, 5, 7
given, upstream = rng.standard_normal((2, B, T, C))
for add_norm, placement in ((post_norm, "post"), (pre_norm, "pre")):
    network, norm = FeedForward(C, F, dtype="float64"), LayerNorm(C, dtype="float64")
    layer = Residual(network, norm, dropout_rate=0.3, placement=placement)
    for parameter in layer.parameters():
        parameter.data[...] = rng.standard_normal(parameter.data.shape)
    library, cache = layer.forward(given, rng=rng)
    mask = cache.dropout.keep * cache.dropout.scale  # the one that the library drew
    mine = partial(add_norm, mask=mask, sublayer=piece(layer.sublayer), norm=piece(layer.norm))
    y, back = mine(given)
    true = complex_step(lambda x, mine=mine: (upstream * mine(x)[0]).sum(), given)
    lesson.check(f"{placement}-norm: dx, against the complex step", error(back(upstream), true), 1e-13)
    lesson.check("... and the library's", error(back(upstream), layer.backward(upstream, cache)), 1e-13)
    lesson.check("... y equal to the library's", error(y, library), 1e-13)

# %% [markdown]
# ## What the gradient loses on its way past the norms
#
# The popular argument for pre-norm goes like this. Before training γ = 1, so in post-norm each norm gives x the
# variance 1. If f(x) has the same variance and is independent of x, the variance of the sum is 2, and σ = √2.
# LayerNorm's backward pass divides by σ (lesson 10), so each norm multiplies the gradient on the identity path by about
# 1/√2, and 24 of them by
#
#     (1/√2)²⁴ = 2⁻¹² = 0.00024
#
# In pre-norm this factor is 1. So in post-norm the gradient should vanish on its way down, and the lower layers
# shouldn't learn. To find out, we build an untrained stack of 12 encoder layers, whose 24 sub-layers are each followed
# by "add & norm". How large is dx at the bottom, if it is 1 at the top?

# %%
guess = ...  # the length of dx below 24 post-norm sub-layers, if it is 1 above them
B, S, C, F, H, LETTERS, LAYERS = 32, 8, 32, 64, 4, 10, 12
TOP = 2 * LAYERS  # the number of sub-layers


class Stack(Layer):
    def __init__(self, placement, seed, dtype="float32"):
        rng = np.random.default_rng(seed)
        E = Parameter((rng.standard_normal((LETTERS, C)) / C**0.5).astype(dtype))
        options = {"rng": rng, "dtype": dtype}
        self.layers = [Embedding(E)]
        for _ in range(LAYERS):
            for sublayer in (SelfAttention(C, H, **options), FeedForward(C, F, **options)):
                self.layers.append(Residual(sublayer, LayerNorm(C, dtype=dtype), placement=placement))
        if placement == "pre":
            self.layers.append(LayerNorm(C, dtype=dtype))
        self.layers.append(OutputProjection(E))

    def measure(self, ids):
        """Forward and backward -> the loss. Keeps x and dx at TOP + 1 depths, from the bottom to the top."""
        self.zero_grad()
        x, self.caches = [ids], []
        for layer in self.layers:
            y, cache = layer.forward(x[-1])
            x.append(y)
            self.caches.append(cache)
        loss, cache = cross_entropy(x[-1], ids, pad=-1)
        dx = [cross_entropy_backward(1.0, cache)]
        for layer, cache in zip(self.layers[::-1], self.caches[::-1], strict=True):
            dx.insert(0, layer.backward(dx[0], cache))
        self.x, self.dx = x[1 : TOP + 2], dx[1 : TOP + 2]  # without the ids, the final norm and the logits
        return float(loss)


def sizes(dx):
    """The length of each gradient, as a share of the one at the top."""
    return [np.linalg.norm(each) / np.linalg.norm(dx[-1]) for each in dx]


ids = np.random.default_rng(101).integers(0, LETTERS, (B, S))
untrained = {placement: Stack(placement, seed=1, dtype="float64") for placement in ("post", "pre")}
for placement, stack in untrained.items():
    stack.measure(ids)
    print(f"{placement}-norm: |dx| at the bottom / at the top = {sizes(stack.dx)[0]:.2f}")

stack = untrained["post"]
past = [stack.dx[TOP]]
for layer, cache in zip(stack.layers[TOP:0:-1], stack.caches[TOP:0:-1], strict=True):
    past.insert(0, layer.norm.backward(past[0], cache.norm))  # through the norm, past the sub-layer
print(f"post-norm, identity path alone: {sizes(past)[0]:.3f}")
lesson.compare("post-norm, |dx| at the bottom", guess, sizes(stack.dx)[0])

# %% [markdown]
# For the identity path the argument is right: only 0.012 of the gradient gets through (more than 0.00024, because σ
# is less than √2 here). But the gradient as a whole doesn't vanish at all: at the bottom it is 2.3 times as large as at
# the top, and 5.6 times in pre-norm. What the norms take, the sub-layers give back. A correct argument about one path
# says nothing about the sum of all paths.
#
# ## With and without warm-up
#
# Then why does everybody train post-norm with warm-up? We train both stacks for 120 steps, at a learning rate of 0.007
# from the first step, or rising to it in a straight line over 100 steps. The optimizer is Adam (lesson 13), whose first
# step moves every weight by the learning rate, however small the gradient is. Before each step we measure |dx|, and
# also how far the rows are from the mean of all rows, as a share of their length.

# %%
STEPS, LR, WARMUP = lesson.pick(120, 12), 0.007, 100


def differences(x):
    """How far the rows are from their mean, as a share of their length, in each of the arrays x."""
    return [np.linalg.norm(each - each.mean(axis=(0, 1))) / np.linalg.norm(each) for each in x]


def train(placement, warmup, seed=1, lr=LR):
    """-> the loss, the sizes of dx and the differences of x before each step. A warm-up of 1 step is none."""
    stack, rng = Stack(placement, seed), np.random.default_rng(seed + 100)
    optimizer = Adam(stack.parameters())
    losses, gradients, rows = [], [], []
    for step in range(1, STEPS + 1):
        losses.append(stack.measure(rng.integers(0, LETTERS, (B, S))))
        gradients.append(sizes(stack.dx))
        rows.append(differences(stack.x))
        optimizer.lr = lr * min(1, step / warmup)
        optimizer.step()
    return losses, gradients, rows


settings = [(placement, warmup) for placement in ("post", "pre") for warmup in (1, WARMUP)]
runs = {setting: train(*setting) for setting in tqdm(settings, disable=None)}
for (placement, warmup), (losses, gradients, rows) in runs.items():
    print(f"{placement}-norm, warm-up {warmup:3}: last loss {losses[-1]:.3f}")
    for step in (0, 1, 10):
        print(f"    after {step:2} steps: rows at the top differ by {rows[step][TOP]:.5f}, ", end="")
        print(f"|dx| at the bottom / at the top = {gradients[step][0]:.5f}")

# %% [markdown]
# ![Gradients and rows over depth, and the loss](../plots/11_residuals.png)
#
# You should see, above left, two solid lines near 1 or above, and a dotted one that falls on the way down. (The bottom
# of the stack is on the left.) If your solid orange line falls like the dotted one, your backward pass has forgotten
# the sub-layer. Above right, one run stays at ln 10, and the others reach 0. Below, two curves of that same run fall by
# several powers of ten.
#
# ## What the first step does to the rows
#
# Three of four learn (guess 1). Post-norm without warm-up doesn't, on any of four seeds: its loss stays at ln 10 =
# 2.303, a guess among ten letters. After ten steps, 0.00004 of the gradient reaches the bottom. But at first it was all
# there, so what happened?
#
# Before the first step, the rows at the top of the stack differ by 0.70 of their length, and after it by 0.08. All
# weights of all 24 sub-layers have moved by 0.007 at once, and now a sub-layer adds much the same to every row. Each
# sum grows by a part that all rows share, each norm divides by the new σ, and the differences between the rows shrink,
# 24 times over. After ten steps they are down to 0.00004, and the model gives the same answer for every token.
#
# And the gradient? On the way up, each sub-layer with its norm multiplies a small difference between rows by its
# Jacobian, and on the way down, it multiplies the gradient by the transpose of the same Jacobian. Whatever shrinks the
# differences shrinks the gradient too, so the two lower panels look like mirror images, and no gradient tells the model
# how to get out.
#
# The vanishing gradient of post-norm is real, but it isn't there at the beginning: the first large steps create it
# (guess 2). With warm-up, the first steps are too small to do the damage. A small learning rate helps too: at 0.001
# the same model learns without warm-up. And in pre-norm the rows have their own way to the top, whatever the sub-layers
# add.
#
# **In papers:** the identity path is a *skip connection* and x on it the *residual stream* (Elhage et al. 2021), the
# two positions of the norm are *post-LN* and *pre-LN* (Xiong et al. 2020), and rows that become alike are *rank
# collapse* (Dong et al. 2021).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 12.
#
# ### What the sub-layers give back
#
# Let x have variance 1, and let f(x) be independent of x with variance `gain`. Let the sub-layer's backward pass
# multiply the variance of a gradient by the same `gain`, as a feed-forward network with Glorot's random weights does:
# its `gain` is 2 C F/(C + F)² in both directions. In post-norm the two terms of dx add up to 1 + gain times the
# variance of dsum, and the norm has divided by the variance of the sum, which is also 1 + gain:
#
#     |dx|²/|dy|² = (1 + gain)/(1 + gain) = 1
#
# In pre-norm the rows grow: after ℓ sub-layers their variance is 1 + ℓ gain. The norm before the next sub-layer divides
# by that, so
#
#     |dx|²/|dy|² = 1 + gain/(1 + ℓ gain) = (1 + (ℓ + 1) gain)/(1 + ℓ gain)
#
# Multiply these for ℓ = 0 to 23. Each numerator cancels the next denominator, and 1 + 24 gain is left. So |dx| is
# larger at the bottom of our pre-norm stack. For F = 2C the gain is 4/9, and √(1 + 24 · 4/9) = 3.4. We measured 5.6,
# but half of our sub-layers are attention, which doesn't follow this rule.
#
# ### The noise of dropout
#
# The mean square of the mask is 0.9 · (1/0.9)² = 1/0.9, so its variance is 1/0.9 − 1 = 1/9. A feature of 3 becomes 0 in
# one case in ten and 3.33 in the others. Its mean is 3, its standard deviation 3 · √(1/9) = 1.
#
# ### Dropout on attention weights
#
# Much code also drops attention weights, after the softmax, and its readers ask why a printed row doesn't sum to 1, or
# why a weight is larger than 1. A row of the softmax, p, does sum to 1. The row that multiplies the values is a
# different one, mask ∘ p, and it sums to 1 only on average. The way back needs both:
#
#     o  = (mask ∘ p) v
#     dv = (mask ∘ p)ᵀ do                  the weights that the values met
#     dp = mask ∘ (do vᵀ)
#     ds = p ∘ (dp − p·dp)                 the softmax's own output, as in lesson 06
#
# ### What a sub-layer adds, before and after one step
#
# Take the post-norm stack, and one step without warm-up. We measure how much f(x) differs from row to row, as we did
# for x above, and take the mean over all 24 sub-layers.

# %%
stack = Stack("post", seed=1)
optimizer, alike = Adam(stack.parameters(), lr=LR), []
for step in (0, 1):
    stack.measure(ids)
    added = [layer.sublayer(x) for layer, x in zip(stack.layers[1 : TOP + 1], stack.x[:TOP], strict=True)]
    alike.append(np.mean(differences(added)))
    print(f"after {step} steps: f(x) differs by {alike[step]:.2f} of its length")
    optimizer.step()

# %% [markdown]
# It falls from 0.62 to 0.35.
#
# ### Other seeds, and a smaller learning rate
#
# Post-norm again, with three other seeds, and then with a learning rate of 0.001. Where the lowest loss is near 2.3,
# the model has learned nothing.


# %%
def lowest(losses):
    """The lowest mean of ten steps in a row."""
    return np.convolve(losses, np.full(10, 0.1), "valid").min()


others = {warmup: [train("post", warmup, seed) for seed in lesson.pick((0, 2, 3), (0,))] for warmup in (1, WARMUP)}
for warmup, several in others.items():
    print(f"post-norm, warm-up {warmup:3}: lowest losses", *(f"{lowest(losses):.3f}" for losses, _, _ in several))
slow = train("post", 1, lr=0.001)
print(f"post-norm, warm-up   1, a learning rate of 0.001: lowest loss {lowest(slow[0]):.3f}")

# %% [markdown]
# ### Where the gradient of post-norm is small
#
# One part of the gradient is small from the beginning. Attention mixes the tokens of a sequence, and in post-norm
# little keeps them apart. At the top, the rows of *one* sequence differ from their own mean by only 0.07 of their
# length (pre-norm: 0.41). If all tokens of a sequence are alike, no score is better than any other, and
# ds = p ∘ (dp − Σ_j p_j dp_j) is near 0 (lesson 06). So the gradient of the query and key matrices in layer 12 is
# 0.0077 times that of layer 1 (pre-norm: 0.066).

# %%
for placement, stack in untrained.items():
    top = stack.x[TOP]
    within = np.linalg.norm(top - top.mean(axis=1, keepdims=True)) / np.linalg.norm(top)
    attention = [layer.sublayer for layer in stack.layers[1:TOP:2]]
    query_key = [np.linalg.norm(each.qkv.W.grad[:, : 2 * C]) for each in attention]
    print(f"{placement}-norm: rows of a sequence differ by {within:.2f}; ", end="")
    print(f"gradient of W_q and W_k, layer 12 / layer 1 = {query_key[-1] / query_key[0]:.4f}")

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 15 minutes. Write a layer `MyResidual` with a feed-forward network inside, y = LayerNorm(2 x + f(x)).
#    Derive dx first. It is right if `minitransformer gradcheck my.py:MyResidual` says so. What does the identity path
#    lose now, if x and f(x) have variance 1?
# 2. Keyboard, 10 minutes. In `Stack`, leave out the final norm of pre-norm. Print the loss of the untrained stack, and
#    the variance of `x[TOP]`, for 12 and for 24 layers. Explain what you see.
#
# Exercises with a checker: `minitransformer start 11`.
#
# ## Questions
#
# 1. In our row, x has length 2.28 and f(x) 1.22, but most of the gradient comes through f. Is this a contradiction?
# 2. Why does a pre-norm model need a norm after its last layer, when a post-norm model doesn't?
# 3. You forget to switch off dropout when you use the model. Is the mean of the sum wrong? What is wrong?
# 4. A colleague measures |dx| in an untrained post-norm stack, finds no vanishing, and leaves out warm-up. What do you
#    tell them?
# 5. *Somewhere else.* A DenseNet puts x and f(x) side by side, y = [x | f(x)], instead of adding them. What is dx? Does
#    each of the two still get the whole gradient? How wide is a row of 32 features after 12 such layers, if each adds
#    32?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. If E moves, all three uses move with it, and to first order their effects on the loss add. Nothing divides them.
# 2. The gradients of the scores become 0, and so do those of queries and keys: all prices are equal, and none differs
#    from the average. The values still get theirs.
# 3. It divides it by a σ that is ten times as large, so the larger row gets a tenth of the gradient.
#
# ### Questions
#
# 1. No. The lengths say how large the answer is. The gradient says how much the loss changes if the question changes,
#    and this depends on the Jacobian of f.
# 2. In pre-norm the row is a running sum that nothing has normalized, and it grows with depth. In post-norm the last
#    step is already a norm.
# 3. The mean is right, because the mask has mean 1. But the numbers are noisy, differently in each run, and later
#    layers aren't linear, so even the mean of the model's output changes.
# 4. A large gradient before the first step says nothing about the second step. Measure again after ten steps.
# 5. Cut dy in two: dx is its first part, plus what f's backward makes of the second. So each gets only its own piece,
#    but x still has a path on which nothing is multiplied. The row has 32 + 12 · 32 = 416 features.
#
# ### Exercise
#
# First: the norm divides by √(4 + 1), and x enters with the factor 2, so each norm multiplies the gradient of the
# identity path by 2/√5 = 0.89 instead of 0.71. Second: with twice as many layers, the variance at the top is about
# twice as large, because each sub-layer adds its share. The logits grow with the rows, and with most seeds the loss
# grows too.


# %%
# the pictures of this lesson
def column(values):
    return matrix_text(values[1][:, None], 3)


graph = Graph()
for name, place in {"norm 1": (-1.5, 0), "x": (0, 0), "cross-attention": (1.9, 1.5), "norm 2": (5.5, 0)}.items():
    graph.node(name, place)
graph.node("+", (3.8, 0), lit=True)
graph.edge("norm 1", "x", column(x), column(dx), label="x")
graph.edge("x", "+", "x", column(dsum))
graph.edge("x", "cross-attention", "x", column(through), flip=True, at=0.45)
graph.edge("cross-attention", "+", column(f_x), column(dsum), at=0.38)
graph.edge("+", "norm 2", column(total), column(dsum), label="x + f(x)")
lesson.save(graph.draw(), "graph")

# %%
texts = {"f1": "attention", "f2": "feed-forward", "n1": "norm", "n2": "norm", "n3": "norm", "+1": "+", "+2": "+"}
places = {
    "post": {"x": (0, 1.7), "f1": (1, 2.4), "+1": (2, 1.7), "n1": (3, 1.7), "f2": (4.2, 2.4), "+2": (5.4, 1.7)},
    "pre": {"x": (0, 0), "n1": (0.7, 0.7), "f1": (1.8, 0.7), "+1": (2.8, 0), "n2": (3.4, 0.7), "f2": (4.6, 0.7)},
}
places["post"] |= {"n2": (6.4, 1.7), "y": (7.3, 1.7)}
places["pre"] |= {"+2": (5.4, 0), "n3": (6.4, 0), "y": (7.3, 0)}
edges = {  # from, to, and what is left of the gradient
    "post": "x f1, f1 +1, x +1 0.50, +1 n1 0.50, n1 f2, f2 +2, n1 +2 0.71, +2 n2 0.71, n2 y 1",
    "pre": "x n1, n1 f1, f1 +1, x +1 1, +1 n2, n2 f2, f2 +2, +1 +2 1, +2 n3 1, n3 y",
}
graph = Graph()
for placement, nodes in places.items():
    for name, place in nodes.items():
        text = texts.get(name, name)
        graph.node(placement + name, place, text, lit=text == "norm")
    for edge in edges[placement].split(", "):
        begins, ends, *gradient = edge.split()
        label = f"{placement}-norm" if (begins, ends) == ("x", "+1") else ""
        graph.edge(placement + begins, placement + ends, " " * len(gradient), "".join(gradient), label)
lesson.save(graph.draw(), "norms")

# %%
figure, axes = plt.subplots(2, 2, figsize=(7.2, 5.2))
colors = {("post", 1): ORANGE, ("post", WARMUP): YELLOW, ("pre", 1): BLUE, ("pre", WARMUP): SKY}
for (placement, warmup), (losses, gradients, rows) in runs.items():
    label = f"{placement}-norm" + ", warm-up" * (warmup > 1)
    line = {"color": colors[placement, warmup], "linestyle": "--" if warmup > 1 else "-"}
    axes[0, 1].plot(range(1, STEPS + 1), losses, label=label, **line)
    axes[1, 0].semilogy(rows[10], **line)
    axes[1, 1].semilogy(gradients[10], **line)
for placement, stack in untrained.items():
    axes[0, 0].semilogy(sizes(stack.dx), color=colors[placement, 1])
axes[0, 0].semilogy(sizes(past), ":", color=ORANGE)
axes[0, 0].text(12.5, 0.012, "post-norm,\nidentity path alone", fontsize=8, color=ORANGE)
axes[0, 1].axhline(np.log(LETTERS), color=GREY, linestyle=":", label=f"ln {LETTERS}")
axes[0, 0].set(title="before training: |dx|", ylabel="|dx|, at the top = 1", ylim=(2e-4, 20))
axes[0, 1].set(title="training", ylabel="loss", xlabel="step", ylim=(-0.1, 3))
axes[1, 0].set(title="after 10 steps: how much the rows differ", ylabel="share of their length")
axes[1, 1].set(title="after 10 steps: |dx|", ylabel="|dx|, at the top = 1")
for panel in (axes[0, 0], axes[1, 0], axes[1, 1]):
    panel.set(xlabel="sub-layers below", xticks=range(0, TOP + 1, 6))
figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
lesson.save(figure)
lesson.finish(globals())
