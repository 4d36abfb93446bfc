# %% [markdown]
# # Lesson 24: How far may a step go?
#
# [![The Transformer, with the optimizer lit](../plots/24_sharpness_map.png)](../plots/00_reverse_whole.png)
#
# **The gradient says which way is down. How far may you go before down becomes up?**
#
# 12 min, with a pencil 35, going deeper 8 · runs in 45 s (fast: 20 s) · needs 01, 06, 13 · difficulty 4 of 5 · paper:
# Cohen et al. 2021
#
# ## Ten times as far
#
# Lina has our model, which turns «stop» into «pots» with a loss of 0.111, and all 826 gradients. She takes one step of
# plain gradient descent, θ − lr g, with lr = 0.003, and the loss falls to 0.073. That was the right direction, so she
# goes back and walks ten times as far. With lr = 0.03 the loss is 1.82, sixteen times what it was.
#
# Her gradient was exact both times. But it is the slope *here*, and g says nothing about how the slope changes along
# the way. So Lina does what everybody does and tries half a dozen rates, although the model could have told her the
# limit before her first step, to within a factor of two: it is 0.0060. This lesson derives that number, finds it with a
# dozen backward passes, and then discovers that it doesn't stay put.

# %% Imports
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace

from support.chart import edge_of_stability, switched, two_valleys
from support.lab import begin, error

import numpy as np

from experiments.measuring.hessian import LossOfWeights, largest_eigenpairs
from minitransformer.data import get_task
from minitransformer.example import load_example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.gradcheck.holding import holding
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.progress import tqdm

lesson = begin("24_sharpness")
example = load_example()

# %% [markdown]
# ## Do you remember?
#
# 1. (01) The complex step divides by 1e-30 and loses no digit. A difference with the same step would give 0. Why?
# 2. (13) One step of Adam with lr = 0.01 raised our loss to 2.15, although each weight went against its own gradient.
#    How could that happen?
# 3. (06) The loss doesn't change at all if you add one vector to all keys. How does it curve along that direction?
#
# (The answers are at the end.)

# %% [markdown]
# ## A valley with one number
#
# Take the simplest loss whose slope changes, a valley with one parameter: L = ½ λ θ². Its slope g = λ θ grows by λ for
# each unit of θ, which is why λ is called its curvature. One step of descent is
#
#     θ ← θ − lr g
#       = θ − lr λ θ                    the slope at θ is λ θ
#       = (1 − lr λ) θ
#
# So each step multiplies the distance from the bottom by the same factor, whatever the distance is:
#
#     lr λ     factor
#     0.5      0.5             half the way is left
#     1        0               there in one step
#     1.5      −0.5            across the valley in each step, and there in the end
#     2        −1              back and forth forever
#     2.1      −1.1            each jump longer than the last
#
# The distance shrinks if the factor lies between −1 and 1:
#
#     −1 < 1 − lr λ < 1
#     −2 < −lr λ < 0                    subtract 1
#      0 < lr λ < 2                     times −1 turns both signs around
#     lr < 2/λ                          if λ > 0
#
# With a rate between 1/λ and 2/λ every step goes too far, but descent still arrives; beyond 2/λ it never does.
# If λ is negative, the valley is a ridge: the factor 1 + lr |λ| is above 1 with every rate, so descent moves away.
#
# **Your guess.** Let lr λ be 2.1, only 5 % above the limit, and start at a distance of 1. After how many steps are you
# more than 100 away?

# %%
guess = ...  # steps until the distance is more than 100, with lr λ = 2.1


# %%
def steps_until(far, product):
    """Steps of descent on the valley until the distance is more than `far`, for lr λ = `product`."""
    distance, steps = 1.0, 0
    while abs(distance) <= far:
        distance, steps = (1 - product) * distance, steps + 1
    return steps


away = steps_until(100, 2.1)
lesson.compare("steps until the distance is more than 100", guess, away)
lesson.save(two_valleys(rate=1.5), "valley")

