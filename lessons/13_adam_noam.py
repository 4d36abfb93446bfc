# %% [markdown]
# # Lesson 13: Adam and the Noam schedule
#
# [![The Transformer, with the optimizer lit](../plots/13_adam_noam_map.png)](../plots/00_reverse_whole.png)
#
# **The gradient says which direction each parameter should move in, but how far should it move?**
#
# 11 min, with a pencil 30, going deeper 5 · runs in 10 s (fast: 10 s) · needs 03, 06, 11, 12 · difficulty 3 of 5 ·
# paper: section 5.3, equation 3
#
# ## One rate for 826 numbers
#
# Amir has the gradient g of our model's loss, for all of its 826 parameters θ, and only one line is missing before the
# model can learn. He writes θ ← θ − lr g with lr = 0.001, and looks at what moves.
#
# The parameter with the largest gradient, −1.35, has moved by 0.00135. The one with the smallest that is not 0,
# 0.0000115, has moved by 0.00000001, which is 118,000 times less. A rate that suits the second would make the first fly
# off.
#
# Measure a parameter in units ten times smaller. Then θ is ten times as large, g is a tenth, and for the same move lr
# must be 100 times as large. Why should one rate suit both parameters? Adam, the paper's optimizer, has a different
# answer: all parameters move about equally far, by lr. And lr changes during training, in a curve named after Noam
# Shazeer, one of the paper's authors.

# %% Imports
from support.lab import BLUE, GREEN, GREY, ORANGE, VOCABULARY, begin, error, plt
from support.pictures import grids

import numpy as np

from minitransformer import training
from minitransformer.core import Parameter
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer
from minitransformer.training.flat import FlatParameter

lesson = begin("13_adam_noam")
example = load_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (06) The bias of the keys never learns, whatever the loss. Why not?
# 2. (03) The gradient of the logits is p − p*. How far does plain gradient descent still move the weights when the
#    model is almost sure, and right?
# 3. (11) Without warm-up, the rows of a post-norm stack were nearly all alike after a single step. Which weights had
#    moved, and by how much?
#
# (The answers are at the end.)


# %% The model, and its gradient
def make_model(dtype):
    """The running example's model -> the model, and its θ and g as one long vector each, `.data` and `.grad`."""
    state = {name: array.astype(dtype) for name, array in example.model.state_dict().items()}
    model = Transformer(example.model.config, seed=None, dtype=dtype)
    model.load_state_dict(state)
    return model, FlatParameter(model.parameters())


def loss_and_gradient(model, weights):
    weights.zero_grad()
    logits, cache = model.forward(example.source, example.target_in)
    L, loss_cache = cross_entropy(logits, example.target_out)
    model.backward(cross_entropy_backward(1.0, loss_cache), cache)
    return float(L), weights.grad.copy()


model, weights = make_model("float64")
start = weights.data.copy()
L, g = loss_and_gradient(model, weights)
not_zero = np.abs(g) > 1e-9
print(f"L = {L:.4f}, {g.size} gradients, {not_zero.sum()} of them are not 0")
print(f"sizes {np.abs(g[not_zero]).min():.3g} to {np.abs(g).max():.3g}")

# %% [markdown]
# ## Divide the gradient by its own size
#
# If you divide g by something of its own size, lr is simply a distance in θ. Adam keeps two running means for each
# parameter, one of the gradient and one of its square, and both begin at 0:
#
#     m₁ ← β₁ m₁ + (1 − β₁) g           β₁ = 0.9
#     m₂ ← β₂ m₂ + (1 − β₂) g²          β₂ = 0.98
#
# The mean of g evens out the noise of the batches, and the root of the mean of g² is the size to divide by. But both
# means begin at 0, so at first they are too small. To see by how much, unroll the first line:
#
#     m₁ = (1 − β₁) (g now + β₁ g one step ago + β₁² g two steps ago + ...)
#
# So m₁ looks back about 1/(1 − β₁) = 10 steps (0.9¹⁰ = 0.35), and m₂ about 50. Let `step` count from 1. Then the
# factors of all gradients so far add up to
#
#     (1 − β₁) (1 + β₁ + ... + β₁^(step − 1)) = 1 − β₁^step
#
# and not to 1, since the rest, β₁^step, is the factor of the 0 at the beginning.
#
# **Your line.** A parameter has had the gradients 2, 4 and 3, so its m₁ is 0.1 · (3 + 0.9 · 4 + 0.81 · 2) = 0.822,
# which is less than any of the three. Turn it into a proper mean.

