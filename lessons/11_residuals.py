# %% [markdown]
# # Lesson 11: Residuals, dropout, and the norm that moved
#
# * Question: the paper normalizes after the sum, most code before the sub-layer. Who is right, and what does it change?
# * You derive: both backward passes; what the gradient loses on its way past 24 sub-layers; dropout and its scale
# * Reading: 12 min, going deeper 6 min
# * Run: 45 s (fast: 6 s)
# * Needs: 02, 04, 06, 08, 10
# * Difficulty: 3 of 5
# * Paper: sections 3.1 and 5.4, figure 1
#
# ![The Transformer, with the residual paths and norms lit](../plots/11_residuals_map.png)

# %%
from lab import BLUE, GREY, ORANGE, ROWS, SKY, YELLOW, begin, error, plt, running_example, show

import numpy as np

from minitransformer.functional import layer_norm, layer_norm_backward

lesson = begin("11_residuals")
example = running_example()

# %% [markdown]
# ## What the row would forget
#
# Our row p→o comes to cross-attention with six numbers. In them it carries what it knows: it has read a p, and it is at
# position 1. Cross-attention answers with six other numbers, which are made of the source letters alone. If this answer
# replaced the row, the row would forget who it is. And each of the 18 sub-layers of the paper's decoder would have to
# pass on everything that a later one might need.
#
# So the paper does not replace, it adds. A sub-layer f reads the row x, and its answer is added to the row:
#
#     x        = (0.427, 0.635, −1.310, 0.368, −1.138, 1.203)
#     f(x)     = (0.119, 0.671, −0.082, 0.854, 0.374, −0.380)
#     x + f(x) = (0.546, 1.305, −1.392, 1.222, −0.765, 0.823)
#
# This is a residual connection. The way past the sub-layer is called the identity path. How much of the sum is old, and
# how much is new? In our row x has the length 2.28 and f(x) 1.22: mostly old. In the row o→t it is 2.25 and 4.81:
# mostly new.
#
# ## Guess first
#
# 1. A stack of 24 sub-layers, each followed by "add & norm", not trained yet. How large is the gradient at its input,
#    compared with its output: about equal, a hundredth, a millionth?
# 2. The task is to say each token again. Even a model without any sub-layers can do that. We put the norm after the sum
#    or before the sub-layer, and train with or without warm-up (a learning rate that rises slowly from 0). Which of the
#    four models learn it?
# 3. In those that do not learn: is the gradient too small from the beginning, or does it become so?

# %% [markdown]
# ## One sum, two paths back
#
# Give each step of the forward pass a name, and then read the lines upwards:
#
#     f(x) = CrossAttention(x, M)
#     sum  = x + f(x)                 x is used twice
#     y    = LayerNorm(sum)
#
#     dsum = LayerNorm's backward of dy                        lesson 10
#     dx   = dsum + CrossAttention's backward of dsum          one term for each use of x
#
# A sum does not divide the gradient. It hands the whole of it to both of its terms. One copy goes down the identity
# path and arrives as it is. The other goes through the sub-layer, here through the queries (lesson 06), and may come
# out larger or smaller. (Keys and values send their part to the memory M, not to x.)
#
# ![The residual path of row p→o, with its numbers](../plots/11_residuals_graph.png)

# %%
x, f_x = example["cross.x"], example["cross.y"]
total = x + f_x
y, cache = layer_norm(total, example["decoder.norm2.gamma"], example["decoder.norm2.beta"])
dsum, _, _ = layer_norm_backward(example["decoder.norm2.dy"], cache)
dq = np.concatenate(list(example["cross.dq"]), axis=-1)  # the two heads side by side (lesson 08)
through = dq @ example["cross.W_q"].T
dx = dsum + through
row_lengths = np.linalg.norm([x, f_x, dsum, through], axis=-1).T
show("lengths", row_lengths, ROWS, ["x", "f(x)", "dsum", "through f"])

# %% [markdown]
# In our row, dsum has the length 0.216, and what comes back through cross-attention has 0.532. Forward, the row is
# mostly itself. Backward, most of its gradient comes through the attention: the best way to improve this row is to
# change what it asks for.
#
# ## Dropout
#
# Dropout is the paper's way to keep a model from relying on single features. In training, each number of f(x) is set to
# 0 with a small probability, 0.1 in the paper, and the others are divided by 0.9:
#
#     mask  = 0 with probability 0.1, else 1/0.9
#     mean of mask = 0.1 · 0 + 0.9 · 1/0.9 = 1
#     sum   = x + mask ∘ f(x)           so     d(f(x)) = mask ∘ dsum
#
# Thanks to the division, the mean of mask ∘ f(x) is f(x). So when the model is used, we leave the mask out, and nothing
# else changes. The backward pass must use the mask that the forward pass drew.
#
# The mask goes on f(x), not on the sum. On the sum it would cut the identity path, too: a feature would get through 24
# sub-layers without being set to 0 with probability 0.9²⁴ = 0.080.

