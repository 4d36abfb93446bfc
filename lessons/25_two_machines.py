# %% [markdown]
# # Lesson 25: Two machines, one step
#
# [![The Transformer, all of it lit](../plots/25_two_machines_map.png)](../plots/00_reverse_whole.png)
#
# **Two machines share a training step. What must they tell each other so that it stays the same step?**
#
# 12 min, with a pencil 35, going deeper 9 · runs in 30 s (fast: 30 s) · needs 02, 08, 13, 22 · difficulty 3 of 5 ·
# paper: section 5.2 (eight processors)
#
# ## The same batch, another step
#
# Jonas has a second computer. He puts the same model with the same weights on both, and gives each of them half of
# every batch. Each computes the gradient of its own loss, then the two average their gradients, and both take the same
# step. It runs nearly twice as fast, and the loss falls.
#
# But it isn't the step that one computer would have taken. Take our tiny model and a batch of two words. The first
# machine gets "stop" and reports a loss of 0.1108 over T = 5 tokens. The second gets a one-letter word, «t», and
# reports 0.8214 over 2 tokens, which are «t» and eos. The mean of the two reports is 0.4661, while one computer that
# holds both words says 0.3138.
#
# The words are the same, the model is the same, and every derivative is right to the last digit. So where does the
# difference come from, and how large is it in the gradient?

# %% Imports
import threading

from support.lab import BLUE, GREY, ORANGE, VOCABULARY, begin, error, plt, running_example
from support.pictures import canvas, mix
from support.tensor_parallel import ShardedFeedForward

import numpy as np

from minitransformer.data.tasks import Batch
from minitransformer.example import load_example
from minitransformer.layers import CrossEntropyLoss, FeedForward
from minitransformer.models import Transformer
from minitransformer.training import Adam, GradientAccumulation, PlainGradients

lesson = begin("25_two_machines")
example = running_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (22) Two readers hand in the means of what they have seen. What else must each of them report before the mean of
#    everything can be found?
# 2. (02) One x goes into two linear layers side by side. Each sends back a gradient of x. What happens to the two
#    gradients?
# 3. (13) Every gradient that Adam ever gets is 32 times as large. What changes in its steps?
#
# (The answers are at the end.)

# %% [markdown]
# ## A mean of means
#
# The first machine reports a mean over its N_first = 5 tokens, and the second a mean over its N_second = 2. Write g for
# the gradient of the whole batch, all parameters in one long vector, and g_first and g_second for the gradients of the
# two machines. These are 4.5 and 8.5 long, at an angle of 98°. How far is their plain mean, (g_first + g_second) / 2,
# from g, as a percentage of the length of g?


# %%
model, count_tokens = load_example().model, CrossEntropyLoss().num_terms


def batch_of(words):
    """Words to be reversed, padded to the longest."""
    longest = max(map(len, words))
    rows = [[VOCABULARY.index(letter) for letter in word] for word in words]
    source = [ids + [0] * (longest - len(ids)) for ids in rows]
    read = [[1] + ids[::-1] + [0] * (longest - len(ids)) for ids in rows]
    written = [ids[::-1] + [2] + [0] * (longest - len(ids)) for ids in rows]
    return Batch(np.array(source), np.array(read), np.array(written))


def gradient(words, model=model):
    """What one machine computes: the mean loss over its tokens, their number, and the gradient in one vector."""
    model.zero_grad()
    batch = batch_of(words)
    loss = PlainGradients(model, CrossEntropyLoss())(batch).loss
    return float(loss), count_tokens(batch.targets), np.concatenate([p.grad.reshape(-1) for p in model.parameters()])


L_first, N_first, g_first = gradient(["stop"])
L_second, N_second, g_second = gradient(["t"])
guess = ...  # how far (g_first + g_second) / 2 is from g, in per cent

# %% [markdown]
# The loss of the batch is a mean over all its N = N_first + N_second tokens. Sort the terms by machine:
#
#     L = (1/N) Σ_n loss_n
#       = (1/N) (sum on the first + sum on the second)
#       = (1/N) (N_first L_first + N_second L_second)                  a mean, times its number of terms, is a sum
#
# Both machines have the same weights, and the derivative of a sum is the sum of the derivatives. So each machine's
# gradient is weighted by its share of the tokens.
#
# **Your line.** Write the gradient of the whole batch, from what the machines have computed.

