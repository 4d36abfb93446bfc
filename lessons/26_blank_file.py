# %% [markdown]
# # Lesson 26: A blank file
#
# [![The Transformer, all of it lit](../plots/26_blank_file_map.png)](../plots/00_reverse_whole.png)
#
# **The file is empty. In what order do you write a Transformer, so that you can find each of your mistakes?**
#
# 11 min, with a pencil 180, going deeper 2 · runs in 20 s (fast: 20 s) · needs 01, 06, 08, 10, 12, 14 · difficulty 5 of
# 5 · paper: section 3
#
# ## Two hundred lines, and one number
#
# Jonas and Noor have finished the course. Both open an empty file and write a Transformer with its backward pass, from
# memory. Jonas writes it from top to bottom, two hundred lines without a pause, because he knows them all by now. Then
# he checks the gradients of the whole model for the first time. Of its 43 arrays of weights, dozens have a wrong
# gradient.
#
# He has made one mistake. It could be in any of his two hundred lines.
#
# Noor has written just as many lines, and made more mistakes than he did. She found each one within a minute or two.
# She isn't the better programmer. She wrote the same pieces in a different order, and never had more than one unproven
# piece on the screen.
#
# This lesson teaches that order. Then it leaves you alone with an empty file and a judge.

# %% Imports
from support.blank import try_piece
from support.lab import GREY, ORANGE, begin, plt
from support.pictures import canvas, mix

import numpy as np

from minitransformer.example import load_example
from minitransformer.example.names import by_lesson_names
from minitransformer.functional import cross_entropy, cross_entropy_backward

lesson = begin("26_blank_file")
example = load_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (01) What does the complex step need from a forward pass, and what doesn't it need at all?
# 2. (12) Self-attention and its residual: along how many paths does x reach the loss?
# 3. (10) Which two sums are 0 for every row of a norm's dx?
#
# (The answers are at the end.)
#
# ## Guess first
#
# Jonas forgot a factor in what the decoder's *last* norm sends back. Everything else in his file is right. In how many
# of the 43 arrays of the tiny model is the gradient wrong? And how many are wrong if the factor is missing in what the
# *encoder's* last norm sends back?

# %%
guess_decoder = ...  # of 43 arrays, those with a wrong gradient
guess_encoder = ...  # the same, for the encoder's last norm

# %% [markdown]
# ## How a mistake spreads
#
# A gradient is computed on the way back from the loss, and each piece hands its dx to the next one. So one wrong dx
# spoils all the gradients that come after it on the way back, and none that came before. We can watch it. Take the
# running example, let one of its ten pieces return 1.1 times its dx, and look at which of the 43 gradients change.

# %%
encoder, decoder = example.model.encoder.layers[0], example.model.decoder.layers[0]
PIECES = {  # in the order of the way back
    "decoder.norm3": decoder.feed_forward.norm,
    "decoder.ffn": decoder.feed_forward.sublayer,
    "decoder.norm2": decoder.cross_attention.norm,
    "cross": decoder.cross_attention.sublayer,
    "decoder.norm1": decoder.self_attention.norm,
    "decoder.self": decoder.self_attention.sublayer,
    "encoder.norm2": encoder.feed_forward.norm,
    "encoder.ffn": encoder.feed_forward.sublayer,
    "encoder.norm1": encoder.self_attention.norm,
    "encoder.self": encoder.self_attention.sublayer,
}


def gradients(model):
    """The gradient of each array of weights, by the names of the lessons."""
    z, cache = model.forward(example.source, example.target_in)
    _, cache_loss = cross_entropy(z, example.target_out)
    model.zero_grad()
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    return by_lesson_names({name: p.grad.copy() for name, p in model.named_parameters()}, layers=1)


def wrong_if(piece):
    """The names of the arrays whose gradient is wrong if this piece returns 1.1 times its dx."""
    right = piece.backward

    def backward(dy, cache):
        dx = right(dy, cache)
        return tuple(1.1 * part for part in dx) if isinstance(dx, tuple) else 1.1 * dx

    piece.backward = backward
    got = gradients(example.model)
    del piece.backward  # the class's own is there again
    return {name for name in true if np.abs(got[name] - true[name]).max() > 1e-12}