# %% [markdown]
# ## The norm that moved
#
# No question about the Transformer is asked more often: why does the code not do what the paper says? The paper's text
# (section 3.1) and its figure 1 put the norm after the sum. Much of the code that you will read puts it before the
# sub-layer:
#
#     post-norm   y = LayerNorm(x + mask ∘ f(x))        the paper, BERT
#     pre-norm    y = x + mask ∘ f(LayerNorm(x))        GPT-2, T5, LLaMA, the Annotated Transformer
#
# Both are right, but they are two different models, with different gradients. In pre-norm nothing on the identity path
# is normalized, so a pre-norm model needs one more norm at its very end.
#
# ![Two sub-layers with post-norm, and with pre-norm](../plots/11_residuals_norms.png)
#
# Read pre-norm upwards:
#
#     normed = LayerNorm(x)                dx = dy + LayerNorm's backward of dnormed
#     y      = x + mask ∘ f(normed)        dnormed = f's backward of mask ∘ dy
#
# Compare the first terms of dx. In post-norm it is dsum, which has gone through the norm. In pre-norm it is dy itself,
# untouched. In code, each piece returns its output and a function `back` that takes dy to dx.


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


rng = np.random.default_rng(3)
B, T, C, F = 2, 3, 5, 7
given, upstream = rng.standard_normal((2, B, T, C))
W_1, W_2, gamma, beta = (rng.standard_normal(shape) for shape in ((C, F), (F, C), C, C))
mask = (rng.random((B, T, C)) >= 0.3) / 0.7


def feed_forward(x):  # lesson 02
    a = x @ W_1
    on = a.real > 0
    return (a * on) @ W_2, lambda dy: (dy @ W_2.T * on) @ W_1.T


def norm(x):  # lesson 10
    y, cache = layer_norm(x, gamma, beta)
    return y, lambda dy: layer_norm_backward(dy, cache)[0]


for add_norm in (post_norm, pre_norm):
    _, back = add_norm(given, mask, feed_forward, norm)
    true = np.zeros_like(given)
    for index in np.ndindex(true.shape):
        moved = given.astype(complex)
        moved[index] += 1e-30j
        true[index] = (upstream * add_norm(moved, mask, feed_forward, norm)[0]).sum().imag / 1e-30
    lesson.check(f"{add_norm.__name__}: dx, against the complex step", error(back(upstream), true), 1e-13)

from minitransformer.layers import FeedForward, Residual

for add_norm, placement in ((post_norm, "post"), (pre_norm, "pre")):
    layer = Residual(FeedForward(C, F, dtype="float64"), C, dropout_rate=0.3, norm=placement, dtype="float64")
    for parameter, value in zip(layer.parameters(), (W_1, 0, W_2, 0, gamma, beta), strict=True):
        parameter.data[...] = value
    library, cache = layer.forward(given, rng=rng)
    drawn = cache.dropout.keep * cache.dropout.scale
    y, back = add_norm(given, drawn, feed_forward, norm)
    lesson.check(f"{add_norm.__name__}: y equal to the library's", error(y, library), 1e-13)
    lesson.check("... and dx", error(back(upstream), layer.backward(upstream, cache)), 1e-13)

# %% [markdown]
# ## What the gradient loses on its way past the norms
#
# Here is the popular argument for pre-norm. Before training γ = 1, so in post-norm each norm gives x the variance 1.
# Let f(x) have the same variance, and be independent of x. Then the variance of the sum is 2, and σ = √2. LayerNorm's
# backward pass divides by σ (lesson 10). So each norm on the identity path multiplies the gradient by about 1/√2, as
# the orange numbers in the picture say, and 24 of them by
#
#     (1/√2)²⁴ = 2⁻¹² = 0.00024
#
# In pre-norm this factor is 1. So in post-norm the gradient should vanish on its way down, and the lower layers should
# not learn. Is that true? Let us build a stack of 12 layers, 24 sub-layers, and look. It has the embedding of lesson 04
# below and the same matrix again above, and no positions, because the task does not need them.