# %%
g = ...  # your line: from g_first, g_second, N_first and N_second
lesson.judge("g", g)

# %% Ours
together = N_first / (N_first + N_second) * g_first + N_second / (N_first + N_second) * g_second
L, N, alone = gradient(["stop", "t"])
wrong = 100 * np.linalg.norm((g_first + g_second) / 2 - alone) / np.linalg.norm(alone)
lesson.compare("error of the plain mean of two, in per cent", guess, wrong)
lesson.check("weighted by tokens, against one machine with both words", error(together, alone), 1e-13)

# %% [markdown]
# The plain mean is the gradient of a different loss. That loss gives each *machine* the same weight, so the two tokens
# of the short word count as much as the five of the long one. It is the merge of lesson 22 with the totals left out.
#
# More machines make it milder, but don't cure it. Give one word of one to four letters to each of 32 machines:

# %%
rng = np.random.default_rng(25)
words = ["".join(rng.choice([*"opst"], rng.integers(1, 5))) for _ in range(32)]
found = [gradient([word]) for word in words]
counts = np.array([tokens for _, tokens, _ in found])
gradients = np.stack([vector for *_, vector in found])
_, tokens, alone_32 = gradient(words)
wrong_32 = 100 * np.linalg.norm(gradients.mean(axis=0) - alone_32) / np.linalg.norm(alone_32)
print(f"error of the plain mean of 32, in per cent: {wrong_32:.1f}")
together_32 = (counts / counts.sum()) @ gradients
lesson.check("weighted by tokens, against one machine with all words", error(together_32, alone_32), 1e-13)
model.zero_grad()
by_library = PlainGradients(model, CrossEntropyLoss())  # forward, loss and backward
GradientAccumulation(by_library, CrossEntropyLoss(), steps=len(words))(batch_of(words))  # word by word
library = np.concatenate([p.grad.reshape(-1) for p in model.parameters()])
lesson.check("... and against the library's gradient in parts", error(together_32, library), 1e-13)

# %% [markdown]
# ## Everybody gets the sum
#
# Each machine multiplies its gradient by its share, and then every machine needs the sum of all. This exchange is
# called all-reduce. One machine could collect everything and send back the sum, but then it would have to take in 31
# vectors, one after another, while the other machines wait.
#
# Instead, arrange the machines in a ring, and cut each vector into as many pieces as there are machines. In each step
# every machine sends one piece to its neighbor, which adds it to its own and sends that sum on in the next step. A
# piece that has been everywhere is complete, and goes around once more for every machine to copy. Here are three
# machines with three pieces each. The digits in a cell say whose numbers are added up in it, and an orange one has just
# come in.
#
# ![Three machines in a ring: four steps until each has all three sums](../plots/25_two_machines_ring.png)
#
# How much does each of 32 machines send in total, counted in whole vectors?


# %%
guess_sent = ...  # vectors that each machine sends


# %%
def all_reduce(vectors):
    """A vector (length,) for each machine -> the sum of all, for each machine, and how many numbers each has sent."""
    machines = len(vectors)
    pieces = [[piece.copy() for piece in np.array_split(vector, machines)] for vector in vectors]
    sent = 0
    for step in range(2 * (machines - 1)):
        for machine in range(machines):
            neighbour, piece = (machine + 1) % machines, (machine - step) % machines
            sent += pieces[machine][piece].size
            if step < machines - 1:
                pieces[neighbour][piece] += pieces[machine][piece]
            else:
                pieces[neighbour][piece] = pieces[machine][piece].copy()
    return [np.concatenate(each) for each in pieces], sent / machines


shares = (counts / counts.sum())[:, None] * gradients
everywhere, sent = all_reduce(shares)
worst = max(error(vector, alone_32) for vector in everywhere)
lesson.check("all-reduce: every machine has the gradient of the whole batch", worst, 1e-13)
different = sum((vector != everywhere[0]).any() for vector in everywhere)
lesson.check("... and machines whose bits differ from those of the first", different, 0)
lesson.compare("vectors that each of 32 machines sends", guess_sent, sent / len(alone_32))

