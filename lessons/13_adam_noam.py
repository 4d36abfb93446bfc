# %% [markdown]
# # Lesson 13: Adam and the Noam schedule
#
# [![The optimizer](../plots/13_adam_noam_map.png)](../plots/00_reverse_whole.png)
#
# **The gradient says in which direction each parameter should move, but how far should it move?**
#
# 11 min, with a pencil 30, going deeper 8 · runs in 55 s (fast: 10 s) · needs 03, 05, 06, 11, 12 · difficulty 3 of 5 ·
# paper: section 5.3, equation 3
#
# ## 826 numbers, and one question
#
# Our model has 826 parameters θ, and since lesson 12 we have the gradient g of its loss. Only one line is missing
# before it can learn: θ ← θ − ... How far should each parameter go?
#
# Gradient descent says θ ← θ − lr g, with one learning rate lr for all. Look at our gradients. The largest in size is
# −1.35. The smallest that is not 0 is 0.0000115, 118,000 times smaller. With lr = 0.001 the first parameter moves by
# 0.00135, and the other one by 0.00000001.
#
# Is that what we want? Look at the units. g is loss per unit of θ. For lr g to be a change of θ, lr must have the unit
# θ² per loss. So it depends on the scale of each parameter, and what is right for one is wrong for another.
#
# Adam, the paper's optimizer, has a different answer: all parameters move about equally far, by lr. And lr changes
# during training. It first rises and then falls, in a curve named after Noam Shazeer, one of the paper's authors.


# %% Imports
from lab import BLUE, GREEN, GREY, ORANGE, SKY, VOCABULARY, YELLOW, begin, error, plt
from pictures import grids

import numpy as np

from minitransformer.core import FlatParameter, Parameter
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer

lesson = begin("13_adam_noam")
example = load_example()


# %%
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
# ## Guess first
#
# Write your guesses down.
#
# 1. The weights of our model have two decimals, so a step of 0.01 changes each of them in its last digit. The loss is
#    0.111. What is it after one step of Adam with lr = 0.01: 0.05, 0.1 or 2?
# 2. Somebody trains the paper's base model "with lr = 2". What is the largest learning rate that it ever sees?
# 3. 18 parameters have no influence on the loss, so their gradients are 0. We train in float32. How far have they moved
#    after 100 steps, compared with parameters that matter?
#
# ## Divide by its own size
#
# Divide g by something of its own size, and the quotient has no unit. Then lr is simply a distance in θ. Adam keeps two
# running means for each parameter, one of the gradient and one of its square. Both begin at 0:
#
#     m₁ ← β₁ m₁ + (1 − β₁) g           β₁ = 0.9       looks back about 1/(1 − β₁) = 10 steps
#     m₂ ← β₂ m₂ + (1 − β₂) g²          β₂ = 0.98      looks back about 50 steps
#
# (Most texts call them m and v, but v already means value.) The mean of g evens out the noise of the batches. The root
# of the mean of g² is the size to divide by.
#
# But both means begin at 0, and in the first steps they are too small. By how much? Unroll the first line:
#
#     m₁ = (1 − β₁) (g now + β₁ g one step ago + β₁² g two steps ago + ...)
#
# Let `step` count from 1. Then the factors of all gradients so far add up to
#
#     (1 − β₁) (1 + β₁ + ... + β₁^(step − 1)) = 1 − β₁^step
#
# and not to 1. The rest, β₁^step, is the factor of the 0 at the beginning. Divide by this sum, and you have a proper
# mean. That is all of Adam:
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
# ## Small numbers
#
# Take the parameter with the largest gradient, −1.351. It is in the row of E for the letter o, and its value is 0.27.
# These are its first two steps, with lr = 0.001:
#
#     step 1   m₁ = 0.1 · (−1.351) = −0.1351                      m₂ = 0.02 · 1.351² = 0.0365
#              m̂₁ = −0.1351/0.1 = −1.351                          m̂₂ = 0.0365/0.02 = 1.824
#              θ = 0.27 + 0.001 · 1.351/√1.824 = 0.27 + 0.001
#     step 2   (all parameters have moved, and the gradient is now −0.4847)
#              m₁ = 0.9 · (−0.1351) + 0.1 · (−0.4847) = −0.1700   m₂ = 0.98 · 0.0365 + 0.02 · 0.4847² = 0.0405
#              m̂₁ = −0.1700/0.19 = −0.895                         m̂₂ = 0.0405/0.0396 = 1.022
#              θ = 0.271 + 0.001 · 0.895/√1.022 = 0.271 + 0.000885
#
# In the first step the size of g cancels: m̂₁ = g and √m̂₂ = |g|. The parameter moves by lr against the sign of g, and
# so does every other one whose g is not 0. Here are the gradients of E, and how far its entries go in the first step:

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
# The row of pad has no gradient above 0.0008, and its entries move just as far as all others.
#
# ## One step for everybody
#
# Now let all 826 parameters take their first step. A small change of θ changes the loss by the sum of g times the
# change. Each parameter moves by lr against the sign of its g, so the loss should change by −lr Σ_j |g_j| = −74.8 lr.
#
# [In the explorer: take the step with the learning rate 0.01 instead of 0.001. Does the loss fall ten times as far?
# Guess first.](../minitransformer/explorer/page/index.html#embed=output.L&turn=lr&steps=1&lr=0.001&weights=trained)


