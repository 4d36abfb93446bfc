# %% [markdown]
# # Lesson 13: Adam and the Noam curve
#
# * Question: how far does one step move a weight, and why must the first steps be short?
# * You derive: Adam and its bias correction; the bound on a step; the peak of the schedule; clipping
# * Reading: 23 min, going deeper 0 min
# * Run: 60 s (fast: 5 s)
# * Needs: 06, 11, 12
# * Difficulty: 3 of 5
# * Paper: section 5.3, equation 3

# %%
from lab import BLUE, GREEN, ORANGE, SKY, YELLOW, begin, error, plt

import numpy as np

lesson = begin("13_adam_noam")

# %% [markdown]
# Backward gives one number for each weight: g = dLoss/dθ, with θ for the weight. What remains is one line, `θ -= ...`.
# The paper (section 5.3) fills it in with Adam, β₁ = 0.9, β₂ = 0.98, ε = 1e-9, and with a learning rate that changes
# at each step s:
#
#     lr(s) = d_model^−0.5 · min(s^−0.5, s · w^−1.5)          w = 4000 steps of warm-up
#
# The curve is called Noam's, after Noam Shazeer, one of the authors. People tell each other that Adam "adapts the
# learning rate", that its steps are never longer than lr, and that "lr = 2" works. We shall see what that means.
#
# ## Predict
#
# Write down your guesses. Parts 3 and 4 of the derivation and "The surprise" answer them.
#
# 1. Two weights have the gradients 1000 and 0.001 at the first step. How far does Adam move each, if lr = 0.01?
# 2. Somebody trains "with lr = 2". What is the largest learning rate that the base model (d_model = 512) ever sees?
# 3. A weight has no influence on the loss. Its gradient is 0 but for rounding, about 1e-10. How far has it moved
#    after 300 steps, compared with a weight that matters?

# %% [markdown]
# ## Small numbers
#
# One weight, lr = 1, gradients g₁ = 4 and then g₂ = −2. Adam keeps two running means, m of g and v of g²:
#
#     t = 1   m = 0.9 · 0 + 0.1 · 4 = 0.4             v = 0.98 · 0 + 0.02 · 16 = 0.32
#             m̂ = 0.4 / (1 − 0.9) = 4                 v̂ = 0.32 / (1 − 0.98) = 16
#             step = m̂ / √v̂ = 4 / 4 = 1
#     t = 2   m = 0.9 · 0.4 − 0.1 · 2 = 0.16          v = 0.98 · 0.32 + 0.02 · 4 = 0.3936
#             m̂ = 0.16 / (1 − 0.81) = 0.842           v̂ = 0.3936 / (1 − 0.9604) = 9.939
#             step = 0.842 / 3.153 = 0.267
#
# The 4 has dropped out of the first step. Any other positive number would have given 1, too. And the second step
# still goes the old way, though its gradient points the other way: m remembers.


# %%
def adam_step(theta, g, m, v, t, lr, beta1=0.9, beta2=0.98, eps=1e-9):
    """Step number t = 1, 2, ... -> the new theta, m and v."""
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    m_hat = m / (1 - beta1**t)
    v_hat = v / (1 - beta2**t)
    return theta - lr * m_hat / (np.sqrt(v_hat) + eps), m, v


theta = m = v = 0.0
for t, g in enumerate((4.0, -2.0), 1):
    new, m, v = adam_step(theta, g, m, v, t, lr=1.0)
    print(f"t = {t}: g {g:4.0f}  m {m:.4f}  v {v:.4f}  step {theta - new:.3f}")
    step, theta = theta - new, new
lesson.quote("step = 0.842 / 3.153 = 0.267", m / 0.19, (v / 0.0396) ** 0.5, step)