# %% [markdown]
# In each of the two rounds a machine sends 31 of its 32 pieces, so it is about two vectors, however many machines there
# are. It also matters that all bits are equal. The machines never compare their weights again, so if one of them added
# in a different order, its weights would slowly drift away.
#
# ## A layer on two machines
#
# If the model itself is too large for one machine, its matrices must be cut. Take the feed-forward network of lesson
# 02, a = x W_1 + b_1, r = max(0, a), y = r W_2 + b_2. It has F = 8 hidden units, of which each machine gets four, and
# ReLU looks at each unit by itself.
#
# A unit owns a column of W_1 and a row of W_2. So cut W_1 by columns and W_2 by rows, and split the sum over the units
# in the same way:
#
#     y_nc = Σ_j r_nj W_2jc + b_2c
#          = Σ_first r_nj W_2jc + Σ_second r_nj W_2jc + b_2c          the units of each machine
#
# Each machine computes one of the two sums from its own units, which it has computed from all of x, and an all-reduce
# adds them up. At the position that reads «p» and writes «o», row p→o, the first feature has the parts 1.284 and 0.222,
# and the bias −0.250.
#
# **Your line.** Write y, as both machines must have it in the end.

# %%
x, dy = example["decoder.ffn.x"], example["decoder.ffn.dy"]
W_1 = np.split(example["decoder.ffn.W_1"], 2, axis=1)  # columns: a list with the half of each machine
b_1 = np.split(example["decoder.ffn.b_1"], 2)
W_2 = np.split(example["decoder.ffn.W_2"], 2, axis=0)  # rows
b_2 = example["decoder.ffn.b_2"]
a = [x @ W_1[machine] + b_1[machine] for machine in (0, 1)]
r = [np.maximum(0, half) for half in a]
parts = [r[machine] @ W_2[machine] for machine in (0, 1)]
y = ...  # your line: from parts[0], parts[1] and b_2
lesson.judge("y", y)

# %% [markdown]
# It is parts[0] + parts[1] + b_2. Both machines keep all of b_2 and add it to the sum, since the sum of two parts with
# b_2 would contain it twice.
#
# ![Each machine has four units: its columns of W_1 and its rows of W_2](../plots/25_two_machines.png)
#
# ## Turn the arrows round
#
# On the way forward there were two places where the machines met. At the entrance, x was *copied* to both, and at the
# exit their parts were *summed*. Write them as matrices on the right, as W stands in y = x W, with one block for each
# machine and I for what passes unchanged:
#
#     copy: one x to two machines        (I  I)
#
#     sum: two parts to one y            (I)
#                                        (I)
#
# **Your line.** Through its own units, each machine has sent something back to x: back[0] on the first, back[1] on the
# second. Write dx, as both should have it.

# %%
da = [dy @ W_2[machine].T * (a[machine] > 0) for machine in (0, 1)]
back = [da[machine] @ W_1[machine].T for machine in (0, 1)]
dx = ...  # your line: from back[0] and back[1]
lesson.judge("dx", dx)

# %% [markdown]
# On the way back each map becomes its transpose, as in dx = dy Wᵀ of lesson 02. But each of these two is the transpose
# of the other:
#
#     the sum, backward                  both parts get a copy of dy
#     the copy, backward                 dx is the sum of what the two machines send back
#
# **What is copied on the way forward is summed on the way back, and what is summed is copied.** Between these two
# places neither machine needs anything from the other, and with its own units it computes
#
#     dr   = dy W_2ᵀ                     dW_2 = rᵀ dy
#     da   = dr where a > 0, else 0      dW_1 = xᵀ da,  db_1 = Σ_n da_n
#
# and finally da W_1ᵀ, its part of dx. Both compute the same db_2, since both have all of dy.