# %%
def loss_after(lr):
    """The loss after one step of all parameters."""
    weights.data[:], _, _ = adam_step(start, g, zeros, zeros, 1, lr)
    return loss_and_gradient(model, weights)[0]


after = {lr: loss_after(lr) for lr in (0.0001, 0.001, 0.01)}
for lr in after:
    print(f"lr = {lr}: loss {L:.4f} -> {after[lr]:.4f}, predicted {L - lr * np.abs(g).sum():.4f}")

# %% [markdown]
# With lr = 0.001 the loss falls from 0.111 to 0.070. With lr = 0.01 it *rises* to 2.15! (That was guess 1.) Each weight
# has changed by one in its last digit only. But all have moved at once, each as if the others stood still. The
# prediction for this step was −0.64, and no loss can be negative.
#
# The more parameters pull together, the worse this gets. Take one output of a linear layer, y = Σ_c x_c W_c. Its
# gradients are dW_c = x_c dy. So the first step changes W_c by −lr times the signs of x_c and dy, and y by
#
#     −lr sign(dy) Σ_c x_c sign(x_c) = −lr sign(dy) Σ_c |x_c|           about 0.8 C lr for normal x_c
#
# All C terms have the same sign. So wide models need short steps. And the first step is the most dangerous one. Later
# the gradients of different batches disagree, and |m₁| is smaller than √m₂. (Lesson 11 has a model that did not recover
# from its first step.)
#
# ## The Noam schedule
#
# The paper's learning rate helps with both. It is smaller for a wide model (by 1/√C, where our estimate asks for 1/C),
# and it begins close to 0. It rises in a straight line for 4,000 steps, the warm-up, and then falls as 1/√step:
#
#     lr = C^−0.5 · min(step^−0.5, step · warmup^−1.5)
#
# The two branches meet where step^−0.5 = step · warmup^−1.5, which means step = warmup. There is the peak, with lr =
# 1/√(C · warmup): 6.99e-4 for the base model (C = 512), 4.94e-4 for the big one (C = 1024). Step 1 has only 1.75e-7. In
# the layer of the last section, with C = 512, a first step of 6.99e-4 would change y by 0.29, and one of 1.75e-7
# changes it by 0.00007.
#
# There are two traps. At step 0 the formula divides by zero, so count from 1. And much code puts a factor in front of
# the formula, and calls that factor the learning rate. Then "lr = 2" means twice this curve, with a peak of 1.40e-3.
# (That was guess 2.)


# %%
def noam(step, C, warmup=4000, factor=1.0):
    return factor * C**-0.5 * min(step**-0.5, step * warmup**-1.5)


# %% [markdown]
# ## Checked
#
# An optimizer has no gradient to test. But in 100 steps with random gradients of very different sizes, it must arrive
# where the library's Adam arrives.