# %%
from minitransformer.core import Layer, Parameter
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers import LayerNorm, SelfAttention
from minitransformer.layers.embedding import Embedding, OutputProjection
from minitransformer.training import Adam

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
                self.layers.append(Residual(sublayer, C, norm=placement, dtype=dtype))
        if placement == "pre":
            self.layers.append(LayerNorm(C, dtype=dtype))
        self.layers.append(OutputProjection(E))

    def measure(self, ids):
        """Forward and backward -> the loss, and |dx| at the embedding and after each sub-layer (TOP + 1,)"""
        self.zero_grad()
        x, self.rows, self.caches = ids, [], []
        for layer in self.layers:
            x, cache = layer.forward(x)
            self.rows.append(x)
            self.caches.append(cache)
        loss, cache = cross_entropy(x, ids, pad=-1)
        dx, lengths = cross_entropy_backward(1.0, cache), []
        for layer, cache in zip(self.layers[::-1], self.caches[::-1], strict=True):
            lengths.append(np.linalg.norm(dx))
            dx = layer.backward(dx, cache)
        return float(loss), np.array(lengths[::-1][: TOP + 1])


ids = np.random.default_rng(5).integers(0, LETTERS, (B, S))
model, start = {}, {}
for placement in ("post", "pre"):
    model[placement] = Stack(placement, seed=1, dtype="float64")
    _, start[placement] = model[placement].measure(ids)
    print(f"{placement}-norm: |dx| at the bottom / at the top = {start[placement][0] / start[placement][-1]:.2f}")

gradient = np.random.default_rng(6).standard_normal((B, S, C))
past = [np.linalg.norm(gradient)]
for layer, cache in zip(model["post"].layers[TOP:0:-1], model["post"].caches[TOP:0:-1], strict=True):
    gradient = layer.norm.backward(gradient, cache.norm)  # through the norm, past the sub-layer
    past.append(np.linalg.norm(gradient))
past = np.array(past[::-1]) / past[0]
print(f"post-norm, identity path alone: {past[0]:.3f}")

# %% [markdown]
# About the identity path the argument is right: only 0.012 of the gradient gets through. (It is more than 0.00024,
# because σ is less than √2 here.) But the whole gradient does not vanish at all. At the bottom it is 2.1 times as large
# as at the top, and 5.5 times in pre-norm. What the norms take, the sub-layers give back. A correct argument about one
# path says nothing about the sum of all paths.
#
# ## With and without warm-up
#
# Then why does everybody train post-norm with warm-up? We train both stacks for 120 steps, at a learning rate of 0.007
# from the first step, or rising to it in a straight line over 100 steps. The optimizer is Adam (lesson 13). All you
# need to know here: its first step moves every weight by the learning rate, however small the gradient is.

# %%
from minitransformer.progress import tqdm

STEPS, LR, WARMUP = lesson.pick(120, 12), 0.007, 100


def spread(rows):
    """How much the rows differ from token to token: their standard deviation, as a share of the whole."""
    rows = rows.reshape(-1, C)
    return rows.std(axis=0).mean() / rows.std()


def train(placement, warmup, seed=1, lr=LR):
    """-> the loss, |dx| and the spread of the top at each step"""
    stack, rng = Stack(placement, seed), np.random.default_rng(seed + 100)
    optimizer, history = Adam(stack.parameters()), []
    for step in range(1, STEPS + 1):
        loss, lengths = stack.measure(rng.integers(0, LETTERS, (B, S)))
        history.append((loss, lengths, spread(stack.rows[TOP])))
        optimizer.lr = lr * min(1.0, step / warmup) if warmup else lr
        optimizer.step()
    return [np.array(each) for each in zip(*history, strict=True)]


def lowest(losses):
    """The lowest mean of ten steps in a row."""
    return np.convolve(losses, np.full(10, 0.1), "valid").min()


names = {
    ("post", 0): "post-norm",
    ("post", WARMUP): "post-norm, warm-up",
    ("pre", 0): "pre-norm",
    ("pre", WARMUP): "pre-norm, warm-up",
}
runs = {key: train(*key) for key in tqdm(names, disable=None)}
again = {key: [train("post", key, seed) for seed in lesson.pick((0, 2, 3), (0,))] for key in (0, WARMUP)}
slow = train("post", 0, lr=0.001)
for key, (losses, lengths, _) in runs.items():
    ratios = (lengths[:, 0] / lengths[:, -1])[[0, 1, 10, -1]]
    print(f"{names[key]:19} lowest loss {lowest(losses):.3f}; |dx| bottom / top after 0, 1, 10 and all steps:", end="")
    print("".join(f"{ratio:9.1g}" for ratio in ratios))