# %% [markdown]
# It takes 49 steps, and after ten of them you are only 2.6 away. A rate that is a little too large looks harmless for a
# while. That will matter at the end.
#
# ## 826 directions
#
# In a model the slope along each parameter changes with all the others, so there is a whole matrix of curvatures, the
# *Hessian*. Books call it H, but here H counts heads, and the matrix already has a name: it is the Jacobian of the
# gradient.
#
#     J_ij = ∂g_i/∂θ_j = ∂²L/∂θ_i∂θ_j
#
# The order of the two derivatives doesn't matter, so J is symmetric. For a symmetric matrix of 826 rows there are 826
# perpendicular directions u along which it only stretches: J u = λ u. Along such an *eigenvector* the slope grows by λ
# for each unit of length, and no other direction mixes in. So nearby, the loss is 826 separate parabolas, and for each
# of them that is a valley, a step multiplies the distance from the bottom by its own 1 − lr λ.
#
# One learning rate serves them all, so the steepest valley, whose λ is called the *sharpness*, sets the limit of 2/λ.
# The flat valleys pay for it: with a factor just below 1, they take very long.
#
# ![Ten steps in a steep valley and in a flat one, with the same rate](../plots/24_sharpness_valley.png)
#
# Here are two of them, ten steps in each, with lr = 1.5/λ for the λ of the left one. There descent jumps from wall to
# wall, and 0.001 of its way is left. On the right, where the valley is a tenth as steep, 0.20 is left. It would arrive
# in one step with a rate of 10/λ, but with 2.1/λ the left one already climbs out. (On the site, the picture has a
# slider for the rate.)

# %% [markdown]
# ## A matrix that nobody writes down
#
# J has 826² = 682,276 entries here, and for the paper's base model it would have 4.0e15, or 32 million gigabytes. But
# we only need what J does to a direction u, which is how g changes if θ moves a little along u, and lesson 01 has the
# tool for that. The backward pass consists of sums, products, roots and exponentials, so it accepts complex numbers:
#
#     g(θ + ih u) = g(θ) + ih J u − ...           Taylor, along u; the next term has (ih)² = −h², which is real
#     Im g(θ + ih u) = h J u − ...                g(θ) and J u are real; what is left has h³
#     Im g(θ + ih u)/h = J u − ...                and now h²
#
# With h = 1e-30 this is exact to rounding, so one product with a matrix of 682,276 entries costs one forward and one
# backward pass. The function `gradient` below is lesson 12's, except that it takes all parameters as one long vector,
# real or complex.


# %%
def gradient(theta, model, batch, smoothing=0.0):
    """-> the loss at θ, and g."""
    source, target_in, target_out = batch
    with ExitStack() as held:
        start = 0
        for parameter in model.parameters():
            piece = theta[start : start + parameter.data.size]
            held.enter_context(holding(parameter, piece.reshape(parameter.data.shape)))  # for now, and g = 0
            start += piece.size
        logits, cache = model.forward(source, target_in)
        L, loss_cache = cross_entropy(logits, target_out, smoothing)
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        return L, np.concatenate([parameter.grad.reshape(-1) for parameter in model.parameters()])


def weights_of(model):
    """θ: all parameters as one vector."""
    return np.concatenate([parameter.data.reshape(-1) for parameter in model.parameters()])


model = Transformer(example.model.config, seed=None, dtype="float64")
model.load_state_dict(example.model.state_dict())
batch = example.source, example.target_in, example.target_out
theta, h = weights_of(model), 1e-30
L, g = gradient(theta, model, batch)
print(f"loss {L:.4f}, {len(g)} gradients, together {np.linalg.norm(g):.2f} long")

# %% [markdown]
# **Your line.** Write J u for a random direction u.

# %%
u = np.random.default_rng(24).standard_normal(len(theta))
Ju = ...  # your line: from gradient(..., model, batch), which returns L and g, and from theta, u and h = 1e-30
lesson.judge("Ju", Ju)


# %% Ours
def times_J(u, theta, model, batch, smoothing=0.0):
    """J u: the Hessian at θ, times u."""
    _, g = gradient(theta + 1j * h * u, model, batch, smoothing)
    return g.imag / h