# %%
from minitransformer import training

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

# %% [markdown]
# ## The picture

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
# You should see a blue line that dips near 0.001 and then climbs, and on the right three curves with their peak at step
# 4,000. If your peak is somewhere else, you count something other than steps, for instance updates of single arrays.
#
# ## The surprise
#
# The 18 parameters without influence are the biases of the keys in the three attentions. A key bias b_k adds q_t·b_k to
# all scores of a row, and the softmax ignores what is added to all of them. So the gradient of b_k is exactly 0, and it
# "never learns", as lesson 06 said. But in floating point the terms of this 0 cancel only up to rounding noise. Train
# the model for 100 steps, in float64 and in float32, and see how far the key biases go.


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

# %% [markdown]
# In float64 the noise is far below ε, and the key biases stay where they are. In float32 the noise is about 5e-9,
# millions of times smaller than the gradients of the query biases (0.11). But it is above ε = 1e-9, and Adam divides by
# its size. So the key biases move by about 0.004, nearly as far as the query biases, which move by 0.005. (That was
# guess 3.) The loss cannot see it, and it does no harm. But if you compare two correct implementations after training,
# this is where they differ.
#
# (13 more gradients are 0. They belong to a hidden unit that ReLU switches off in all five rows, and they have no
# rounding noise.)

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and go on with lesson 14.
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
# So m₁/√m₂ is at most 1.70 with the paper's β₁ and β₂, and 7.27 with PyTorch's β₂ = 0.999. It reaches this bound if g_i
# is in proportion to (β₁/β₂)^i. That is a gradient that grows by β₂/β₁ = 1.089 in every step, as in a run that begins
# to diverge. The steps are longest when you least want it.

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
# ### Without the correction
#
# Both means begin too small, so you would expect short steps. But m₂ is in the denominator, and takes longer to grow.
# With a steady gradient a step is lr (1 − β₁^step) / √(1 − β₂^step) long. With the paper's β₂ it begins with 0.71 lr
# and rises to 1.55 lr at step 14. With PyTorch's it begins with 3.16 lr and rises to 6.57 lr at step 12.
#
# ### What Adam cannot see
#
# Take a loss with two parameters, a long valley: ½ (100 θ_1² + 0.01 θ_2²), from (1, 1). Gradient descent, which
# libraries call SGD, must keep lr below 2/100. After 400 steps it still has 0.93 of its way along the flat axis to go,
# while Adam has arrived. Now turn the valley by 45°. Both parameters see mostly the steep direction, and Adam, too, has
# 0.97 left. It keeps one size for each parameter, and it knows no directions.

# %%
count = np.arange(1, 201)
uncorrected = {beta2: (1 - 0.9**count) / np.sqrt(1 - beta2**count) for beta2 in (0.98, 0.999)}
steepness = np.array([100.0, 0.01])


def descend(adam, turn):
    """400 steps from (1, 1) -> the losses, and how far it still has to go along the flat axis."""
    theta, m1, m2, losses = turn @ np.ones(2), np.zeros(2), np.zeros(2), []
    for step in range(1, 401):
        along = turn.T @ theta  # the position along the two axes
        losses.append((steepness * along**2).sum() / 2)
        gradient = turn @ (steepness * along)
        if adam:
            theta, m1, m2 = adam_step(theta, gradient, m1, m2, step, lr=0.02)
        else:
            theta = theta - 0.019 * gradient
    return losses, abs((turn.T @ theta)[1])


straight, turned = np.eye(2), np.array([[1, -1], [1, 1]]) / np.sqrt(2)
valleys = {"SGD": descend(False, straight), "Adam": descend(True, straight), "Adam, turned": descend(True, turned)}

# %% [markdown]
# ### What warm-up buys
#
# Train a small model (C = 32, two layers in each stack) to copy words: with SGD, and with Adam with and without a
# warm-up of 100 steps.

# %%
from minitransformer.data import get_task
from minitransformer.models import named_config
from minitransformer.system.progress import tqdm