# %% [markdown]
# ## The derivation
#
# ### Part 1: a step without units
#
# Plain gradient descent (SGD) is θ ← θ − lr g. Take Loss = ½ h θ², so g = h θ, and θ ← (1 − lr h) θ. If lr > 2/h, θ
# grows without end. Now let there be two weights with h = 100 and h = 0.01. The first allows at most lr = 0.02; with
# that, the second shrinks by the factor 1 − 0.0002 a step and needs thousands of steps.
#
# The units show what is wrong. g is loss per θ. So lr must be θ² per loss, a different number for each weight.
# Divide g by something of its own size, and the quotient has no unit; lr is then a length, measured in θ itself.
# Adam's divisor is the root of the mean of g² over the last steps, and its g is a mean as well, to even out noise:
#
#     m ← β₁ m + (1 − β₁) g            v ← β₂ v + (1 − β₂) g²           elementwise, from m = v = 0
#
# ### Part 2: why 1 − βᵗ
#
# Unroll the recursion. Step i's gradient has been multiplied by 1 − β once and by β in each of the t − i steps since:
#
#     m_t = (1 − β) Σᵢ βᵗ⁻ⁱ gᵢ                            i = 1 ... t
#     the weights add up to  (1 − β)(1 + β + ... + βᵗ⁻¹) = (1 − β)(1 − βᵗ)/(1 − β) = 1 − βᵗ
#
# Not to 1: the missing βᵗ is the weight of the zero that m began with. If all gᵢ have the mean μ, m_t has the mean
# μ (1 − βᵗ). Divided by 1 − βᵗ, m̂ is a proper weighted mean. Likewise v̂. It looks back over about 1/(1 − β) steps: 10
# for m, 50 for v (PyTorch's default β₂ = 0.999: 1000).

# %% [markdown]
# What if one leaves it out? With a steady gradient, m = g (1 − β₁ᵗ) and v = g² (1 − β₂ᵗ), so a step would have
# the size lr (1 − β₁ᵗ) / √(1 − β₂ᵗ). The root of v starts even further below its value than m, so most early steps
# come out too LONG, which is the opposite of what "both start at zero" suggests:
#
#     paper, β₂ = 0.98      first step 0.71 lr, longest 1.55 lr at step 14
#     PyTorch, β₂ = 0.999   first step 3.16 lr, longest 6.57 lr at step 12

# %%
t = np.arange(1, 2001)
uncorrected = {beta2: (1 - 0.9**t) / np.sqrt(1 - beta2**t) for beta2 in (0.98, 0.999)}
paper, pytorch = uncorrected.values()
lesson.quote("first step 0.71 lr, longest 1.55 lr at step 14", paper[0], paper.max(), paper.argmax() + 1)
lesson.quote("first step 3.16 lr, longest 6.57 lr at step 12", pytorch[0], pytorch.max(), pytorch.argmax() + 1)
for beta in (0.9, 0.98, 0.999):
    weights = (1 - beta) * beta ** np.arange(30) / (1 - beta**30)
    lesson.check(f"beta {beta}, t = 30: the corrected weights add up to 1", error(weights.sum(), 1.0), 1e-14)

# %% [markdown]
# ### Part 3: how long is a step?
#
# The first: m̂ = g and v̂ = g², so the step is lr g / (|g| + ε). That is lr with the sign of g, whatever the size of g,
# as long as |g| is much more than ε = 1e-9. At |g| = ε it is half of it.
#
# Later: let aᵢ and bᵢ be the weights of gᵢ in m̂ and of gᵢ² in v̂. By the inequality of Cauchy and Schwarz
#
#     |m̂| = |Σᵢ aᵢ/√bᵢ · √bᵢ gᵢ| ≤ √(Σᵢ aᵢ²/bᵢ) · √(Σᵢ bᵢ gᵢ²) = √(Σᵢ aᵢ²/bᵢ) · √v̂
#
# so a step is at most lr √(Σᵢ aᵢ²/bᵢ). After many steps aᵢ = (1 − β₁) β₁ᵏ and bᵢ = (1 − β₂) β₂ᵏ with k = t − i:
#
#     Σᵢ aᵢ²/bᵢ = (1 − β₁)²/(1 − β₂) · Σₖ (β₁²/β₂)ᵏ = (1 − β₁)²/(1 − β₂) / (1 − β₁²/β₂)        if β₁² < β₂
#
# Its root is 1.70 with the paper's β and 7.27 with PyTorch's. Equality needs gᵢ in proportion to aᵢ/bᵢ: a gradient that
# grows by β₂/β₁ = 1.089 at every step. Adam's own paper (Kingma and Ba 2015, section 2.1) gives as the bound the larger
# of lr, which it is for the first β, and (1 − β₁)/√(1 − β₂) lr = 3.16 lr, for the second; the growing gradient steps
# over both.