Ju = times_J(u, theta, model, batch)
other = np.random.default_rng(25).standard_normal(len(theta))
lesson.check("J is symmetric", error(other @ Ju, u @ times_J(other, theta, model, batch)), 1e-12)
library = LossOfWeights(model, SimpleNamespace(inputs=batch[:2], targets=batch[2]))
lesson.check("J u, against the library's", error(Ju, library.hessian_product(theta, u)), 1e-13)

# %% [markdown]
# ## Which direction is the sharpest?
#
# Multiply any direction by J, again and again. Each product stretches the part along every eigenvector by its λ, so the
# one with the largest |λ| outgrows all others, and soon u is that eigenvector. If u is scaled to length 1 before each
# product, then u·(J u) is its λ. The name of this method is *power iteration*.


# %%
def power(product, u, steps):
    """Power iteration -> the λ after each step, and the last u."""
    found = []
    for _ in range(steps):
        u = u / np.linalg.norm(u)
        Ju = product(u)
        found.append(u @ Ju)
        u = Ju
    return np.array(found), u / np.linalg.norm(u)


product = partial(times_J, theta=theta, model=model, batch=batch)
found, top = power(product, u, 12)
J = np.array([product(row) for row in np.eye(len(theta))])  # the whole matrix, to compare
eigenvalues = np.linalg.eigvalsh(J)  # the smallest first
print("power iteration:", *(f"{value:.4f}" for value in found[[0, 1, 2, 3, 4, 11]]))
print("of the whole matrix, the largest:", *(f"{value:.4f}" for value in eigenvalues[:-5:-1]))
print("and the smallest:", *(f"{value:.4f}" for value in eigenvalues[:3]))
print("0 up to rounding:", np.count_nonzero(np.abs(eigenvalues) < 1e-9), "of", len(eigenvalues))
sharpness = found[-1]
lesson.check("12 steps, against all 826 columns", error(sharpness, eigenvalues[-1]), 1e-10)
lesson.check("the library's Lanczos", error(largest_eigenpairs(product, len(theta)).values[0], eigenvalues[-1]), 1e-9)

# %% [markdown]
# Three products give 332.24, and twelve give 332.3692, right to all the printed digits. So Lina's limit is 2/332.37 =
# 0.0060: her 0.03 was five times too far, while her 0.003 was almost exactly 1/332.37.
#
# The next eigenvalues are 105, 48 and 37, and the smallest is −8.56: along that last direction descent moves away at
# any rate, though slowly. And 205 of the 826 are 0, for flat directions such as the key biases.
#
# ## How far does a parabola see?
#
# Now you can predict the loss after a step before taking it, from g and J alone:
#
#     L(θ − lr g) ≈ L − lr g·g + ½ lr² g·(J g)
#
# That is below L as long as lr < 2 g·g/(g·(J g)), and the curvature along g, g·(J g)/(g·g), is 305. It is almost the
# sharpness, because g points nearly along the sharpest direction.

# %%
LRS = np.linspace(0.0, 0.016, 33)
after = np.array([gradient(theta - lr * g, model, batch)[0] for lr in LRS])
curvature = g @ product(g) / (g @ g)
parabola = L - LRS * (g @ g) + LRS**2 / 2 * (g @ g) * curvature
print(f"curvature along g: {curvature:.1f}. The parabola is back at {L:.3f} with lr = {2 / curvature:.4f}")
print("the loss itself is back between", *(f"{lr:.4f}" for lr in LRS[np.flatnonzero(after > L)[0] - 1 :][:2]))

# %% [markdown]
# According to the parabola the loss is back where it was at lr = 0.0065, and in truth it is at 0.0112. So the curvature
# knows the limit to within a factor of two, while the gradient knows nothing of a limit.
#
# ## The sharpness comes to meet the rate
#
# So the recipe seems clear: measure the sharpness, choose a rate below 2/λ, and train. Let's follow it with a new
# Transformer of 5,808 weights that learns to reverse 64 fixed words. Each step is plain descent on the whole batch,
# without momentum or dropout, so nothing is random. At the start the sharpness is 7.9, and rates up to 0.25 are stable.
# We take 0.04, which is a sixth of that, and in a second run 0.08.
#
# **Your guess.** The sharpness starts at 7.9. What is it after 1,000 steps with lr = 0.04?