task, STEPS = get_task("copy"), lesson.pick(400, 20)


def train(kind, lr, warmup):
    """STEPS steps with batches of 32 words -> the losses."""
    config = named_config("tiny", len(task.vocabulary), d_model=32, d_ff=64, dropout=0.0)
    model, rng, losses = Transformer(config, seed=0), np.random.default_rng(3), []
    optimizer = training.Adam(model.parameters())
    for step in range(1, STEPS + 1):
        source, target_in, target_out = task.batch(rng, 32)
        optimizer.zero_grad()
        logits, cache = model.forward(source, target_in)
        loss, loss_cache = cross_entropy(logits, target_out)
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        losses.append(float(loss))
        rate = lr * min(1.0, step / warmup) if warmup else lr
        if kind == "Adam":
            optimizer.lr = rate
            optimizer.step()
        else:
            optimizer.weights[:] -= rate * optimizer.flat.grad
    return np.array(losses)


RUNS = [("SGD", 0.5, 0), ("Adam", 0.02, 0), ("Adam", 0.02, 100), ("Adam", 0.003, 0)]
curves = {each: train(*each) for each in tqdm(RUNS, disable=None)}
end = {each: curve[-20:].mean() for each, curve in curves.items()}
for (kind, lr, warmup), last in end.items():
    print(f"{kind:4} lr {lr:5}, warm-up {warmup:3}: {last:.2f} nats a token")

# %%
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8.0, 3.0))
left.plot(count, uncorrected[0.999], color=ORANGE, label="β₂ = 0.999")
left.plot(count, uncorrected[0.98], color=BLUE, label="β₂ = 0.98")
left.set(title="Without the correction", xlabel="step", ylabel="step length / lr", ylim=(0, 7))
for (name, (descent, _)), color in zip(valleys.items(), (ORANGE, BLUE, SKY), strict=True):
    middle.semilogy(descent, "--" if "turned" in name else "-", color=color, label=name)
middle.set(title="A valley", xlabel="step", ylabel="loss", ylim=(1e-9, 1e4))
for (kind, lr, warmup), color in zip(RUNS, (YELLOW, ORANGE, BLUE, SKY), strict=True):
    name = f"{kind} {lr}" + (", warm-up" if warmup else "")
    blocks = curves[kind, lr, warmup].reshape(-1, 10).mean(axis=1)
    right.plot(10 * np.arange(len(blocks)) + 5, blocks, color=color, label=name)
right.set(title="Learning to copy", xlabel="step", ylabel="loss (nats)", ylim=(0, 6))
for panel in (left, middle, right):
    panel.legend(fontsize=8, loc="upper right")
lesson.save(figure, "training")

# %% [markdown]
# ![Steps without correction, a valley, and learning to copy](../plots/13_adam_noam_training.png)
#
# You should see, on the right, one line that stays near 3. With lr = 0.02 and without warm-up Adam learns hardly
# anything and ends at about 3.2, where guessing one of 27 tokens costs 3.30. With warm-up it ends at about 0.2. But
# with lr = 0.003 it needs no warm-up, and ends at about 0.2, too. So warm-up buys a higher learning rate. A model this
# shallow can do without. (SGD ends at about 1.6.)
#
# ### Clipping
#
# The paper does not mention it, but most later code does it: if the length ‖g‖ of all gradients together is more than a
# limit, multiply all of them by limit/‖g‖. The direction stays. With SGD this makes the step short. With Adam it does
# not: multiply all gradients of a run by 0.1, and m̂₁/√m̂₂ stays the same, except for ε. Clipping only keeps a single
# batch with huge gradients from filling m₁ and m₂.

# %%
ends = []
for scale in (1.0, 0.1):
    rng, theta, m1, m2 = np.random.default_rng(2), np.zeros(50), np.zeros(50), np.zeros(50)
    for step in range(1, 101):
        theta, m1, m2 = adam_step(theta, scale * rng.standard_normal(50), m1, m2, step, lr=0.01)
    ends.append(theta)
lesson.check("all gradients times 0.1: the same weights after 100 steps, except for ε", error(*ends), 1e-6)