# %%
for size in (1e3, 1.0, 1e-3, 1e-9):
    first = -adam_step(0.0, size, 0.0, 0.0, 1, lr=0.01)[0]
    print(f"first gradient {size:7.0e}: moved by {first:.6f}")
first_steps = np.array([-adam_step(0.0, g, 0.0, 0.0, 1, lr=0.01)[0] for g in (1e3, 1e-3)])
lesson.check("gradient 1000 or 0.001: the first step is lr", error(first_steps, np.full(2, 0.01)), 3e-6)
lesson.check("gradient 1e-9 = eps: half of it", error(first, 0.005), 1e-14)
longest = {}
for beta2 in (0.98, 0.999):
    theta = m = v = 0.0
    for t in range(1, 20_001):
        g = max((beta2 / 0.9) ** (t - 20_000), 1e-150)  # grows up to 1 at the last step
        new, m, v = adam_step(theta, g, m, v, t, lr=1.0, beta2=beta2, eps=0.0)
        longest[beta2], theta = theta - new, new
    bound = 0.1 / (1 - beta2) ** 0.5 / (1 - 0.81 / beta2) ** 0.5
    print(f"beta2 {beta2}: a gradient that grows by {beta2 / 0.9:.3f} a step: step {longest[beta2]:.4f} lr")
    lesson.check("the step reaches the bound", error(longest[beta2], bound), 1e-6)
lesson.quote("Its root is 1.70 with the paper's β and 7.27 with PyTorch's", *longest.values())
lesson.quote("grows by β₂/β₁ = 1.089 at every step", 0.98 / 0.9)
lesson.quote("(1 − β₁)/√(1 − β₂) lr = 3.16 lr", 1, 1, (1 - 0.9) / (1 - 0.999) ** 0.5)

# %% [markdown]
# ### Part 4: the Noam curve
#
# min(s^−0.5, s w^−1.5): the second branch is a straight line through 0, the first one falls. They meet where
#
#     s^−0.5 = s w^−1.5    ⟺    s^1.5 = w^1.5    ⟺    s = w            and there lr = 1 / √(d_model w)
#
# For s < w the line is lower, after it the root: the rise ends at s = w with a corner, and that is the peak. For the
# base model 1/√(512 · 4000) = 6.99e-4, for the big one (d_model = 1024) 4.94e-4. Step 1 has 1.75e-7.
#
# At s = 0 the formula asks for 0^−0.5, a division by zero. So s counts from 1. And in much code a factor stands
# before the formula, and that is what its option "learning rate" sets. "lr = 2" means twice this curve, peak 1.40e-3.
#
# Why short first steps? By part 3 the first step moves all weights by lr, in the sign of their gradients. Take one
# output of a linear layer, y = Σᵢ xᵢ Wᵢ, with C inputs of size 1. Its gradients are dWᵢ = xᵢ dy, so Wᵢ changes by
# −lr sign(xᵢ) sign(dy) and y by
#
#     −lr sign(dy) Σᵢ xᵢ sign(xᵢ) = −lr sign(dy) Σᵢ |xᵢ|             about 0.8 C lr if the xᵢ are normal
#
# All C changes pull together. At C = 512 and the peak rate this is 0.29, in ONE step of one layer, where y itself is of
# size 1. All layers do it at once, each as if the others stood still. Lesson 11 measured what comes of that in 24
# sub-layers. At 1.75e-7 the change is 0.00007. The factor d_model^−0.5 shortens the steps of wider models, where more
# changes pull together.


# %%
def noam(s, d_model, w=4000, factor=1.0):
    return factor * d_model**-0.5 * min(s**-0.5, s * w**-1.5)


rates = np.array([noam(s, 512) for s in range(1, 20_001)])
lesson.check("the largest of 20,000 rates comes at step 4000; off by", abs(rates.argmax() + 1 - 4000), 0)
lesson.check("... and is 1 / √(d_model w)", error(rates.max(), 1 / (512 * 4000) ** 0.5), 1e-14)
lesson.quote("1/√(512 · 4000) = 6.99e-4, for the big one (d_model = 1024) 4.94e-4. Step 1 has 1.75e-7",
             1, 512, 4000, rates.max(), 1024, noam(4000, 1024), 1, noam(1, 512))  # fmt: skip