# %%
three = 0.1 * (3 + 0.9 * 4 + 0.81 * 2)  # m₁ after three steps
proper = ...  # your line: a mean of 2, 4 and 3, from three
lesson.judge("proper", proper)

# %% [markdown]
# The factors add up to 1 − 0.9³ = 0.271, and 0.822/0.271 = 3.03. So divide each mean by the sum of its factors, and you
# have all of Adam:
#
#     m̂₁ = m₁ / (1 − β₁^step)           m̂₂ = m₂ / (1 − β₂^step)
#     θ  ← θ − lr m̂₁ / (√m̂₂ + ε)        ε = 1e-9


# %%
def adam_step(theta, g, m1, m2, step, lr, beta1=0.9, beta2=0.98, eps=1e-9):
    """-> the new θ, m₁ and m₂."""
    m1 = beta1 * m1 + (1 - beta1) * g
    m2 = beta2 * m2 + (1 - beta2) * g**2
    m1_hat = m1 / (1 - beta1**step)
    m2_hat = m2 / (1 - beta2**step)
    return theta - lr * m1_hat / (np.sqrt(m2_hat) + eps), m1, m2


# %% [markdown]
# ## Two steps of one parameter
#
# Take the parameter with the largest gradient, −1.35068, which is in the row of E for «o» and has the value 0.27. With
# lr = 0.001, its first two steps are these:
#
#     step 1   m₁ = 0.1 · (−1.35068) = −0.13507                   m₂ = 0.02 · 1.35068² = 0.036487
#              m̂₁ = −0.13507/0.1 = −1.3507                        m̂₂ = 0.036487/0.02 = 1.8243
#              θ = 0.27 + 0.001 · 1.3507/√1.8243 = 0.27 + 0.001
#     step 2   (all parameters have moved, and the gradient is now −0.4847)
#              m₁ = 0.9 · (−0.13507) + 0.1 · (−0.4847) = −0.1700  m₂ = 0.98 · 0.036487 + 0.02 · 0.4847² = 0.04046
#              m̂₁ = −0.1700/0.19 = −0.895                         m̂₂ = 0.04046/0.0396 = 1.022
#              θ = 0.271 + 0.001 · 0.895/√1.022 = 0.271 + 0.000885
#
# In the first step the size of g cancels: m̂₁ = g and √m̂₂ = |g|. The parameter moves by lr against the sign of g, and
# so does every other one whose g isn't 0. **Adam doesn't ask how large a gradient is, but how large it is compared with
# what it has been.** Here are the gradients of E, and how much its entries change in the first step:

# %%
zeros = np.zeros_like(start)
first, m1, m2 = adam_step(start, g, zeros, zeros, 1, lr=0.001)
dE = g[:42].reshape(7, 6)
moved = (first - start)[:42].reshape(7, 6) / 0.001
figure = grids({"dE (V, C)": dE, "change of E / lr (V, C)": moved}, {"V": VOCABULARY}, gradients={"dE"}, digits=3)
lesson.save(figure, "numbers")

# %% [markdown]
# ![The gradient of E, and its first step](../plots/13_adam_noam_numbers.png)
#
# The row of «pad» has no gradient above 0.001 in size, yet it moves just as far.
#
# ## One step for everybody
#
# Now let all 826 parameters take their first step. A small change of θ changes the loss by the sum of g times the
# change, which here should be −lr Σ_j |g_j| = −74.8 lr.
#
# **Your guess.** The weights of our model have two decimals (median size 0.28), so a step of 0.01 changes each in its
# last digit. The loss is 0.111 now, so what is it after one step with lr = 0.01?

# %%
guess = ...  # the loss after one step of Adam with lr = 0.01