# %%
def on_two_machines(x, dy):
    """y and dx as both machines have them, and the gradients of their own weights."""
    a = [x @ W_1[machine] + b_1[machine] for machine in (0, 1)]  # x is copied
    r = [np.maximum(0, half) for half in a]
    y = sum(r[machine] @ W_2[machine] for machine in (0, 1)) + b_2  # an all-reduce
    dW_2 = [r[machine].T @ dy for machine in (0, 1)]  # dy is copied
    da = [dy @ W_2[machine].T * (a[machine] > 0) for machine in (0, 1)]
    dW_1 = [x.T @ da[machine] for machine in (0, 1)]
    dx = sum(da[machine] @ W_1[machine].T for machine in (0, 1))  # an all-reduce
    return y, dx, dW_1, dW_2, da


y_both, dx, dW_1, dW_2, da = on_two_machines(x, dy)
names = {"y": y_both, "dx": dx, "dW_1": np.hstack(dW_1), "dW_2": np.vstack(dW_2)}
for name, array in names.items():
    lesson.check(f"{name}, against the running example's", error(array, example[f"decoder.ffn.{name}"]), 1e-14)

# %% [markdown]
# ## Six curves that all fall
#
# How could Jonas have found out that his gradients were wrong? Not from a loss that falls. Here are three models, each
# trained twice from the same first weights. The first machine gets 16 words of four letters and the second 16 words of
# one or two. One run weights their gradients by tokens, and the other takes the plain mean.


# %%
def train(weights, seed, steps=150):
    """The loss of each step, where `weights` makes two shares of two numbers of tokens."""
    rng, losses = np.random.default_rng(1), []
    model = Transformer(load_example().model.config, seed=seed, dtype=np.float64)
    adam = Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        lengths = [np.full(16, 4), rng.integers(1, 3, 16)]
        batches = [["".join(rng.choice([*"opst"], length)) for length in each] for each in lengths]
        (L_first, N_first, g_first), (L_second, N_second, g_second) = (gradient(batch, model) for batch in batches)
        first, second = weights(N_first, N_second)
        whole, start = first * g_first + second * g_second, 0
        for parameter in model.parameters():
            size = parameter.data.size
            parameter.grad = whole[start : start + size].reshape(parameter.data.shape)
            start += size
        adam.step()
        losses.append((N_first * L_first + N_second * L_second) / (N_first + N_second))
    return losses


curves = {}
for seed in range(3):
    curves["by tokens", seed] = train(
        lambda N_first, N_second: (N_first / (N_first + N_second), N_second / (N_first + N_second)), seed
    )
    curves["plain mean", seed] = train(lambda N_first, N_second: (0.5, 0.5), seed)
last = {name: np.mean(losses[-20:]) for name, losses in curves.items()}
for seed in range(3):
    print(f"seed {seed}: weighted by tokens {last['by tokens', seed]:.3f}, plain mean {last['plain mean', seed]:.3f}")

# %% [markdown]
# ![The loss of three models, with the right weights and with the plain mean](../plots/25_two_machines_curves.png)
#
# You should see six curves that all fall. Measured by the mean over tokens, each wrong model ends behind its twin, by
# 0.035 to 0.157, but if you train only once, you have nothing to compare with: the best wrong one ends at 0.624, ahead
# of a right one with 0.681. So a single curve tells you nothing. It would also tell you nothing if both added their
# gradients and nobody divided: plain descent would go twice as far, but Adam divides the factor out again. What finds
# such mistakes is an equation: up to rounding, the step of many machines is the step of one.
#
# > **2012.** Krizhevsky, Sutskever and Hinton spread their network of 60 million weights over two graphics processors
# > of 3 GB, because one couldn't hold it. In 2017 the paper's eight processors shared each batch. In 2019 Shoeybi
# > and his co-authors at NVIDIA cut the matrices of a Transformer with 8.3 billion weights by columns and rows, as this
# > lesson does, and called it Megatron-LM.
#
# **In papers:** a machine is a *rank* or *worker*, a batch in parts *data parallelism* (in PyTorch, DDP), matrices in
# parts *tensor parallelism* (Shoeybi et al. 2019), and the rounds of the ring are *reduce-scatter* and *all-gather*
# (Patarasuk and Yuan 2009).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest.
#
# ### Heads are units, too
#
# Attention is cut in the same way. A head owns columns of W_q, W_k and W_v and rows of W_o (lesson 08), and needs no
# numbers from any other head. So each machine takes some of the heads, x and M are copied to all (so dx and dM are
# summed), and one sum follows W_o:

# %%
o, W_o = example["cross.o"], np.split(example["cross.W_o"], 2, axis=0)
y_cross = o[0] @ W_o[0] + o[1] @ W_o[1] + example["cross.b_o"]
lesson.check("cross-attention, one head on each machine", error(y_cross, example["cross.y"]), 1e-14)

# %% [markdown]
# ### Real machines, if small ones
#
# So far the machines were lists in one process. The layers of support/tensor_parallel.py run on each machine
# separately, and need only `add_up`, an all-reduce. Two threads play the machines here, and each waits until the other
# has put its array on the shelf. How to train on real machines is in docs/processes.md.


# %%
class Machine:
    """One of two machines, as the sharded layers need it."""

    size, shelf, barrier = 2, {}, threading.Barrier(2, timeout=60)

    def __init__(self, rank):
        self.rank = rank

    def add_up(self, array):
        self.shelf[self.rank] = array.copy()
        self.barrier.wait()
        total = self.shelf[0] + self.shelf[1]
        self.barrier.wait()  # nobody puts the next array there before both have read these
        array[:] = total


network = FeedForward(6, 8, dtype=np.float64)
for layer, number in ((network.expand, 1), (network.contract, 2)):
    layer.W.data[...], layer.b.data[...] = example[f"decoder.ffn.W_{number}"], example[f"decoder.ffn.b_{number}"]
on_machine = {}


def work(rank):
    part = ShardedFeedForward(network, Machine(rank))
    y, cache = part.forward(x)
    dx = part.backward(dy, cache)
    on_machine[rank] = {"y": y, "dx": dx, "dW_1": part.expand.W.grad, "dW_2": part.contract.W.grad}