# %%
guess = ...  # the sharpness after 1,000 steps with lr = 0.04

# %%
task = get_task("reverse")
task.symbols, task.max_len = task.symbols[:12], 6
words = task.batch(np.random.default_rng([0, 7]), 64)
sizes = {"d_model": 16, "num_heads": 2, "d_ff": 32, "num_layers": 1, "max_len": 16}
learner = Transformer(
    TransformerConfig(len(task.vocabulary), activation="gelu", dropout=0.0, **sizes), seed=0, dtype="float64"
)  # GELU, since the slope of ReLU jumps at 0
setup = {"model": learner, "batch": (*words.inputs, words.targets), "smoothing": 0.1}
beginning, EVERY = weights_of(learner), 25  # steps between two measurements


def descend(theta, lr, steps):
    """Plain descent -> the losses, and every 25 steps θ and the sharpness halfway to the next θ."""
    run = SimpleNamespace(lr=lr, losses=np.zeros(steps + 1), sharp=[], visited=[], residuals=[])
    u = None
    for step in tqdm(range(steps + 1), disable=None):
        run.losses[step], g = gradient(theta, **setup)
        if step % EVERY == 0:  # Lanczos (see Going deeper) is quicker where two eigenvalues are close
            halfway = partial(times_J, theta=theta - lr * g / 2, **setup)
            found = largest_eigenpairs(halfway, len(theta), start=u, tolerance=3e-3)
            u = found.vectors[:, 0]  # to begin with, the next time
            run.sharp.append(found.values[0])
            run.residuals.append(found.residuals[0] / found.values[0])
            run.visited.append(theta)
        theta = theta - lr * g
    run.sharp = np.array(run.sharp)
    return run