for key, several in again.items():
    losses = " ".join(f"{lowest(losses):.3f}" for losses, _, _ in several)
    print(f"post-norm, more seeds, warm-up {key:3}: lowest loss {losses}")
print(f"post-norm without warm-up at a learning rate of 0.001: lowest loss {lowest(slow[0]):.3f}")

# %% [markdown]
# ![Gradients over depth before and after training, and the loss](../plots/11_residuals.png)
#
# You should see, above left, two solid lines near 1 and a dotted one that falls. Below left, one line falls by several
# powers of ten on its way down. Below right, the same run stays at ln 10, and the three others reach 0. If your solid
# orange line above falls like the dotted one, your backward pass has forgotten the sub-layer. If your solid blue line
# is exactly flat, the same has happened in pre-norm. If all four runs learn, your learning rate is lower than ours.
#
# ## The surprise
#
# Three of four learn. Post-norm without warm-up does not, on any of four seeds: its loss stays at ln 10 = 2.303, the
# price of a guess among ten letters. And its gradient at the bottom is gone. But we have seen that it was there before
# the first step. What happened?
#
# Look at the rows at the top of the stack. Before the first step they differ from token to token by 0.68 of their size.
# After it, by 0.07. Every weight of all 24 sub-layers has moved by 0.007 at once. All sub-layers were pushed to add
# nearly the same vector to every token: this common part has grown from 0.79 to 0.92 of what a sub-layer adds. Each sum
# grows in this one direction. Each norm divides by the new σ, and what is different between the tokens shrinks, 24
# times over. Soon all rows are alike. Then the model gives the same answer for every token, and no gradient tells it
# how to get out. After ten steps less than a thousandth of the gradient reaches the bottom.
#
# So the vanishing gradient of post-norm is real, but it is the result and not the cause. With warm-up, the first steps
# are too small to do the damage. A small learning rate helps as well: at 0.001 the same model learns without warm-up.
# And in pre-norm the rows have their own way to the top, whatever the sub-layers add.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 12.
#
# ### What the sub-layers give back
#
# Let x have variance 1, and let f(x) be independent of x with the variance `gain`. Let the sub-layer's backward pass
# multiply the variance of a gradient by the same `gain`. A feed-forward network with Glorot's random weights does so:
# its `gain` is 2 C F/(C + F)² in both directions. In post-norm the two terms of dx add up to 1 + gain times the
# variance of dsum, and the norm has divided by the variance of the sum, 1 + gain as well:
#
#     |dx|²/|dy|² = (1 + gain)/(1 + gain) = 1
#
# In pre-norm the rows grow: after ℓ sub-layers their variance is 1 + ℓ gain. The norm before the next sub-layer divides
# by that, so
#
#     |dx|²/|dy|² = 1 + gain/(1 + ℓ gain) = (1 + (ℓ + 1) gain)/(1 + ℓ gain)
#
# Multiply this for ℓ = 0 to 23. Each numerator cancels the next denominator, and 1 + 24 gain is left. That is why |dx|
# is larger at the bottom of our pre-norm stack.
#
# ### Where the gradient of post-norm is small
#
# The upper right panel shows something that does starve from the beginning. In layer 12 of post-norm the gradient of
# the query and key matrices is 0.0051 times that of layer 1 (pre-norm: 0.083 times). From layer to layer, attention
# mixes the tokens of a sequence. At the top they differ from their mean by only 0.07 of their length (pre-norm: 0.42).
# Where all tokens are alike, no score is better than another, and ds = p ∘ (dp − Σ_j p_j dp_j) is near 0 (lesson 06).
#
# ### The noise of dropout
#
# The mean square of the mask is 0.9 · (1/0.9)² = 1/0.9, so its variance is 1/0.9 − 1 = 1/9. A feature of 3 becomes 0 in
# one case of ten and 3.33 in the others. Its mean is 3, its standard deviation 3 · √(1/9) = 1.

# %% [markdown]
# ### In the wild
#
# * A formula copied from the paper above code copied from the web is the usual source of confusion. The authors' own
#   code, tensor2tensor, went over to pre-norm in its later settings.
# * PyTorch's `TransformerEncoderLayer` has `norm_first=False`, which is post-norm. Its `nn.Transformer` puts a final
#   norm after both stacks in either case. After post-norm it does no harm, but the parameters are not the paper's.
# * A common mistake moves the norm and forgets the final norm. The model trains, with logits that grow with its depth.
# * Xiong et al. (2020) explained warm-up by the gradients of the untrained model. Liu et al. (2020) found, as we do,
#   that vanishing gradients are not where the trouble starts. Noci et al. (2022) describe tokens that become alike.
# * DeepNorm (Wang et al. 2022) keeps post-norm, and multiplies x by a constant above 1 before the sum.
#
# ### How the pictures are drawn