lesson.quote('"lr = 2" means twice this curve, peak 1.40e-3', 2, noam(4000, 512, factor=2))
x = np.random.default_rng(0).standard_normal((1000, 512))
change = np.abs(x).sum(axis=1).mean()
lesson.quote("At C = 512 and the peak rate this is 0.29", 512, change * rates.max())
lesson.quote("At 1.75e-7 the change is 0.00007", rates[0], change * rates[0])
try:
    noam(0, 512)
except ZeroDivisionError as stop:
    print("step 0:", stop)

# %% [markdown]
# ### Part 5: clipping
#
# Not in the paper, but in nearly all code since. Take all gradients together as one vector with the length
# |g| = √(Σ g²), summed over all weights, and if it is longer than c, make it c long:
#
#     g ← g · min(1, c / |g|)
#
# One factor for all: the direction stays. Clipping each entry by itself would turn it. With SGD a clipped step is a
# short step. With Adam look again at m̂/√v̂: multiply ALL gradients of a run by the same number and nothing changes but
# for ε. So clipping does not make Adam's steps shorter. What it does is to let one batch with a huge
# gradient count no more than others, in m and, for 50 steps, in v.
#
# ## From scratch
#
# `adam_step` and `noam` stand above. What is left is clipping. The 1e-6 (as in PyTorch) keeps it from dividing by 0.


# %%
def clip(gradients, c):
    """-> the factor for all gradients."""
    length = np.sqrt(sum((g**2).sum() for g in gradients))
    return min(1.0, c / (length + 1e-6))


# %% [markdown]
# ## Checked
#
# An optimiser has no gradient to check by complex step. What can be checked: it equals the library's, over many
# steps, with a rate that changes and clipping on; and the properties that we have derived. The library computes
#
#     lr √(1 − β₂ᵗ) / (1 − β₁ᵗ) · m / (√v + √(1 − β₂ᵗ) ε)
#
# Multiply numerator and denominator of lr m̂ / (√v̂ + ε) by √(1 − β₂ᵗ) to see that it is the same, with fewer arrays.

# %%
from minitransformer import training
from minitransformer.core import Parameter
from minitransformer.training.clipping import clip_factor, grad_norm

rng = np.random.default_rng(1)
shapes = [(3, 5), (7,), (2, 3, 4)]
parameters = [Parameter(rng.standard_normal(shape)) for shape in shapes]
mine = [(p.data.copy(), np.zeros(p.data.shape), np.zeros(p.data.shape)) for p in parameters]
optimizer, worst, worst_clip = training.Adam(parameters), 0.0, 0.0
for s in range(1, 101):
    gradients = [10.0 ** rng.uniform(-6, 2) * rng.standard_normal(shape) for shape in shapes]
    for p, g in zip(parameters, gradients, strict=True):
        p.grad = g
    factor, lr = clip(gradients, 1.0), noam(s, 512, 40)
    library_factor = clip_factor(grad_norm(parameters), 1.0)
    worst_clip = max(worst_clip, error(factor, library_factor))
    optimizer.lr = training.noam(s, 512, 40)
    optimizer.step(scale=library_factor)
    mine = [adam_step(p, g * factor, m, v, s, lr) for (p, m, v), g in zip(mine, gradients, strict=True)]
    worst = max(worst, *(error(a[0], p.data) for a, p in zip(mine, parameters, strict=True)))
lesson.check("100 steps with clipping and warm-up equal the library's Adam", worst, 1e-12)
lesson.check("the clipping factors equal the library's", worst_clip, 1e-12)
schedules = [[f(s, 512, 4000, 2.0) for s in (1, 7, 3999, 4000, 4001, 10**6)] for f in (noam, training.noam)]
lesson.check("the schedule equals the library's, bit for bit", error(*schedules), 0.0)
ends = []
for scale in (1.0, 1000.0):
    theta = m = v = np.zeros(50)
    rng = np.random.default_rng(2)
    for t in range(1, 101):
        theta, m, v = adam_step(theta, scale * rng.standard_normal(50), m, v, t, lr=0.01)
    ends.append(theta)
lesson.check("all gradients times 1000: the same weights after 100 steps, but for eps", error(*ends), 1e-6)