STEPS = lesson.pick(full=1000, fast=300)
slow, quick = (descend(beginning, lr, STEPS) for lr in (0.04, 0.08))
late = {run.lr: float(np.median(run.sharp[-STEPS // 80 :])) for run in (slow, quick)}  # of the last third
lesson.compare("sharpness in the last third, lr = 0.04", guess, late[0.04])
for run in (slow, quick):
    reached, rises = EVERY * int((run.sharp >= 2 / run.lr).argmax()), int((np.diff(run.losses) > 0).sum())
    print(f"lr {run.lr}: sharpness {run.sharp[0]:.1f}, at step {reached} at the limit, at last {late[run.lr]:.1f}")
    print(f"         loss {run.losses[0]:.2f} -> {run.losses[-1]:.2f}; it rose in {rises} steps")
lesson.check("length of J u − λ u, beside λ, at worst", max(slow.residuals + quick.residuals), 4e-3)

# %%
steps_of_one = {"rate": LRS, "loss": after, "parabola": parabola, "before": L, "limit": 2 / sharpness}
lesson.save(edge_of_stability(steps_of_one, (slow, quick), EVERY))

# %% [markdown]
# ![One step and its limit; the sharpness of two runs, and their losses](../plots/24_sharpness.png)
#
# From the same weights, both runs grow sharper until they meet their own limit, 50 with lr = 0.04 and 25 with lr =
# 0.08. They overshoot it, to more than 70 and 45, because a jump takes many steps to grow, as in your first guess. Then
# they fall back and hover near it: in the last third the sharpness stays between 49 and 51, and between 23 and 25. (It
# is measured halfway between two steps, since at the edge the weights jump between two walls: near step 400 it is 55 at
# one wall and 46 at the other.)
#
# Up to the limit the loss falls in every step. Beyond it, the loss should explode, and for a moment it does: it rises
# in 83 steps of the slow run and in 115 of the other. But the jumps carry θ out of the sharp place into a flatter one,
# where descent goes on, down to 0.72 and 0.64. **The sharpness limits your rate to 2/λ, but training raises the
# sharpness to 2/lr, so in the end your rate limits the sharpness.** (That holds with the whole batch, while there is
# still a lot to learn. Nobody fully understands why training sharpens at all.)

# %% [markdown]
# > **2021.** Jeremy Cohen, Simran Kaur, Yuanzhi Li, Zico Kolter and Ameet Talwalkar trained many networks with the
# > whole batch and measured what others had only glimpsed: the sharpness rises to 2/lr and stays there, at the edge of
# > stability, as they called it. The tools were old: Cornelius Lanczos found eigenvalues from products alone in 1950,
# > and Barak Pearlmutter showed in 1994 that a product with the Hessian costs about as much as a gradient.
#
# **In papers:** J u is a *Hessian-vector product* (HVP), the largest λ is λ_max, the rise of the sharpness *progressive
# sharpening*, and its stay at 2/lr the *edge of stability* (Cohen et al. 2021).

# %% [markdown]
# ## Going deeper
#
# You can skip the rest and continue with lesson 25. Larger models are measured in docs/sharpness.md.
#
# ### Change the rate on the way
#
# If the rate decides, it must also decide in the middle of a run. We halve it from 0.08 to 0.04 after 200 steps, and in
# the other run we double it from 0.04 to 0.08 after 600.

# %%
AT = lesson.pick(full=(200, 600, 500), fast=(100, 200, 200))


def switch(before, at, lr, steps):
    """Go on from `before` after `at` steps with another rate."""
    behind = descend(before.visited[at // EVERY], lr, lesson.pick(full=steps, fast=50))
    behind.sharp[0] = before.sharp[at // EVERY]  # where the old rate ended
    return behind


halved, doubled, late_halved = (
    switch(quick, AT[0], 0.04, 400),
    switch(slow, AT[1], 0.08, 200),
    switch(quick, AT[2], 0.04, 200),
)
lesson.save(switched({"Halved": (quick, halved, AT[0]), "Doubled": (slow, doubled, AT[1])}, EVERY), "switch")
for name, run in (("halved", halved), ("doubled", doubled), ("halved late", late_halved)):
    print(f"{name}, every {EVERY} steps from there:", *(f"{value:.0f}" for value in run.sharp))

# %% [markdown]
# ![The sharpness, if the rate is halved or doubled on the way](../plots/24_sharpness_switch.png)
#
# Halved, the sharpness climbs again, passes its new limit of 50 some 150 steps later, and overshoots it as before.
# Doubled, it is thrown from 51 to 25 within 25 steps. The two aren't mirror images, because above 2/lr descent
# *can't* stay, while below it only training itself makes the loss sharper. If you halve the rate late, after 500
# steps, when there is little left to learn, the sharpness only gets from 25 to 31 in the next 200. So the limit is a
# ceiling, not a goal.
#
# ### Who throws it out?
#
# Here is the smallest loss with sharp and flat places: L = ½ (θ_1 θ_2 − 1)². Every point with θ_1 θ_2 = 1 is a minimum.
# Call θ_1 θ_2 − 1 the miss. The gradient is miss · (θ_2, θ_1), and at a minimum, where the miss is 0, the curvature
# along it is
#
#     λ = θ_1² + θ_2²
#
# So (1, 1) is the flattest minimum, with λ = 2, and (4, ¼) is eight times as sharp. What does one step change?
#
#     θ_1 ← θ_1 − lr miss θ_2                            θ_2 ← θ_2 − lr miss θ_1
#     θ_1² − θ_2² ← (θ_1 − lr miss θ_2)² − (θ_2 − lr miss θ_1)²
#                 = θ_1² − θ_2² + lr² miss² (θ_2² − θ_1²)        the middle terms are equal and cancel
#                 = (1 − lr² miss²) (θ_1² − θ_2²)
#
# Near a minimum nothing happens, since the miss is tiny. But if lr is above 2/λ, the miss grows with every jump, and as
# long as lr |miss| is below √2, the factor 1 − lr² miss² brings θ_1² and θ_2² closer to each other. Their product jumps
# back and forth around 1, so λ shrinks, until it is below 2/lr and the misses die out. Nobody is steering; the jumps do
# it.

# %%
valley = {}
for lr in (0.1, 0.15):
    path = [np.array([4.0, 0.3])]
    for _ in range(300):
        miss = path[-1].prod() - 1
        path.append(path[-1] - lr * miss * path[-1][::-1])
    valley[lr] = path = np.array(path)
    miss, apart = path[:-1].prod(axis=1) - 1, path[:, 0] ** 2 - path[:, 1] ** 2
    lesson.check(f"lr = {lr}: the law of one step", error(apart[1:], (1 - (lr * miss) ** 2) * apart[:-1]), 1e-12)
    print(f"lr = {lr}: limit {2 / lr:.1f}, λ from {(path[0] ** 2).sum():.2f} to {(path[-1] ** 2).sum():.2f}")

# %% [markdown]
# From (4, 0.3), where λ is 16.09, descent with lr = 0.1 (limit 20) ends at λ = 16.03. With lr = 0.15 (limit 13.3) it
# jumps, and ends at 9.76.
#
# ### Lanczos, and ghosts
#
# Power iteration throws away what it has seen. Lanczos keeps it: each new product is made perpendicular to all earlier
# directions, and what is left, scaled to length 1, is the next one. In these directions J becomes a small matrix, with
# u·(J u) on its diagonal, the length of what was left next to it, and 0 elsewhere. Its eigenvalues at *both* ends are
# soon those of J. Since J is symmetric, on paper it is enough to remove the last two directions.


# %%
def lanczos(product, u, steps, again=True):
    """The small matrix's eigenvalues; without `again`, only the last two directions are taken out."""
    basis, diagonal, beside = np.zeros((steps, len(u))), np.zeros(steps), np.zeros(steps)
    for step in range(steps):
        basis[step] = u / np.linalg.norm(u)
        u = product(basis[step])
        diagonal[step] = basis[step] @ u
        earlier = basis[: step + 1] if again else basis[max(step - 1, 0) : step + 1]
        for _ in range(2):  # rounding leaves a little, so twice
            u = u - (earlier @ u) @ earlier
        beside[step] = np.linalg.norm(u)
    return np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))


with_all, with_two = (lanczos(product, u, 40, again) for again in (True, False))
print("all taken out:     ", *(f"{value:.4f}" for value in with_all[:-5:-1]), "... ", f"{with_all[0]:.4f}")
print("the last two only: ", *(f"{value:.4f}" for value in with_two[:-5:-1]), "... ", f"{with_two[0]:.4f}")
lesson.check("40 products: the four largest", error(with_all[-4:], eigenvalues[-4:]), 1e-9)
lesson.check("and the smallest", error(with_all[:1], eigenvalues[:1]), 1e-9)

# %% [markdown]
# With all of them removed, 40 products give the four largest eigenvalues and the smallest. With only the last two
# removed, the four largest are 332.3692 four times. J has this eigenvalue once; the rest are *ghosts*. What rounding
# leaves along the first eigenvector is no longer removed, each product makes it larger, and soon it is found again.
# (You write this method in the exercise 24_lanczos.)
#
# ### Momentum, Adam, and batches
#
# With momentum, m₁ ← β₁ m₁ + g and θ ← θ − lr m₁, the limit in a valley is 2 (1 + β₁)/λ: 3.8/λ with β₁ = 0.9. (The
# exercise below finds it.) This m₁ is a sum. Adam's is a mean (lesson 13), with the factor 1 − β₁ = 0.1 before g, so
# the same limit is reached with ten times the rate, at 38/λ. But Adam also divides by √m̂₂, so for Adam λ is the
# sharpness of J after that division; Cohen et al. (2022) report that it stays at 38/lr. And with small batches, whose
# gradient is noisy, the same authors found that the sharpness stays below 2/lr. Neither is measured here.


# %%
def momentum_arrives(product, steps=3000):
    """Whether descent with momentum 0.9 on a valley converges, for lr λ = `product`."""
    distance, mean = 1.0, 0.0
    for _ in range(steps):
        mean = 0.9 * mean + distance
        distance = distance - product * mean
    return abs(distance) < 1e-6


arrives = {product: momentum_arrives(product) for product in (3.79, 3.81)}
lesson.check("momentum: 3.79 arrives and 3.81 does not", arrives[3.79] and not arrives[3.81], at_least=1)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. Show the limit with momentum. As without it, at the limit θ jumps back and forth: θ ← −θ and m₁
#    ← −m₁ in every step. Put that into the two lines, and solve for lr.
# 2. Keyboard, 10 minutes. Take 300 steps of plain descent on the running example with lr = 0.003, and measure its
#    sharpness before and after. First predict: does it rise to 2/0.003 = 667?
#
# Exercises with a checker: `minitransformer start 24`.
#
# ## Questions
#
# 1. You multiply the loss by 10. What happens to J, to the limit, and to plain descent at the old rate?
# 2. A colleague looks for the sharpness with power iteration and gets −50. What has she found, and how can she get the
#    largest eigenvalue with the same method?
# 3. Why does warm-up allow a higher rate afterwards?
# 4. Why isn't it a contradiction that the loss falls for hundreds of steps at a rate above 2/λ?
# 5. *Somewhere else.* In a shower, each notch of the faucet makes the water 4 degrees warmer, and you turn it by `gain`
#    notches for each missing degree. For which gains do you get there? What happens with 0.55? And what if you always
#    feel the water from one turn ago?

# %% [markdown]
# ## Answers
#
# ### Do you remember?
#
# 1. Nothing is subtracted. The real part holds f and the imaginary part h f', so they never meet. In a difference, x +
#    1e-30 is rounded to x, and both values are equal.
# 2. All weights moved at once, and the slope along each depends on where the others are. Those dependencies are J.
# 3. Not at all: it is flat. So the second derivative there is 0, and J has an eigenvalue of 0 for each such direction.
#
# ### Questions
#
# 1. J is ten times as large and the limit is a tenth. At the old rate, steps are ten times as long: descent acts as if
#    the rate were ten times as large.
# 2. The eigenvalue with the largest |λ|, which here is negative. She adds 50 to all eigenvalues, by using J u + 50 u as
#    the product: now the largest also has the largest size. At the end she subtracts 50.
# 3. This lesson offers one reason. A slowly rising rate is only a little above 2/λ when it passes that limit, so the
#    jumps stay small, and they move θ to a flatter place. When the high rate comes, the place is flat enough for it.
# 4. The limit holds for a valley that never ends. A real one widens. The jumps along the sharp direction lead to where
#    it is less sharp, and meanwhile the loss falls along all the other directions.
# 5. What is missing is multiplied by 1 − 4 gain, so 4 is the λ of the shower: for 0 < gain < 1/2, and at once for 1/4.
#    With 0.55 the factor is −1.2, too hot, too cold, and worse each time. If you feel the water of one turn ago, you
#    correct the same degree twice: the limit falls to 1/4.
#
# ### Exercise
#
# First: β₁ m₁ + λ θ = −m₁ gives m₁ = −λ θ/(1 + β₁). The new mean is −m₁, so θ + lr m₁ = −θ, and lr m₁ = −2 θ. Together
# lr λ/(1 + β₁) = 2. Second: it does not. The loss falls to 0.015, and the sharpness from 332 to 31. This model has
# memorized its only word. The probability of each right token goes to 1, and a row that is sure has neither a gradient
# nor a curvature. (The run with 64 words has label smoothing, so it can't become sure.)

# %%
memorized = theta
for _ in range(300):
    memorized = memorized - 0.003 * gradient(memorized, model, batch)[1]
known, _ = gradient(memorized, model, batch)
known_sharpness = power(partial(times_J, theta=memorized, model=model, batch=batch), u, 40)[0][-1]
print(f"running example after 300 steps: loss {known:.4f}, sharpness {known_sharpness:.2f}")
lesson.finish(globals())