# %%
def loss_after(lr):
    """The loss after one step of all parameters."""
    weights.data[:], _, _ = adam_step(start, g, zeros, zeros, 1, lr)
    return loss_and_gradient(model, weights)[0]


after = {lr: loss_after(lr) for lr in (0.0001, 0.001, 0.01)}
for lr in after:
    print(f"lr = {lr}: loss {L:.4f} -> {after[lr]:.4f}, predicted {L - lr * np.abs(g).sum():.4f}")
lesson.compare("loss after one step with lr = 0.01", guess, after[0.01])

# %% [markdown]
# With lr = 0.001 the loss falls from 0.111 to 0.070, and with lr = 0.01 it *rises* to 2.15. Each weight has changed
# only in its last digit, but all have moved at once, each as if the others stood still. The prediction was −0.64, and
# no loss can be negative.
#
# [In the explorer: which learning rate takes the loss lowest in one step? Guess
# first.](../minitransformer/explorer/page/index.html#embed=output.L&turn=lr&steps=1&lr=0.001&weights=trained)
#
# The more parameters pull together, the worse this gets. Take one output of a linear layer, y = Σ_c x_c W_c, and a
# single token, so that dW_c = x_c dy. The first step changes each W_c by −lr sign(x_c) sign(dy), and so y by
#
#     −lr sign(dy) Σ_c x_c sign(x_c) = −lr sign(dy) Σ_c |x_c|           0.8 C lr: a normal |x_c| has the mean 0.8
#
# All C terms have the same sign, so wide models need short steps. This is the worst case (0.8 is √(2/π)): with N tokens
# dW_c = Σ_n x_nc dy_n, and the signs agree only as far as the tokens do. And the first step is usually the most
# dangerous one, because later the gradients of different batches differ in sign and cancel in m₁, but not in m₂.

# %% [markdown]
# ## The Noam schedule
#
# The paper's learning rate takes care of wide models and the first step. It falls with the width as 1/√C, and it begins
# close to 0. It rises in a straight line for 4,000 steps, the warm-up, and then falls as 1/√step:
#
#     lr = C^−0.5 · min(step^−0.5, step · warmup^−1.5)
#
# The two branches meet where step^−0.5 = step · warmup^−1.5, which means step = warmup. The peak is there, with lr =
# 1/√(C · warmup): 6.99e-4 for the base model (C = 512), 4.94e-4 for the big one (C = 1024). Step 1 has only 1.75e-7. In
# the layer above, with C = 512 and one token, a first step of 6.99e-4 would change y by 0.29, and one of 1.75e-7
# changes it by 0.00007.
#
# There are two traps. At step 0 the formula divides by zero, so count from 1 (PyTorch's LambdaLR begins at 0). And a
# lot of code uses the name "learning rate" for a factor in front of the formula. Then "lr = 2" means twice this curve,
# with a peak of 1.40e-3.


# %%
def noam(step, C, warmup=4000, factor=1.0):
    return factor * C**-0.5 * min(step**-0.5, step * warmup**-1.5)


# %% [markdown]
# An optimizer has no gradient to test, but in 100 steps with random gradients of very different sizes, ours must arrive
# where the library's does.

# %%
rng = np.random.default_rng(1)
parameter = Parameter(rng.standard_normal((7, 5)))
optimizer = training.Adam([parameter])
theta, mean1, mean2 = parameter.data.copy(), np.zeros((7, 5)), np.zeros((7, 5))
for step in range(1, 101):
    parameter.grad = 10.0 ** rng.uniform(-6, 2) * rng.standard_normal((7, 5))
    theta, mean1, mean2 = adam_step(theta, parameter.grad, mean1, mean2, step, noam(step, 512, 40))
    optimizer.lr = training.noam(step, 512, 40)
    optimizer.step()
lesson.check("100 steps of Adam with warm-up, as in the library", error(theta, parameter.data), 1e-12)
rates = np.array([noam(step, 512) for step in range(1, 20_001)])
lesson.check("the peak is at step 4,000; off by", abs(rates.argmax() + 1 - 4000), 0)
lesson.check("and its height is 1/√(C · warmup)", error(rates.max(), 1 / np.sqrt(512 * 4000)), 1e-14)