threads = [threading.Thread(target=work, args=(rank,)) for rank in (0, 1)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for machine in (0, 1):
    mine = {"y": y_both, "dx": dx, "dW_1": dW_1[machine], "dW_2": dW_2[machine]}
    worst = max(error(mine[name], array) for name, array in on_machine[machine].items())
    lesson.check(f"{('first', 'second')[machine]} machine, against the sharded layer in a thread", worst, 1e-14)

# %% [markdown]
# ### Mistakes, and where they show
#
# Each mistake below is made on both machines, and the table has the errors of y and of the gradients on the first one.
# A dot means below 1e-12.

# %%
LINES = {"y": "parts[0] + parts[1] + b_2", "dy": "dy", "dx": "back[0] + back[1]", "db_2": "dy.sum(axis=0)"}
MISTAKES = {
    "the bias is added on each machine": {"y": "parts[0] + parts[1] + 2 * b_2"},
    "the parts are averaged": {"y": "(parts[0] + parts[1]) / 2 + b_2"},
    "the sum is forgotten": {"y": "parts[0] + b_2"},
    "dy is summed as well": {"dy": "dy + dy"},
    "dx is not summed": {"dx": "back[0]"},
    "dx is averaged": {"dx": "(back[0] + back[1]) / 2"},
    "db_2 is summed over the machines": {"db_2": "2 * dy.sum(axis=0)"},
}
COLUMNS = ("y", "dW_2", "dW_1", "dx", "db_2")


def run_wrong(changes):
    """The errors on the first machine with some of the four lines changed."""
    lines, known = {**LINES, **changes}, {"parts": parts, "b_2": b_2, "dy": dy}
    found = {"y": eval(lines["y"], known)}
    known["dy"] = eval(lines["dy"], known)
    slopes = [known["dy"] @ W_2[machine].T * (a[machine] > 0) for machine in (0, 1)]
    known["back"] = [slopes[machine] @ W_1[machine].T for machine in (0, 1)]
    found |= {"dW_2": r[0].T @ known["dy"], "dW_1": x.T @ slopes[0]}
    found |= {name: eval(lines[name], known) for name in ("dx", "db_2")}
    right = {"y": y_both, "dW_2": dW_2[0], "dW_1": dW_1[0], "dx": dx, "db_2": dy.sum(axis=0)}
    return [error(found[name], right[name]) for name in COLUMNS]


errors = {name: run_wrong(changes) for name, changes in MISTAKES.items()}
print(" " * 36, *(f"{name:>5}" for name in COLUMNS))
for name, values in errors.items():
    print(f"  {name:34}", *("    ." if value < 1e-12 else f"{value:5.2f}" for value in values))

# %% [markdown]
# Four of the seven leave the forward pass as it was, so the loss begins at the right value. "dy is summed as well" is
# the treacherous one. Both machines have computed the same loss, and adding their dy counts it twice, so everything
# inside the network doubles. But dy also goes past the network, on the residual path of lesson 11, and that part
# doesn't double. It happens automatically if a framework's derivative of an all-reduce is another all-reduce.
#
# ### Which of the two?
#
# Sharing the batch costs one all-reduce per step, over all parameters: 63 million in the base model, 252 MB
# in float32. Cutting the layers costs two for each pair of matrices, one forward and one backward, of C numbers per
# token. The base model has 12 such pairs in its encoder and 18 in its decoder. dM is summed too, once for all layers.
# With 25,000 tokens in the source and 25,000 in the target, each of these 61 sums has 25,000 · 512 numbers, or 51 MB.
# Together that is 3.1 GB in a step, and each of them keeps a layer waiting. So you share the batch if the model fits,
# and cut layers between processors that sit side by side.
#
# ## Exercise
#
# 1. Pencil, 10 minutes. By what must a machine weight its gradient if the loss has label smoothing? And what if the
#    loss is a mean over *words*, of the mean over the tokens of each word?
# 2. Pencil, 10 minutes. LayerNorm looks at all C features of a token. Can it be cut by features? What must the machines
#    tell each other?
# 3. Keyboard, 15 and 25 minutes. Write the exchange of gradients, and a matrix that is cut by rows.
#
# Exercises with a checker: `minitransformer start 25`.
#
# ## Questions
#
# 1. Why is W_1 cut by columns and W_2 by rows, and not both by columns?
# 2. The machines clip the gradient by its length. When must they do it, before the all-reduce or after?
# 3. Dropout acts on the hidden units, and on y. Which random numbers must be the same on both machines, and which must
#    not?
# 4. Four machines cut one layer. In the ring, how many vectors does each send in an all-reduce?
# 5. The machines exchange gradients and never weights. So what must hold before the first step, and how can it be
#    checked cheaply?
# 6. *Somewhere else.* A recording is too long for one machine, so its first half is on one machine and its second half
#    on another. A convolution makes y_n from x_(n−1), x_n and x_(n+1). What must the two tell each other on the way
#    forward, and what on the way back?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. The total of what the mean was taken over, at a common scale. A mean of means is right if each is weighted by its
#    total.
# 2. They are added. x reaches the loss along two paths, and the chain rule adds up all paths.
# 3. Only the effect of ε changes. Adam divides by the root of the mean square of the same gradients, and the factor
#    cancels.
#
# ### Questions
#
# 1. After a cut by columns, a machine has everything it needs for its rows of the next matrix. If W_2 were also cut by
#    columns, each machine would need all of r, and the machines would have to meet between the two.
# 2. After it. No machine knows the length of the sum before, and each part may be long where the sum is short.
# 3. The ones for y: both machines compute the same y, and it must stay the same. Each machine has different hidden
#    units, so their random numbers should differ.
# 4. 2 · 3/4 = 1.5.
# 5. All must start with the same weights, to the last bit. Each machine sends a checksum of its weights, and all
#    compare them, as our library does.
# 6. Forward, each sends the other a copy of its number at the border. What is copied forward is summed backward: each
#    sends back the gradient of the number it borrowed, and the owner adds it to its own.
#
# ### Exercise
#
# First: by its share of the tokens, as before, because smoothing changes each term but not the mean; in the second
# loss, by its share of the words. Second: yes, if the machines add up Σ x and Σ x² of each token, two numbers, before
# they normalize; and two more on the way back (lesson 10). So in practice the norms are left whole.

# %%
# the pictures of this lesson
figure, axes = canvas(7.4, 3.3)


def box(x, y, width, height, text, color, share):
    face = mix(color, share)
    axes.add_patch(plt.Rectangle((x, y), width, height, facecolor=face, edgecolor=color))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center")


def arrow(start, end, color):
    style = {"arrowstyle": "-|>", "color": color, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)


for machine, low in ((0, 1.85), (1, 0.35)):
    axes.add_patch(plt.Rectangle((1.35, low - 0.15), 4.5, 1.3, fill=False, edgecolor=GREY, linestyle=":"))
    name = f"{('first', 'second')[machine]} machine: units {4 * machine} to {4 * machine + 3}"
    axes.text(3.6, low + 1.02, name, ha="center", va="center")
    box(1.45, low, 1.25, 0.8, "columns of W_1\n(6, 4)", BLUE, 0.2)
    box(3.0, low + 0.1, 1.2, 0.6, "r = max(0, a)\n(5, 4)", GREY, 0.1)
    box(4.55, low, 1.1, 0.8, "rows of W_2\n(4, 6)", BLUE, 0.2)
    middle = low + 0.4
    for start, end in (((2.7, middle + 0.1), (3.0, middle + 0.1)), ((4.2, middle + 0.1), (4.55, middle + 0.1))):
        arrow(start, end, BLUE)
    for start, end in (((3.0, middle - 0.1), (2.7, middle - 0.1)), ((4.55, middle - 0.1), (4.2, middle - 0.1))):
        arrow(start, end, ORANGE)
    arrow((0.75, 1.6 + 0.12), (1.45, middle + 0.1), BLUE)
    arrow((1.45, middle - 0.1), (0.75, 1.6 - 0.12), ORANGE)
    arrow((5.65, middle + 0.1), (6.4, 1.6 + 0.12), BLUE)
    arrow((6.4, 1.6 - 0.12), (5.65, middle - 0.1), ORANGE)
box(0.1, 1.3, 0.65, 0.6, "x (5, 6)", BLUE, 0.1)
box(6.4, 1.3, 0.9, 0.6, "y (5, 6)", BLUE, 0.1)
axes.text(0.1, 2.2, "copy", color=BLUE)
axes.text(0.1, 0.95, "sum: dx", color=ORANGE)
axes.text(6.4, 2.2, "sum, + b_2", color=BLUE)
axes.text(6.4, 0.95, "copy: dy", color=ORANGE)
lesson.save(figure)

figure, axes = canvas(7.6, 1.75)
inside = [[{machine} for _ in range(3)] for machine in (1, 2, 3)]  # whose numbers are in each piece
for step in range(5):
    arrived = set()
    for machine in range(3 if step else 0):
        neighbour, piece = (machine + 1) % 3, (machine - step + 1) % 3
        inside[neighbour][piece] = inside[neighbour][piece] | inside[machine][piece]
        arrived.add((neighbour, piece))
    left = 0.75 + 1.4 * step
    axes.text(left + 0.6, 1.55, f"after step {step}" if step else "before", ha="center", va="center")
    for machine in range(3):
        for piece in range(3):
            whose, color = inside[machine][piece], ORANGE if (machine, piece) in arrived else BLUE
            place, face = (left + 0.4 * piece, 0.95 - 0.4 * machine), mix(color, 0.15 * len(whose))
            axes.add_patch(plt.Rectangle(place, 0.4, 0.4, facecolor=face, edgecolor="white"))
            axes.text(place[0] + 0.2, place[1] + 0.2, "".join(map(str, sorted(whose))), ha="center", va="center")
for machine, name in enumerate(("first", "second", "third")):
    axes.text(0.65, 1.15 - 0.4 * machine, name, ha="right", va="center")
lesson.save(figure, "ring")

figure, axis = plt.subplots(figsize=(6.4, 3))
for (name, seed), losses in curves.items():
    color = BLUE if name == "by tokens" else ORANGE
    axis.plot(losses, color=color, linewidth=1, label=name if seed == 0 else None)
axis.set(xlabel="step", ylabel="loss (nats)", ylim=(0, None))
axis.legend()
lesson.save(figure, "curves")
lesson.finish(globals())