# %% [markdown]
# ## Where Adam helps, and where not
#
# The two weights of part 1, h = 100 and h = 0.01, from (1, 1). SGD with lr = 0.019, just stable, against Adam with lr =
# 0.02. Then the same bowl turned by 45°, so that its axes are no longer those of the weights.

# %%
h, turn = np.array([100.0, 0.01]), np.array([[1, -1], [1, 1]]) / 2**0.5


def descend(kind, R, steps=400):
    """Loss = ½ Σ h z² with z = θ R, from z = (1, 1) -> the loss at each step, and the last z."""
    theta, losses = np.ones(2) @ R.T, []
    m = v = np.zeros(2)
    for t in range(1, steps + 1):
        z = theta @ R
        losses.append(0.5 * (h * z**2).sum())
        g = (h * z) @ R.T
        if kind == "sgd":
            theta = theta - 0.019 * g
        else:
            theta, m, v = adam_step(theta, g, m, v, t, lr=0.02)
    return np.array(losses), theta @ R


bowls = {"SGD": descend("sgd", np.eye(2)), "Adam": descend("adam", np.eye(2)), "Adam, turned": descend("adam", turn)}
for name, (losses, z) in bowls.items():
    print(f"{name:13} loss {losses[0]:.1f} -> {losses[-1]:.1e}, distance left along the flat axis {abs(z[1]):.2g}")
flat = {name: abs(z[1]) for name, (_, z) in bowls.items()}

# %% [markdown]
# After 400 steps SGD has 0.93 of its way along the flat axis still to go. Adam has arrived: it divides each weight's
# gradient by that gradient's own size, so both weights take the same steps. But in the turned bowl Adam, too, has
# 0.97 left. Both weights now see mostly the steep axis, and v has one number a weight: it knows no directions.
#
# So Adam undoes a bad scale of single weights, no more. In a Transformer that is much: in lesson 11 the query and
# key gradients of one layer were more than a hundred times those of another. Now train one: the paper's model of
# lesson 12, small (2 + 2 layers, d_model = 32), on copying words of up to 12 letters, batches of 32.

# %%
lesson.quote("SGD has 0.93 of its way along the flat axis still to go", flat["SGD"])
lesson.quote("0.97 left. Both weights now see", flat["Adam, turned"])
lesson.check("Adam on the bowl with straight axes: distance left", flat["Adam"], 1e-6)

from minitransformer.data import get_task
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.models import Transformer, named_config
from minitransformer.progress import tqdm

task, STEPS = get_task("copy"), lesson.pick(400, 20)


def make_model(dtype="float32"):
    sizes = {"d_model": 32, "d_ff": 64, "dropout": 0.0}
    return Transformer(named_config("tiny", len(task.vocabulary), **sizes), seed=0, dtype=dtype)


def gradients_of(model, rng):
    """Fill all gradients from one batch of 32 -> the loss."""
    source, target_in, target_out = task.batch(rng, 32)
    model.zero_grad()
    logits, cache = model.forward(source, target_in)
    loss, cache_loss = cross_entropy(logits, target_out)
    model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    return float(loss)


# %%
def train(kind, lr, warmup=0):
    """Losses of STEPS steps; the rate rises in a straight line over `warmup` steps and then stays."""
    model, rng, losses = make_model(), np.random.default_rng(3), []
    optimizer = training.Adam(model.parameters())  # which makes all weights one long vector
    for s in range(1, STEPS + 1):
        losses.append(gradients_of(model, rng))
        rate = lr * min(1.0, s / warmup) if warmup else lr
        if kind == "adam":
            optimizer.lr = rate
            optimizer.step()
        else:
            for parameter in model.parameters():
                parameter.data -= rate * parameter.grad
    return np.array(losses)


tries = [("sgd", 0.3, 0), ("sgd", 0.5, 0), ("sgd", 1.0, 0), ("adam", 0.003, 0), ("adam", 0.003, 100)]
tries += [("adam", 0.02, 0), ("adam", 0.02, 100)]
losses = {key: train(*key) for key in tqdm(tries, disable=None)}
end = {key: run[-20:].mean() for key, run in losses.items()}
for (kind, lr, warmup), last in end.items():
    print(f"{kind:5} lr {lr:5}  warm-up {warmup:3}: loss {last:.3f} nats a token")