# %%
LRS = 10.0 ** np.arange(-4, -0.95, 0.1)
figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.3))
left.loglog(LRS, [loss_after(lr) for lr in LRS], color=BLUE, label="loss after the step")
left.loglog(LRS, np.maximum(L - LRS * np.abs(g).sum(), 1e-9), "--", color=ORANGE, label="predicted by g")
left.axhline(L, color=GREY, linewidth=0.8, label="loss before")
left.set(title="One step of Adam", xlabel="learning rate", ylabel="loss", ylim=(0.01, 10))
left.legend(loc="upper left")
steps = np.arange(1, 20_001)
for label, color, C, factor in (('base, "lr = 2"', ORANGE, 512, 2), ("base", BLUE, 512, 1), ("big", GREEN, 1024, 1)):
    right.plot(steps, [noam(step, C, factor=factor) for step in steps], color=color, label=label)
right.set(title="The Noam schedule", xlabel="step", ylabel="learning rate")
right.ticklabel_format(axis="y", scilimits=(0, 0))
right.legend()
lesson.save(figure)

# %% [markdown]
# ![The loss after one step of Adam, and the Noam schedule](../plots/13_adam_noam.png)
#
# The loss after one step dips near 0.001 and then climbs, while the prediction falls forever. On the right, all three
# curves peak at step 4,000.

# %% [markdown]
# > **2014.** Diederik Kingma and Jimmy Ba, two doctoral students, published Adam. It divides by the root of a mean of
# > squares, as Geoffrey Hinton's RMSprop had done in 2012, and corrects both means for starting at 0. In 2017 the
# > Transformer was trained with it, and Ilya Loshchilov and Frank Hutter took weight decay out of the gradient: AdamW.

# %% [markdown]
# ## Weights that learn from rounding noise
#
# Of our 31 zero gradients, 13 belong to a hidden feature that ReLU holds at 0, and 18 to the biases of the keys in the
# three attentions. A key bias b_k adds q_t·b_k to all scores of a row, and the softmax ignores anything added to all of
# them. So the gradient of b_k is exactly 0, and it "never learns", as lesson 06 said. But in floating point the terms
# of this 0 cancel only up to rounding noise.
#
# **Your guess.** We train the model for 100 steps in float32. How far have the key biases moved by then, compared with
# the query biases, which do matter?

# %%
guess = ...  # distance of the key biases / distance of the query biases, in float32


# %%
def key_and_query_biases(model, what="data"):
    """The 18 biases (or gradients, what="grad") of the keys, and those of the queries."""
    arrays = {name: getattr(parameter, what).copy() for name, parameter in model.named_parameters()}
    encoder = arrays["encoder.layers.0.self_attention.sublayer.qkv.b"]  # q, k and v side by side
    decoder = arrays["decoder.layers.0.self_attention.sublayer.qkv.b"]
    cross_q, cross_kv = (arrays[f"decoder.layers.0.cross_attention.sublayer.{part}.b"] for part in ("q", "kv"))
    key, query = [encoder[6:12], decoder[6:12], cross_kv[:6]], [encoder[:6], decoder[:6], cross_q]
    return np.concatenate(key), np.concatenate(query)


noise, moved_by = {}, {}
for dtype in ("float64", "float32"):
    twin, vector = make_model(dtype)
    before = key_and_query_biases(twin)
    m1 = m2 = np.zeros_like(vector.data)
    for step in range(1, 101):
        final, gradient = loss_and_gradient(twin, vector)
        if step == 1:
            noise[dtype] = [np.abs(each).mean() for each in key_and_query_biases(twin, "grad")]
        vector.data[:], m1, m2 = adam_step(vector.data, gradient, m1, m2, step, lr=0.001)
    now = key_and_query_biases(twin)
    moved_by[dtype] = [np.abs(each - old).mean() for each, old in zip(now, before, strict=True)]
    print(f"{dtype}: first |gradient| of key biases {noise[dtype][0]:.1e}, of query biases {noise[dtype][1]:.1e}")
    print(f"         they moved by {moved_by[dtype][0]:.1e} and {moved_by[dtype][1]:.1e}, loss {final:.4f}")