true = gradients(example.model)
spoiled = {name: wrong_if(piece) for name, piece in PIECES.items()}
for name, names in spoiled.items():
    print(f"{name:14} {len(names):2} of {len(true)} arrays are wrong")
lesson.compare("arrays that the decoder's last norm spoils", guess_decoder, len(spoiled["decoder.norm3"]))
lesson.compare("arrays that the encoder's last norm spoils", guess_encoder, len(spoiled["encoder.norm2"]))

# %%
way_back = [name for at in PIECES for name in reversed(true) if name.rpartition(".")[0] == at] + ["E"]
figure, axes = canvas(7.6, 3.0)
for row, (at, names) in enumerate(spoiled.items()):
    axes.text(1.3, 2.45 - 0.22 * row, at, fontsize=9, ha="right", va="center", family="monospace")
    for column, name in enumerate(way_back):
        color = ORANGE if name in names else mix(GREY, 0.15)
        axes.add_patch(plt.Rectangle((1.4 + 0.14 * column, 2.36 - 0.22 * row), 0.12, 0.18, facecolor=color))
axes.text(1.4, 2.75, "the 43 gradients, in the order of the way back; E is the last", fontsize=9, va="center")
axes.text(0.1, 0.15, "rows: the piece whose dx is wrong; orange: a gradient that is wrong", fontsize=9, va="center")
lesson.save(figure)

# %% [markdown]
# ![Which gradients are wrong, for a mistake in each of the ten pieces](../plots/26_blank_file.png)
#
# Two staircases, since the way back forks at cross-attention: one road goes on through the decoder, the other through M
# into the encoder. A mistake near the loss spoils nearly everything, and a mistake at the end of either road only E.
# From the wrong gradients you can only read where the trouble *begins*. In a file of one piece there's nothing to read:
# it begins here. **So prove the pieces from the smallest to the largest, and the whole last.**
#
# (Three columns stay gray. They are the biases of the keys, whose gradient is 0 whatever comes back: lesson 06. The
# last norm's own γ and β need no dx, so 43 − 3 − 2 = 38.)
#
# > **2015.** Stanford's course CS231n handed its students a file `layers.py`. It contained `affine_forward`, which
# > returned `out, cache`, and `affine_backward(dout, cache)`, each with a docstring and a line that said TODO. Next to
# > it was a function that computed gradients numerically. For many, it was their first backward pass: one small
# > function at a time, each compared before the next one began.

# %% [markdown]
# ## What a judge has to know
#
# The file is yours, and so is the style. But anyone who wants to check a piece must be able to run it forward and
# backward, and to find what it learns. That's all `minitransformer blank` asks of you:
#
# > A *piece* is an object whose `forward(*inputs)` returns `(y, cache)`, and whose `backward(dy, cache)` returns the
# > gradient of each input and adds the gradients of its weights. Two functions `(forward, backward)` are a piece, too,
# > and so is one function that returns `(y, back)`, where `back(dy)` returns the gradients. A *weight* is an array that
# > has its gradient beside it: `W` and `dW` of one object, or `data` and `grad`. Or it is an input: an array, or a
# > dictionary, list or tuple of arrays, and its gradient comes back in the same form. Boolean masks and ids are inputs
# > without a gradient. `example()`, a static method of a class or a function whose name begins with `example`, returns
# > `(piece, inputs)`: what to try it on.
#
# Take a piece that no lesson had by itself: a gain. Each of the C features of x (B, T, C) is multiplied by its own
# learned number, y_btc = g_c x_btc.
#
# **Your line.** Pick one number g_c and ask where it goes. Write its gradient for all c.

# %%
rng = np.random.default_rng(0)
x, dy, gain = rng.standard_normal((2, 5, 4)), rng.standard_normal((2, 5, 4)), rng.standard_normal(4)
dgain = ...  # your line: from x and dy, an array (C,)
lesson.judge("dgain", dgain)