# %% [markdown]
# ## The weight that nobody needs
#
# One parameter of attention has the gradient 0, exactly: the key's bias b. The scores are s_ti = q_t · (k_i + b) / √D
# for query t and key i (D numbers a head). The term q_t · b is the same for all i, and softmax does not see what is
# added to all scores of a row (lesson 03). Or from below: db = Σ_t q_t (Σ_i ds_ti) / √D, and rows of ds sum to 0
# (lesson 06).
#
# In floating point such a sum of cancelling terms leaves rounding noise. Train with lr = 0.001 and watch the three
# parts of the first attention's bias, for query, key and value.

# %%
KEY_STEPS, C, biases = lesson.pick(300, 30), 32, {}
for dtype in ("float32", "float64"):
    model, rng, sizes = make_model(dtype), np.random.default_rng(4), []
    optimizer = training.Adam(model.parameters(), lr=0.001)
    bias = model.encoder.layers[0].self_attention.sublayer.qkv.b  # query | key | value
    for _ in range(KEY_STEPS):
        gradients_of(model, rng)
        sizes.append(np.abs(bias.grad.reshape(3, C)).mean(axis=1))
        optimizer.step()
    gradient, moved = np.mean(sizes, axis=0), np.abs(bias.data.reshape(3, C)).mean(axis=1)
    biases[dtype] = gradient, moved
    print(f"{dtype}: mean |gradient| query {gradient[0]:.1e}, key {gradient[1]:.1e};"
          f"  moved: query {moved[0]:.1e}, key {moved[1]:.1e}")  # fmt: skip
source, target_in, _ = task.batch(np.random.default_rng(5), 8)
before = model(source, target_in)
bias.data[C : 2 * C] += 5.0
unseen = error(model(source, target_in), before)
lesson.check("float64: 5 added to the whole key bias changes the logits by", unseen, 1e-12)
for dtype, bound in (("float64", 1e-12), ("float32", 1e-5)):
    query, key, _ = biases[dtype][0]
    lesson.check(f"{dtype}: the key bias's gradient over the query bias's", key / query, bound)

# %% [markdown]
# ## The picture

# %%
figure, axes = plt.subplots(2, 2, figsize=(6.4, 4.5))
s = np.arange(1, 20_001, 50)
for label, colour, d_model, factor in (
    ("base", BLUE, 512, 1),
    ("big", GREEN, 1024, 1),
    ('base, "lr = 2"', ORANGE, 512, 2),
):
    axes[0, 0].plot(s / 1000, [1000 * noam(k, d_model, factor=factor) for k in s], color=colour, label=label)
axes[0, 0].set(title="Noam schedule, peak 1/√(d_model w)", xlabel="step (thousands)", ylabel="learning rate (1/1000)")
t = np.arange(1, 201)
axes[0, 1].plot(t, uncorrected[0.999][:200], color=ORANGE, label="β₂ = 0.999 (PyTorch)")
axes[0, 1].plot(t, uncorrected[0.98][:200], color=BLUE, label="β₂ = 0.98 (paper)")
axes[0, 1].axhline(1, color=GREEN, linestyle="--", label="corrected")
axes[0, 1].set(title="Steps without bias correction", xlabel="step", ylabel="step length / lr", ylim=(0, 7))
for (name, (bowl, _)), colour in zip(bowls.items(), (ORANGE, BLUE, SKY), strict=True):
    axes[1, 0].semilogy(bowl, "--" if "turned" in name else "-", color=colour, label=name)
axes[1, 0].set(title="A bowl, straight and turned", xlabel="step", ylabel="loss", ylim=(1e-9, 1e3))
shown = {("sgd", 0.5, 0): ("SGD, 0.5", YELLOW), ("adam", 0.02, 0): ("Adam, 0.02", ORANGE),
         ("adam", 0.02, 100): ("Adam, 0.02, warm-up", BLUE),
         ("adam", 0.003, 0): ("Adam, 0.003", SKY)}  # fmt: skip
for key, (label, colour) in shown.items():
    blocks = losses[key].reshape(-1, 10).mean(axis=1)
    axes[1, 1].plot(np.arange(len(blocks)) * 10 + 5, blocks, color=colour, label=label)