lesson.compare("key biases over query biases, in float32", guess, moved_by["float32"][0] / moved_by["float32"][1])

# %% [markdown]
# In float64 the noise is far below ε, and the key biases stay where they are. In float32 the noise is about 5e-9,
# millions of times smaller than the gradients of the query biases (0.11). But it is above ε = 1e-9, and Adam divides by
# its size. So the key biases move by about 0.004, nearly as far as the query biases, which move by 0.005. The loss
# can't see it, but two correct implementations, compared after training, differ here.
#
# **In papers:** m₁ and m₂ are m and v, estimates of the *first* and *second moment*, dividing by 1 − β^step is *bias
# correction* (Kingma and Ba 2014), and the Noam schedule is *linear warm-up* with *inverse square root decay*.

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 14.
#
# ### Is a step never longer than lr?
#
# After many steps the corrections are 1. Let g_i be the gradient of one parameter i steps ago. The inequality of Cauchy
# and Schwarz says
#
#     m₁ = (1 − β₁) Σ_i β₁^i g_i = (1 − β₁) Σ_i (β₁/√β₂)^i · √β₂^i g_i
#        ≤ (1 − β₁) √(Σ_i (β₁²/β₂)^i) · √(Σ_i β₂^i g_i²)
#        = (1 − β₁) / √(1 − β₁²/β₂) · √m₂ / √(1 − β₂)                   if β₁² < β₂
#
# So m₁/√m₂ is at most 1.70 with the paper's β₁ and β₂, and 7.27 with PyTorch's β₂ = 0.999. It reaches this bound if
# the two factors under the sum are proportional, which makes g_i proportional to (β₁/β₂)^i, a gradient that grows by
# β₂/β₁ = 1.089 in every step, as in a run that begins to diverge. The steps are longest when you least want them to be.

# %%
longest = {}
for beta2 in (0.98, 0.999):
    theta, m1, m2 = 0.0, 0.0, 0.0
    for step in range(1, 20_001):
        gradient = max((beta2 / 0.9) ** (step - 20_000), 1e-150)  # grows up to 1
        old = theta
        theta, m1, m2 = adam_step(theta, gradient, m1, m2, step, lr=1.0, beta2=beta2, eps=0.0)
    longest[beta2] = old - theta
    bound = (1 - 0.9) / np.sqrt((1 - 0.81 / beta2) * (1 - beta2))
    lesson.check(f"β₂ = {beta2}: a growing gradient reaches the bound", error(longest[beta2], bound), 1e-6)

# %% [markdown]
# ### What Adam cannot see
#
# Take a loss with two parameters, a long valley: ½ (100 θ_1² + 0.01 θ_2²), from (1, 1). Gradient descent, which
# libraries call SGD, must keep lr below 2/100, as lesson 24 shows. After 400 steps with 0.019 it still has 0.93 of its
# way along the flat axis to go, while Adam, with 0.02, has arrived. Now rotate the valley by 45°. Both parameters see
# mostly the steep direction, and Adam, too, has 0.97 left. It keeps one size for each parameter, and knows nothing
# about directions.

# %%
steepness = np.array([100.0, 0.01])


def descend(adam, turn):
    """400 steps from (1, 1) -> how far it still has to go along the flat axis."""
    theta, m1, m2 = turn @ np.ones(2), np.zeros(2), np.zeros(2)
    for step in range(1, 401):
        along = turn.T @ theta  # the position along the two axes
        gradient = turn @ (steepness * along)
        if adam:
            theta, m1, m2 = adam_step(theta, gradient, m1, m2, step, lr=0.02)
        else:
            theta = theta - 0.019 * gradient
    return abs((turn.T @ theta)[1])


straight, turned = np.eye(2), np.array([[1, -1], [1, 1]]) / np.sqrt(2)
valleys = {"SGD": descend(False, straight), "Adam": descend(True, straight), "Adam, turned": descend(True, turned)}
print("left of the way along the flat axis:", *(f"{name} {left:.2f}," for name, left in valleys.items()))