# %% [markdown]
# It goes into all B·T tokens, so its gradient is a sum over both axes: `(dy * x).sum(axis=(0, 1))`. Here is the same
# piece in two styles, each with its example. A third style has a mistake; look for it before you run it.


# %%
class Gain:
    def __init__(self, C):
        self.g, self.dg = np.ones(C), np.zeros(C)

    def forward(self, x):
        return self.g * x, x

    def backward(self, dy, x):
        self.dg += (dy * x).sum(axis=(0, 1))  # added: a piece may be used twice
        return dy * self.g

    @staticmethod
    def example():
        return Gain(4), x


def scaled(x, g):
    return g * x, lambda dy: (dy * g, (dy * x).sum(axis=(0, 1)))


wrong = ((lambda x, g: (g * x, x)), (lambda dy, x: (dy, (dy * x).sum(axis=(0, 1)))))  # two functions, and a mistake

STYLES = {"a class": Gain.example, "a function": lambda: (scaled, (x, gain))}
for style, example_of in STYLES.items():
    lesson.check(f"{style}: all gradients against the complex step", try_piece(example_of).error, 1e-12)
report = try_piece(lambda: (wrong, (x, gain)))
lesson.check("a mistake is found: arrays that are wrong", len(report.failures), at_least=1)
print(*report.clues, sep="\n")

# %% [markdown]
# The judge says which array is wrong, and what it looks like. Other styles keep all weights in one dictionary, with a
# name for each. [Three whole Transformers](../docs/blank-file.md) are there for when yours is finished.
#
# Three habits make an example strong:
#
# * **All lengths differ.** With C = T a transposed matrix fits, and nobody complains.
# * **Not only the easy case.** Ids in which a token occurs twice; a mask that hides something; a sequence of one token.
# * **Forward for complex numbers.** The complex step needs it: compare `.real` parts, as in `a * (a.real > 0)`, and
#   write a variance as a mean of squares. `x.var()` and `abs(x)` drop the imaginary part. The judge notices, and
#   falls back on finite differences: slower, and less exact.
#
# Weights may keep their first values, for the judge tries random ones: γ = 1 hides nothing. And an array that is *not*
# learned, such as the positions, should say so: `PE.setflags(write=False)`.

# %% [markdown]
# ## The order
#
#     piece                         prove it with                      the line that people get wrong
#     1  linear                     x of three axes                    the sum over tokens in dW and db
#     2  ReLU, feed-forward         numbers of both signs              whose sign opens the gate
#     3  norm                       x of three axes                    the road through σ
#     4  attention, one head        T ≠ S, a mask                      √D on the way back, too
#     5  many heads                 H ≠ D                              a reshape for a swapaxes
#     6  add and norm               a piece inside                     around and through
#     7  embedding, positions       a token that occurs twice          `+=` with repeated ids; the √C
#     8  encoder layer              a mask                             x has three roads, and one around
#     9  decoder layer              x and M of two lengths             M belongs to keys and values
#     10 the whole                  model()                            dM from all layers, E from all uses
#
# Before each piece, put the pencil to paper: one number, where does it go? Write the forward and its backward, one
# below the other. Save, and read the verdict. If it says WRONG, it gives the entry that is furthest off, and a clue if
# it knows one: a factor, a missing path, a transpose. (Clues call the axes B, T and C: their √C may be your √D.) Don't
# go on until it says ok, for from then on that piece can't be the reason for anything. Pieces that contain a wrong one
# are wrong as a consequence: only the first is explained.
#
# The whole is the function `model()`. It returns a piece whose inputs are two arrays of ids, `source` (B, S) and `read`
# (B, T), and whose output is a score for each of 29 tokens. (0 is padding, 1 begins a word and 2 ends it, and 3 to 28
# are the letters.) C = 48, four heads, F = 96 and two layers each are enough. Make the arrays of weights
# float32; for the proof the judge turns them into float64. And write
# `C**0.5`: `np.sqrt(C)` is a float64 that turns everything it meets into float64, and the training becomes slower.
#
# ## Right, and still it doesn't learn
#
# A proven backward is the gradient of what your forward *computes*, which may not be what you meant. So before it
# checks the whole, the judge tests rules that every right Transformer obeys, whatever its weights. No row of scores may
# change with a token that comes later, with the padding of the source, or with the other words in the batch; and the
# order of the letters must make a difference. Each of these is a line of your forward: a mask, an axis, a position.
#
# Then it trains: 700 steps of Adam on words of one to eight letters, with a bar that shows the loss. The loss starts
# near ln 29 = 3.37, since nothing is known, and label smoothing keeps it above 0.639. At the end it is tested on 1,000
# words that were never in a batch. Each of the three Transformers on that page reverses at least 990 of them.
#
# What if all gradients are right and the loss stays at 3? Then look at sizes. Is the output of each layer about as
# large as its input? Weights of size 1/√C keep it that way, and weights of size 1 make the softmax as hard as a switch.