axes[1, 1].set(
    title="Copy, for optimizer and lr", xlabel="step (mean of 10)", ylabel="loss (nats per token)", ylim=(0, 5)
)
for axis in axes.flat:
    axis.legend(fontsize=7, ncols=2 if axis is axes[1, 1] else 1, columnspacing=1.0)
figure.suptitle("Learning rate, step length and loss of Adam", fontsize=11)
lesson.save(figure)

# %% [markdown]
# You should see, above left, three roofs with the ridge at step 4000; above right, two humps that come down to 1, the
# lower one within 100 steps; below left, one line that falls without end and two that stay at the same height; below
# right, one line that stays above 3 and three that fall, SGD's slowest.
# If the ridge is anywhere else, s is counted in something else than steps (in weight arrays, for instance). If Adam on
# the straight bowl stops early, ε stands inside the root.

# %% [markdown]
# ## The surprise
#
# Three things came out otherwise than we had been told.
#
# A step of Adam is not bounded by lr. A gradient that grows by 1.089 a step, as it may in a run that begins to
# diverge, makes steps of 1.70 lr, and with β₂ = 0.999 a similar one makes 7.27 lr.
#
# Warm-up is not free. At a learning rate of 0.02 hardly anything is learnt without it: 3.16 nats, where guessing one of
# 27 tokens costs 3.30. With it, 0.30. But at 0.003 this small model ends at 0.19 without and 0.23 with warm-up. Warm-up
# buys the right to a higher rate, and a model this shallow has no use for it. (SGD's best of three rates gets to 1.56.)
#
# And the weight without influence moves. In float32 the key bias's gradient is 4.0e-10, ten million times smaller than
# the query bias's 4.1e-03. After 300 steps the query's bias has moved by 0.020 and the key's by about a fifth of
# that (here; it is noise). Adam asks only for the sign and for a size well above ε, and 4.0e-10 is nearly ε. In
# float64 the noise is 7.3e-19, far below ε, and the bias stays. It does no harm, as the loss cannot see it. But compare
# two right implementations after training, and this is where they differ.

# %%
(key32, moved32), (key64, moved64) = biases["float32"], biases["float64"]
lesson.check("float32: the key bias has moved, as a share of the query bias", moved32[1] / moved32[0], at_least=0.03)
lesson.check("float64: the same", moved64[1] / moved64[0], 1e-7)
best = min(last for (kind, *_), last in end.items() if kind == "sgd")
if not lesson.fast:
    lesson.check("Adam, 0.02, no warm-up: loss", end["adam", 0.02, 0], at_least=2.5)
    lesson.check("Adam, 0.02, warm-up: loss", end["adam", 0.02, 100], 1.0)
    lesson.check("Adam, 0.003, over the best SGD: loss", end["adam", 0.003, 0] / best, 0.5)
guess = np.log(27)  # 26 letters and the end
lesson.quote("3.16 nats, where guessing one of 27 tokens costs 3.30. With it, 0.30",
             end["adam", 0.02, 0], 27, guess, end["adam", 0.02, 100], within=0.3, full_only=True)  # fmt: skip
lesson.quote("at 0.003 this small model ends at 0.19 without and 0.23 with warm-up",
             0.003, end["adam", 0.003, 0], end["adam", 0.003, 100], within=0.5, full_only=True)  # fmt: skip
lesson.quote("SGD's best of three rates gets to 1.56", best, within=0.2, full_only=True)
lesson.quote("In float32 the key bias's gradient is 4.0e-10", 32, key32[1], within=0.9, full_only=True)
lesson.quote("query bias's 4.1e-03. After 300 steps the query's bias has moved by 0.020",
             key32[0], 300, moved32[0], within=0.2, full_only=True)  # fmt: skip
lesson.quote("In float64 the noise is 7.3e-19", 64, key64[1], within=0.9, full_only=True)

# %%
lesson.claim("Adam's first step has the size lr whatever the gradient", "right",
             f"gradients of 1000 and 0.001 move it by {first_steps[0]:.5f} and {first_steps[1]:.5f} at lr = 0.01, "
             f"one as small as eps by half of that")  # fmt: skip