# %% [markdown]
# ### Clipping
#
# The paper doesn't mention it, but most later code does it: if the length ‖g‖ of all gradients together is more than a
# limit, multiply all of them by limit/‖g‖. The direction stays the same. With SGD this makes the step short. With Adam
# it doesn't: multiply all gradients of a run by 0.1, and m̂₁/√m̂₂ stays the same, except for ε. Clipping only keeps a
# single batch with huge gradients from filling m₁ and m₂.

# %%
ends = []
for scale in (1.0, 0.1):
    rng, theta, m1, m2 = np.random.default_rng(2), np.zeros(50), np.zeros(50), np.zeros(50)
    for step in range(1, 101):
        theta, m1, m2 = adam_step(theta, scale * rng.standard_normal(50), m1, m2, step, lr=0.01)
    ends.append(theta)
lesson.check("all gradients times 0.1: the same weights after 100 steps, except for ε", error(*ends), 1e-6)

# %% [markdown]
# ## Exercise
#
# 1. Keyboard, 5 minutes. Leave the correction out of `adam_step`, and take the running example's first step with lr =
#    0.001 and β₂ = 0.98, then with PyTorch's 0.999. First predict the length of the two steps, and the loss, which you
#    can read from the picture of one step.
# 2. Pencil, 10 minutes. A model has 100 weight arrays, and its author increases the step once for each array. At what
#    true step is the peak, and how does lr at the true step 4,000 compare with the right one?
#
# Exercises with a checker: `minitransformer start 13`.
#
# ## Questions
#
# 1. A colleague multiplies the loss by 100. What changes with SGD, with Adam, and with clipped SGD?
# 2. You double the warm-up from 4,000 to 8,000. What happens to the peak, and to the rate at step 20,000?
# 3. A model doesn't share E with its output, and a token is rare: its row of E has a gradient of 0 for thousands of
#    steps, then g once. How long is that step?
# 4. The gradients are pure noise with mean 0. How long is a typical step of Adam?
# 5. *Somewhere else.* A thermostat keeps a running mean, mean ← 0.99 mean + 0.01 reading, which begins at 0. The room
#    stays at 20 degrees. What does the thermostat show after 10 readings, and what should it divide by?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. It adds the same number to all scores of a row, so no attention weight changes, and its gradient is 0.
# 2. Hardly at all: p − p* is almost 0 there, and so is every gradient further back. (Adam divides by that size, and
#    moves on.)
# 3. All weights of all sub-layers, and each by the learning rate, so that each sub-layer added nearly the same thing to
#    every row.
#
# ### Questions
#
# 1. SGD: the steps are 100 times as long, and it may diverge. Adam: nothing, except that ε counts less. Clipped SGD:
#    nothing where the gradient was above the limit before.
# 2. The peak comes at 8,000 and is lower by a factor of √2. At step 20,000 nothing changes, because the falling branch
#    doesn't contain the warm-up.
# 3. m₁ = 0.1 g, m₂ = 0.02 g², and the corrections are 1: about 0.71 lr. In the next steps it keeps moving, as m₁
#    decays.
# 4. m₁ has variance (1 − β₁)² Σ_i β₁^2i = (1 − β₁)/(1 + β₁) times that of g, and m₂ estimates that of g: about
#    √(0.1/1.9) = 0.23 lr, in a random direction.
# 5. It shows 1.91 degrees. The factors of its readings add up to 1 − 0.99¹⁰ = 0.0956, and divided by their sum the mean
#    is 20 from the first reading on.
#
# ### Exercise
#
# First: both means are too small, but m₂ is in the denominator. The steps are 0.1/√0.02 = 0.71 lr and 0.1/√0.001 = 3.16
# lr long, and the losses are 0.076 and 0.172. The second step is too long, and the loss rises. Second: at the true step
# 40. At the true step 4,000 the author is at 400,000, and lr is √100 = 10 times too small.

# %%
without = {}
for beta2 in (0.98, 0.999):
    weights.data[:] = start - 0.001 * 0.1 * g / (np.sqrt((1 - beta2) * g**2) + 1e-9)
    without[beta2], _ = loss_and_gradient(model, weights)
lesson.finish(globals())