# %%
C = 64
for scale in (C**-0.5, 1.0):
    q, k = (rng.standard_normal((100, C)) @ (scale * rng.standard_normal((C, C))) for _ in range(2))
    s = q @ k.T / np.sqrt(C)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    largest = (p / p.sum(axis=-1, keepdims=True)).max(axis=-1).mean()
    print(f"weights of the size {scale:.3f}: the largest weight of a row of attention is {largest:.2f} on average")

# %% [markdown]
# ## Your turn
#
#     minitransformer blank my_transformer.py
#
# The file has a docstring with the paragraph above and the names of the pieces, and nothing else. It opens in your
# editor, and every save is judged. Ctrl-C ends the judge and leaves your file. Set aside an afternoon, or an evening
# for pieces 1 to 5 and another for the rest. Close the lessons first. If you are stuck, derive before you look: the
# pencil is faster than the search.
#
# What will you have in the end? A file in which no line is somebody else's, which reverses words that it has never
# seen, and a proof that each of its gradients is right. [Five projects](../docs/projects.md) take it from there.
#
# **In papers:** comparing a backward pass with derivatives of its forward pass is *gradient checking*, here by the
# *complex-step derivative* (Squire and Trapp 1998).

# %% [markdown]
# ## Going deeper
#
# ### What the judge can't see
#
# It finds what is wrong in a gradient, in five laws, and in what the model learns. It doesn't see a missing √D in a
# small model, a post-norm that should be a pre-norm, or a feed-forward network without its second bias: these are
# different models with right gradients. For those there's another witness, numbers that somebody else computed.
# `load_example()` has a model with weights that you can copy into yours; its scores for "stop" begin with the row
# below.

# %%
z = example.model(example.source, example.target_in)[0]
print("scores of the row that has read bos:", *(f"{number:.4f}" for number in z[0]))

# %% [markdown]
# ## Exercise
#
# 1. An afternoon. The blank file.
# 2. Half an hour, when it is finished. Plant your own mistake: delete one term of one backward pass, and predict which
#    arrays of the whole will be wrong before you save.
#
# Exercises with a checker, one for each piece: `minitransformer progress` lists them.
#
# ## Questions
#
# 1. A mistake in cross-attention's dx and dM spoils the encoder *and* a part of the decoder. Which part, and why?
# 2. Why does a wrong dx of the decoder's self-attention spoil only E?
# 3. Your piece adds to `self.dW` in forward instead of backward. Which promise of the paragraph does it break?
# 4. All pieces are proven, and the whole is wrong only in E. Where do you look?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. It must accept complex numbers and be analytic: no abs, and comparisons only of real parts. It needs no backward
#    and no difference, so nothing cancels.
# 2. Four: as query, as key, as value, and around the attention.
# 3. The sum of dx, and, except for the tiny ε, the sum of dx ∘ x̂.
#
# ### Questions
#
# 1. Whatever is below it: the decoder's first norm and self-attention, which get its dx, and E. The layers above it
#    already had their gradients.
# 2. On the decoder's way back, the only thing with weights after it is the embedding, and E is the embedding's matrix.
# 3. That `backward` adds the gradients. They are linear in dy, which forward doesn't know.
# 4. At the paths that meet in E: the output, the decoder's embedding and the encoder's. One is missing, assigned, or
#    counts repeated ids once.

# %%
lesson.finish(globals())