# %%
from graph import Graph
from pictures import matrix_text


def column(values):
    return matrix_text(values[1][:, None])


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
query_key = {}
colors = {("post", 0): ORANGE, ("post", WARMUP): YELLOW, ("pre", 0): BLUE, ("pre", WARMUP): SKY}
for placement in ("post", "pre"):
    attention = [layer.sublayer for layer in model[placement].layers[1:TOP:2]]
    query_key[placement] = np.array([np.linalg.norm(each.qkv.W.grad[:, : 2 * C]) for each in attention])
    label, color = f"{placement}-norm", colors[placement, 0]
    axes[0, 0].semilogy(start[placement] / start[placement][-1], color=color, label=label)
    axes[0, 1].semilogy(range(1, LAYERS + 1), query_key[placement], "o-", color=color, markersize=3, label=label)
axes[0, 0].semilogy(past, ":", color=ORANGE, label="post-norm, identity path alone")
for key, (losses, lengths, _) in runs.items():
    style = "--" if key[1] else "-"
    axes[1, 0].semilogy(lengths[-1] / lengths[-1, -1], style, color=colors[key])
    axes[1, 1].plot(range(1, STEPS + 1), losses, style, color=colors[key], label=names[key])
axes[1, 1].axhline(np.log(LETTERS), color=GREY, linestyle=":", label=f"ln {LETTERS}")
axes[0, 0].set(title="untrained: |dx|", ylabel="|dx|, at the top = 1", ylim=(2e-4, 20))
axes[0, 1].set(title="untrained: gradient of W_q and W_k", ylabel="its length", xlabel="layer", xticks=range(1, 13, 2))
axes[1, 0].set(title=f"after {STEPS} steps: |dx|", ylabel="|dx|, at the top = 1")
axes[1, 1].set(title="training", ylabel="loss", xlabel="step", ylim=(-0.1, 3))
for panel in axes[:, 0]:
    panel.set(xlabel="sub-layers below", xticks=range(0, TOP + 1, 6))
for panel in axes[0]:
    panel.legend(fontsize=7)
figure.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8)
lesson.save(figure)

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 15 minutes. Write a layer `MyResidual` with a feed-forward network inside, y = LayerNorm(2 x + f(x)).
#    Derive dx first. It is right if `minitransformer gradcheck my.py:MyResidual` says so. What does the identity path
#    lose now, if x and f(x) have variance 1?
# 2. Keyboard, 10 minutes. In `Stack`, leave out the final norm of pre-norm. Print the loss of the untrained stack, and
#    the variance of `rows[TOP]`, for 12 and for 24 layers. Explain what you see.
#
# Exercises with a checker: `minitransformer start 11`.
#
# ## Questions
#
# 1. In our row, x has the length 2.28 and f(x) 1.22, but most of the gradient comes through f. Is this a contradiction?
# 2. Why does a pre-norm model need a norm after its last layer, and a post-norm model not?
# 3. You forget to switch dropout off when you use the model. Is the mean of the sum wrong? What is wrong?
# 4. A colleague measures |dx| in an untrained post-norm stack, finds no vanishing, and leaves out warm-up. What do you
#    say?

# %% [markdown]
# ## Answers
#
# 1. No. The lengths say how large the answer is. The gradient says how much the loss changes if the question changes,
#    and this depends on the Jacobian of f.
# 2. In pre-norm the row is a running sum that nothing has normalized, and it grows with depth. In post-norm the last
#    step is a norm already.
# 3. The mean is right, because the mask has the mean 1. But the numbers have noise, which is different in each run, and
#    later layers are not linear, so even the mean of the model's output changes.
# 4. That the gradient is large before the first step says nothing about the second. Measure again after ten steps.
#
# The exercise. First: the norm divides by √(4 + 1), and x enters with the factor 2, so each norm multiplies the
# gradient of the identity path by 2/√5 = 0.89 instead of 0.71. Second: with twice as many layers, the variance at the
# top is about twice as large, because each sub-layer adds its own share. The logits grow with the rows. The loss of the
# untrained model grows as well, with most seeds.

# %%
lesson.finish(globals())