# %% [markdown]
# ### What it cost
#
# Table 2 of the paper has the cost of training, 3.3e18 floating-point operations for the base model and 2.3e19 for the
# big one. Nobody counted these operations. They are time times rate: 12 hours · 8 GPUs · 9.5e12 operations a second =
# 3.28e18, and 3.5 days give 2.30e19. Our library counts what all matrix products need, forward and backward, for
# 100,000 and 300,000 steps of 25,000 source and 25,000 target tokens, in sentences of 30. It finds 9.5e17 and 9.7e18.
# So the table has 3.4 times and 2.4 times what the models needed.

# %%
from minitransformer.inspection import training_flops

cost = {}
for name, steps_taken, hours in (("base", 100_000, 12), ("big", 300_000, 3.5 * 24)):
    tokens = 25_000 * steps_taken
    counted = sum(training_flops(named_config(name, 37_000), tokens, tokens, 30, 30).values())
    cost[name] = hours * 3600 * 8 * 9.5e12, counted
    print(f"{name}: time times rate {cost[name][0]:.3g}, counted {counted:.3g}, ratio {cost[name][0] / counted:.2f}")

# %% [markdown]
# ### In the wild
#
# * PyTorch's Adam has β₂ = 0.999 and ε = 1e-8 by default. "Adam as in the paper" with these defaults is a different
#   optimizer. It trains, too.
# * BERT's optimizer has no bias correction. Its warm-up hides this.
# * OpenNMT's recipe says `-learning_rate 2`, and the Annotated Transformer's first version has a factor of 2. Both mean
#   the factor in front of the formula.
# * PyTorch's `LambdaLR` asks for step 0. If your function returns 0 there, the first step changes no weight, but m₁ and
#   m₂ move on.
#
# ## Exercise
#
# 1. Keyboard, 5 minutes. Leave the correction out of `adam_step`, and take the running example's first step with lr =
#    0.001 and β₂ = 0.98, then 0.999. First predict the loss: read it from the picture "One step of Adam".
# 2. Pencil, 10 minutes. A model has 100 weight arrays, and its author increases the step once for each array. At which
#    true step is the peak, and how does lr at the true step 4,000 compare with the right one?
#
# Exercises with a checker: `minitransformer start 13`.
#
# ## Questions
#
# 1. Somebody multiplies the loss by 100. What changes with SGD, with Adam, and with clipped SGD?
# 2. You double the warm-up from 4,000 to 8,000. What happens to the peak, and to the rate at step 20,000?
# 3. A model does not share E with its output, and a token is rare: its row of E has the gradient 0 for thousands of
#    steps, then g once. How long is that step?
# 4. The gradients are pure noise with mean 0. How long is a typical step of Adam?

# %% [markdown]
# ## Answers
#
# 1. SGD: the steps are 100 times as long, and it may diverge. Adam: nothing, except that ε counts less. Clipped SGD:
#    nothing where the gradient was above the limit before.
# 2. The peak comes at 8,000 and is lower by a factor of √2. At step 20,000 nothing changes, because the falling branch
#    does not contain the warm-up.
# 3. m₁ = 0.1 g, m₂ = 0.02 g², and the corrections are 1: about 0.71 lr. In the next steps it moves on, as m₁ decays.
# 4. m₁ has the variance (1 − β₁)² Σ_i β₁^2i = (1 − β₁)/(1 + β₁) times that of g, and m₂ estimates that of g: about
#    √(0.1/1.9) = 0.23 lr, in a random direction.
#
# The exercise. First: the steps are 0.71 lr and 3.16 lr long, and the losses are 0.076 and 0.172. The second step is
# too long, and the loss rises. Second: at the true step 40. At the true step 4,000 the author is at 400,000, and lr is
# √100 = 10 times too small.

# %%
without = {}
for beta2 in (0.98, 0.999):
    weights.data[:] = start - 0.001 * 0.1 * g / (np.sqrt((1 - beta2) * g**2) + 1e-9)
    without[beta2], _ = loss_and_gradient(model, weights)
lesson.finish(globals())