lesson.claim("a step of Adam is at most lr long", "wrong",
             f"a steadily growing gradient makes steps of {longest[0.98]:.2f} lr (paper's betas) or "
             f"{longest[0.999]:.2f} lr (beta2 = 0.999)")  # fmt: skip
lesson.claim('"lr = 2" under the Noam schedule is a learning rate of 2', "wrong",
             f"it is a factor; the base model's largest rate is then {noam(4000, 512, factor=2):.2e}")  # fmt: skip
lesson.claim("Adam cures badly scaled problems", "half right",
             f"if the scales are those of single weights ({flat['Adam']:.0e} of the way left); with the axes turned "
             f"by 45 degrees {flat['Adam, turned']:.2f} is left, as with SGD ({flat['SGD']:.2f})")  # fmt: skip
lesson.claim("a weight without influence on the loss stays where it is", "wrong",
             f"in float32 noise of {key32[1]:.0e} moved the key bias {moved32[1] / moved32[0]:.2f} times as far "
             f"as the query bias; in float64 it stays")  # fmt: skip

# %% [markdown]
# ## Exercise
#
# 1. (15 minutes) Leave the bias correction out of `adam_step`, let `train` use it on each `parameter.data` instead of
#    `training.Adam`, and train the copy model with lr = 0.003 and β₂ = 0.999, with and without warm-up. Does warm-up
#    make up for it? (It passes if you can say why from the figure.)
# 2. (10 minutes) A model has 100 weight arrays, and its author counts s up once per array instead of once per step.
#    At which true step is the peak, and what is the rate at true step 4000, compared with the right one?
#
# Checked exercises on this lesson: `minitransformer start 13`.
#
# ## Questions
#
# 1. Somebody multiplies the loss by 100. What changes in training with SGD, with Adam, and with SGD behind clipping?
# 2. w is doubled from 4000 to 8000. What happens to the peak, and to the rate at step 20,000?
# 3. A rare token: its embedding has gradient 0 for thousands of steps, then g once. How long is that step?
# 4. The gradient is pure noise, independent with mean 0. How long is a typical step of Adam, in units of lr?
# 5. With Adam, does clipping at 0.1 in place of 1 train ten times more slowly?

# %% [markdown]
# ## In the wild
#
# * PyTorch's Adam defaults to β₂ = 0.999 and ε = 1e-8. Code that says "Adam as in the paper" and leaves the defaults
#   has another optimiser: it remembers 1000 steps in place of 50. It trains, too.
# * BERT's published optimiser has no bias correction. Its schedule begins with a warm-up, which hides the hump.
# * The Annotated Transformer's first version had factor 2, OpenNMT's recipe has `-learning_rate 2`: both are the factor
#   of part 4, and no learning rate.
# * PyTorch's `LambdaLR` asks for step 0 when it is made. The usual patch answers with the rate of step 1, so that two
#   steps have the same rate. That is harmless. To return 0 there wastes a step, but m, v and t move on.
# * In some code the schedule is stepped once per weight array or per epoch. The loss still falls; only a plot of
#   the rate shows it. Plot the rate.

# %%
rare = 0.1 / 0.02**0.5
noise = (0.1 / 1.9) ** 0.5
lesson.quote("the corrections are 1 by then: about 0.71 lr", 1, rare)
lesson.quote("about √(0.1 / 1.9) = 0.23 lr", 0.1, 1.9, noise)
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. SGD: steps 100 times as long, it may diverge. Adam: nothing, but that ε counts less. SGD behind clipping: where the
#    gradient was above c already, nothing; below, longer steps, up to lr c.
# 2. The peak comes at 8000 and is lower by √2, 1/√(512 · 8000). At step 20,000 the other branch holds, which
#    knows no w: nothing changes.
# 3. m = (1 − β₁) g and v = (1 − β₂) g², and the corrections are 1 by then: about 0.71 lr. And the weight moves on in
#    the steps after it, as m becomes smaller by a factor of 0.9 a step only.
# 4. The mean of m² is (1 − β₁)² Σₖ β₁²ᵏ = (1 − β₁)/(1 + β₁) times the mean of g², which v tells:
#    about √(0.1 / 1.9) = 0.23 lr, in a random direction.
# 5. No. If all gradients shrink by one factor, m̂/√v̂ stays. Only batches between the two limits count differently.
