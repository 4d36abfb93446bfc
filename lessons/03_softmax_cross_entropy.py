# %% [markdown]
# # Lesson 03: Softmax, cross-entropy and label smoothing
#
# * Question: what gradient does the loss send back to the scores that the model gives to the tokens?
# * You derive: softmax's Jacobian diag(p) − p pᵀ; the fused gradient p − q; the floor under a smoothed loss
# * Reading: 30 min, going deeper 0 min
# * Run: 2 s (fast: 2 s)
# * Needs: 01, 02
# * Difficulty: 2 of 5
# * Paper: section 5.4 (label smoothing), section 3.4 (the softmax that predicts the next token)

# %%
from lab import BLUE, GREY, ORANGE, begin, error, plt

import numpy as np

lesson = begin("03_softmax_cross_entropy")

# %% [markdown]
# A language model reads some text and must say which token comes next. A token is a numbered piece of text; its number
# is its id, and V is the size of the vocabulary, so ids run from 0 to V − 1. The last layer of the model gives one
# number to every token: the logit `z_v` of token v. Logits are any real numbers. This lesson takes them to a loss and
# comes back with the gradient. These letters are all that you need:
#
#     V          how many tokens there are; v, u, i and j are ids
#     z          the V logits of one prediction
#     p          the V probabilities that the model makes of them: positive, their sum is 1
#     t          the id of the right token
#     y          the same as a vector, "one-hot": y_t = 1, every other entry is 0
#     1[i = j]   1 if i equals j, and 0 if not
#     exp, ln    e to the power of, and the natural logarithm; losses made with ln are measured in nats
#     dz         the gradient: dz_v is the derivative of the loss with respect to z_v (and so for dp)
#
# ## Predict
#
# Write down a guess before you read on; a wrong guess is worth more than none.
#
# 1. V = 3 and the model says p = [0.6, 0.3, 0.1], but the right token is t = 1. What are the three entries of dz? The
#    signs are enough. (Answer: Small numbers.)
# 2. Somebody's softmax backward multiplies entry i of the gradient by p_i (1 − p_i) and leaves it at that. Will a model
#    that is trained with it learn? (Answer: The surprise.)
# 3. The paper's vocabulary has about 37,000 tokens, and its labels are smoothed by 0.1. What is the smallest loss that
#    any model can have? (Answer: part 6.)

# %% [markdown]
# ## Small numbers
#
# Take logits that make the exponentials easy: z = [ln 6, ln 3, ln 1]. Softmax takes the exponential of each, and
# divides by their sum. That is [6, 3, 1] / 10, so p = [0.6, 0.3, 0.1].
#
# Let the right token be t = 1, so y = [0, 1, 0]. The loss is −ln p_t = −ln 0.3, which is 1.204 nats. It would be 0 if
# the model had been certain of the right token, and it grows without bound as p_t goes to 0.
#
# The gradient, which the rest of the lesson derives, is dz = p − y = [0.6, −0.7, 0.1]. Read it with the sign of a
# descent step: the right logit is pushed up by what it lacks, each wrong one is pushed down by the probability that it
# took away. The pushes add up to 0. Below, the derivative is measured in the crudest way there is: move one logit, look
# at the loss.

# %%
z = np.log([6.0, 3.0, 1.0])
p = np.exp(z) / np.exp(z).sum()
y = np.array([0.0, 1.0, 0.0])
loss = -np.log(p[1])
print("p               ", p.round(4))
print("loss in nats    ", loss.round(4))
print("p - y           ", (p - y).round(4))


def loss_of(z):
    """-ln p_t for t = 1."""
    return -np.log(np.exp(z[1]) / np.exp(z).sum())


moves = 1e-6 * np.eye(3)  # row v moves logit v alone
measured = np.array([loss_of(z + move) - loss_of(z - move) for move in moves]) / 2e-6
print("moving one logit", measured.round(4))
lesson.quote("−ln 0.3, which is 1.204 nats", p[1], loss)
lesson.quote("dz = p − y = [0.6, −0.7, 0.1]", *measured)
lesson.check("moving one logit at a time gives p - y", error(measured, p - y), 1e-8)

# %% [markdown]
# ## The derivation
#
# ### Part 1: softmax, and why its largest logit is taken off first
#
# We want V numbers that are positive and sum to 1, and that grow with their logits. The exponential makes any number
# positive, and a division by the sum makes the sum 1:
#
#     p_i = exp(z_i) / Z          Z = Σ_u exp(z_u), the sum over all V tokens
#
# Add the same number c to every logit. Then exp(z_i + c) = exp(c) exp(z_i): numerator and Z both get the factor exp(c),
# and it cancels. Only differences of logits count, which is called shift invariance:
#
#     softmax(z + c) = softmax(z)
#
# This is more than a curiosity. The largest float64 is about 1.8e308, and exp(709.8) is already larger, so plain code
# that meets the logit 1000 divides infinity by infinity: NaN, not a number. In single precision (float32) the limit is
# 88.72. But we may choose c. Take c = −m, where m is the largest logit. Then the largest exponent is exactly 0, its
# exponential is 1, Z lies between 1 and V, and nothing overflows. Exponentials of very negative numbers may become 0,
# which is harmless in a sum.

# %%
lesson.quote("and exp(709.8) is already larger", np.log(np.finfo(np.float64).max))
lesson.quote("the limit is 88.72", np.log(np.finfo(np.float32).max))
large = np.array([1000.0, 999.0, 998.0])
with np.errstate(over="ignore", invalid="ignore"):
    print("plain code    ", np.exp(large) / np.exp(large).sum())
e = np.exp(large - large.max())
print("largest off   ", (e / e.sum()).round(4))
small = np.exp([2.0, 1.0, 0.0])
lesson.check("[1000, 999, 998] and [2, 1, 0] have one softmax", error(e / e.sum(), small / small.sum()), 1e-15)

# %% [markdown]
# ### Part 2: the Jacobian, and why it is not elementwise
#
# How does p_i move when z_j moves? Write e_i = exp(z_i), so that p_i = e_i / Z. Two derivatives are all that we need.
# The exponential is its own derivative, and e_i does not know any other logit:
#
#     ∂e_i/∂z_j = 1[i = j] e_i
#     ∂Z/∂z_j   = e_j                     (of the sum's V terms, only the j-th contains z_j)
#
# The quotient rule (f/g)' = (f' g − f g') / g², with f = e_i, g = Z and the prime for ∂/∂z_j, gives
#
#     ∂p_i/∂z_j = (1[i = j] e_i Z − e_i e_j) / Z²
#               = 1[i = j] e_i / Z − (e_i / Z) (e_j / Z)
#               = 1[i = j] p_i − p_i p_j
#               = p_i (1[i = j] − p_j)
#
# On the diagonal (i = j) this is p_i (1 − p_i). Off it, it is −p_i p_j, which is not 0: raise one logit and EVERY
# probability moves, because all share the sum Z. As a matrix, with p a column:
#
#     J = diag(p) − p pᵀ                  J_ij = ∂p_i/∂z_j;  diag(p) has p on its diagonal and 0 elsewhere
#
# J is symmetric. Row i sums to p_i − p_i Σ_j p_j = p_i − p_i = 0: that is shift invariance again, as moving all logits
# by the same amount must move nothing. Column j sums to 0 by symmetry: the probabilities always sum to 1, so what one
# gains the others lose.

# %%
J = np.diag(p) - np.outer(p, p)
print("J for p = [0.6, 0.3, 0.1]:")
print(J.round(4))

# %% [markdown]
# Backward. The loss depends on z_j through every p_i, so the chain rule sums over all of them:
#
#     dz_j = Σ_i dp_i ∂p_i/∂z_j
#          = Σ_i dp_i p_i (1[i = j] − p_j)
#          = dp_j p_j − p_j Σ_i dp_i p_i                (1[i = j] picks the one term i = j)
#          = p_j (dp_j − Σ_i p_i dp_i)
#
# In vector form dz = p ∘ (dp − p·dp), where ∘ multiplies entry by entry and p·dp is the sum of the products. The number
# p·dp is the mean of dp under the weights p. So the line reads: a logit gets gradient in so far as its own dp differs
# from the mean. The big matrix J never appears. At V = 37,000 it would have 1,369,000,000 entries for every single
# token; the formula needs V numbers.
#
# THE MISTAKE. The sigmoid, p = 1/(1 + exp(−z)), has the derivative p (1 − p), entry by entry. Many people carry that
# over and write dz = p ∘ (1 − p) ∘ dp. That keeps the diagonal of J and throws away everything else. Nothing crashes,
# since all shapes fit. Here it is for the small numbers of above, where the loss is −ln p_1 and so dp_1 = −1/p_1 (the
# derivative of ln x is 1/x), and dp is 0 elsewhere.

# %%
print("entries of J at V = 37,000:", 37000**2)
lesson.quote("At V = 37,000 it would have 1,369,000,000 entries", 37000, 37000**2)
dp = np.array([0.0, -1 / p[1], 0.0])
print("right  p (dp - p.dp)  ", (p * (dp - p @ dp)).round(4))
print("wrong  p (1 - p) dp   ", (p * (1 - p) * dp + 0.0).round(4))

# %% [markdown]
# The wrong line gets the right token's entry right (−0.7) and gives the wrong tokens nothing at all.
#
# ### Part 3: cross-entropy, the mean over what counts, and the loss at the start
#
# The model gave the right token the probability p_t, and the loss of this token is −ln p_t. Why the logarithm? The
# probability of a whole text is the product of the probabilities of its tokens, each given those before it. Its
# logarithm is a sum, and so the losses of the tokens simply add. With the one-hot y the same loss can be written as a
# sum over all tokens v, in which only v = t is not 0:
#
#     loss = −ln p_t = −Σ_v y_v ln p_v
#
# In the place of y there may be any target distribution q: V numbers that are not negative and sum to 1. Then the sum
# −Σ_v q_v ln p_v is called the cross-entropy of q and p. In code, p is not needed for it. Take the logarithm of
# p_v = exp(z_v) / Z, and use Z = exp(m) Σ_u exp(z_u − m), where m is the largest logit, as in part 1:
#
#     ln p_v = z_v − ln Z = (z_v − m) − ln Σ_u exp(z_u − m)

# %% [markdown]
# The sum in the last logarithm is at least 1, because its largest term is exp(0). So no ln 0 is ever taken.
#
# What is the loss before any training? A model that knows nothing gives all V tokens the same probability 1/V. Its loss
# is −ln(1/V) = ln V, which is 10.519 nats at V = 37,000. Always look at the first loss of a new model. Far above ln V,
# its logits are too large. Far below, it sees the answer.
#
# A batch has sentences of unequal length. The short ones are filled up with a padding token, which nobody must learn to
# predict. So padding is not counted: with N tokens in the batch, M of them real, and loss_n the loss of token n,
#
#     loss = 1/M Σ_n loss_n               the sum over the M tokens that are not padding

# %%
uniform = np.full(37000, 1 / 37000)
print("loss of knowing nothing, V = 37,000:", (-np.log(uniform[123])).round(4))
lesson.quote("ln V, which is 10.519 nats at V = 37,000", -np.log(uniform[123]), 37000)
losses = np.array([1.2, 0.8, 2.2, 0.0, 0.0])  # the last two tokens are padding: they must not count
print("mean over the 3 that count:", (losses.sum() / 3).round(4), "  over all 5 (wrong):", (losses.sum() / 5).round(4))

# %% [markdown]
# ### Part 4: label smoothing, and its three definitions
#
# A one-hot target asks for p_t = 1, which no finite logits give: training pulls the right logit up for ever. Label
# smoothing asks for a little less. A share ε of the target's probability is taken from the right token and spread
# evenly:
#
#     q_v = (1 − ε) y_v + ε / V           the loss of a token is −Σ_v q_v ln p_v
#
# The paper has ε = 0.1 (it writes ε_ls). In this definition, the one of Szegedy et al. (2016), which the paper cites,
# the ε is spread over ALL V tokens, the right one included. So the right token's target is 1 − ε + ε/V. It is what this
# library and PyTorch do. Others spread it differently:
#
#     definition                                      target of the right token    of each other token
#     over all V (Szegedy; this library; PyTorch)     1 − ε + ε/V                  ε / V
#     over the V − 1 others (the authors' own code)   1 − ε                        ε / (V − 1)
#     over V − 2 (right token and padding excluded)   1 − ε                        ε / (V − 2), padding 0
#
# In all three the targets sum to 1. We will need only that.

# %% [markdown]
# ### Part 5: the fused gradient p − q
#
# First way, in small steps. The loss of one token is L = −Σ_v q_v ln p_v, so dp_v = −q_v / p_v (the derivative of ln x
# is 1/x). Put this into the last line of part 2:
#
#     Σ_i p_i dp_i = −Σ_i p_i q_i / p_i = −Σ_i q_i = −1
#     dz_j = p_j (dp_j − (−1)) = p_j (−q_j / p_j + 1) = −q_j + p_j

# %% [markdown]
# Second way, without p. With ln p_v = z_v − ln Z:
#
#     L = −Σ_v q_v (z_v − ln Z) = −Σ_v q_v z_v + ln Z               since Σ_v q_v = 1
#     ∂L/∂z_j = −q_j + (1/Z) ∂Z/∂z_j = −q_j + e_j / Z = −q_j + p_j
#
# Both give the same, and it is as simple as a gradient can be:
#
#     dz = p − q                          without smoothing q = y, and dz = p − y
#
# The first way divides by p_v and multiplies by it again. If p_v has become 0 in floating point, that is 0 · ∞. The
# fused line never divides, and that is why most libraries make one function of softmax and cross-entropy.
#
# A batch has N rows of logits; p_nv and q_nv belong to token v in row n. The logits of row n enter loss_n alone, and
# the mean of part 3 multiplies loss_n by 1/M, if it counts. With share_n = 1/M for a token that counts and 0 for
# padding:
#
#     dz_nv = share_n (p_nv − q_nv)
#
# If the loss is not the end of the chain, all of it is multiplied by dloss, the gradient that arrives from above.

# %% [markdown]
# ### Part 6: the floor
#
# How small can the smoothed loss be? We use ln x ≤ x − 1, which holds for every x > 0, with equality at x = 1 only (the
# straight line is the tangent of the logarithm there). Take x = p_v / q_v, for targets q_v that are all positive, as
# smoothing makes them:
#
#     −Σ_v q_v ln p_v − (−Σ_v q_v ln q_v) = −Σ_v q_v ln(p_v / q_v)
#                                         ≥ −Σ_v q_v (p_v / q_v − 1)
#                                         = −Σ_v p_v + Σ_v q_v = −1 + 1 = 0

# %% [markdown]
# So no p makes the loss smaller than −Σ_v q_v ln q_v. That number is the entropy of q. Only p = q reaches it: any v
# with p_v ≠ q_v makes its x ≠ 1, and the ≥ becomes >. (At p = q the gradient p − q is 0, as it must be. Where a q_v is
# 0, as for padding in the third definition, sum over the other tokens: their p sum to at most 1, so the last line is
# still at least 0.) Now the numbers of the paper, ε = 0.1 and V = 37,000:
#
#     a = 1 − ε + ε/V = 0.9000027         target of the right token
#     b = ε/V         = 0.0000027027      target of each other token; there are V − 1 of them
#     floor = −a ln a − (V − 1) b ln b
#           = 0.0948 + 1.2821 = 1.3769
#
# The smallest loss is 1.377 nats at V = 37,000. For the second definition put a = 1 − ε and b = ε/(V − 1), with V − 1
# others; for the third b = ε/(V − 2), with V − 2 others. All three agree in these digits: over all V it is 1.376913,
# over V − 1 it is 1.376948, over V − 2 it is 1.376945. With small vocabularies they do not: at V = 5 the three floors
# are 0.390, 0.464 and 0.435 nats.
#
# ### Part 7: 0 · ln 0
#
# With p = q a target of 0 meets a p of 0. The function x ln x goes to 0 as x goes to 0 (put x = exp(−u) and let u grow:
# it is −u exp(−u)), so in mathematics such a token adds nothing. In floating point ln 0 = −∞ and 0 · (−∞) is NaN.
# With smoothing it is worse: every token has the target ε/V at least, and one single p_v that has become 0 makes the
# loss infinite. Without smoothing the same model may have a perfect loss, as only p_t is asked for. The logarithm of
# part 3 has neither problem, because it never computes ln of a p.

# %%
V, eps = 37000, 0.1
a, b = 1 - eps + eps / V, eps / V
right_part, other_part = -a * np.log(a), -(V - 1) * b * np.log(b)
print(f"V = 37,000: right token {right_part:.4f} + the others {other_part:.4f} = {right_part + other_part:.4f} nats")


def entropy(right, other, how_many):
    """-Σ q ln q for one right token and `how_many` others."""
    return -right * np.log(right) - how_many * other * np.log(other)


floors = {}
for V in (5, 37000):
    floors[V] = [entropy(1 - eps + eps / V, eps / V, V - 1)]
    floors[V] += [entropy(1 - eps, eps / others, others) for others in (V - 1, V - 2)]
    print(f"V = {V:6d}: floors over V, V - 1, V - 2: " + "  ".join(f"{floor:.6f}" for floor in floors[V]))
sentence = "over all V it is 1.376913, over V − 1 it is 1.376948, over V − 2 it is 1.376945"
lesson.quote(sentence, floors[V][0], 1, floors[V][1], 2, floors[V][2])
lesson.quote("at V = 5 the three floors are 0.390, 0.464 and 0.435 nats", 5, *floors[5])
lesson.quote("a = 1 − ε + ε/V = 0.9000027", 1, a)
lesson.quote("b = ε/V = 0.0000027027", b)
lesson.quote("= 0.0948 + 1.2821 = 1.3769", right_part, other_part, right_part + other_part)
lesson.quote("The smallest loss is 1.377 nats at V = 37,000", right_part + other_part, 37000)

# %%
far = np.array([1000.0, 0.0, 0.0])  # the model is sure of token 0, and right
p, y = np.exp(far - 1000.0), np.array([1.0, 0.0, 0.0])  # p sums to 1 as it is
q = 0.9 * y + 0.1 / 3
with np.errstate(divide="ignore", invalid="ignore"):
    print("−Σ y ln p, ln of p       :", -(y * np.log(p)).sum())
    print("−Σ q ln p, ln of p       :", -(q * np.log(p)).sum())
log_p = (far - 1000.0) - np.log(np.exp(far - 1000.0).sum())
print("−Σ y ln p, as in part 3  :", -(y * log_p).sum() + 0.0)
print("−Σ q ln p, as in part 3  :", -(q * log_p).sum())
wrong_targets = 2 * 0.1 / 3
lesson.check(
    "the smoothed loss is 1000 nats times the wrong targets", error(-(q * log_p).sum(), 1000 * wrong_targets), 1e-12
)

# %% [markdown]
# ## From scratch
#
# Everything so far, as it would stand in a library. Rows of z are tokens (N of them), columns are the vocabulary, and
# all sums run along the last axis. `z.real` is z itself for real numbers; it is there because the checks below will
# send complex numbers through, whose largest is not defined.

# %%


def softmax(z):
    """p_i = exp(z_i) / Σ_u exp(z_u), along the last axis."""
    e = np.exp(z - z.real.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def softmax_backward(dp, p):
    """dz_j = p_j (dp_j − Σ_i p_i dp_i)"""
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))


def cross_entropy(z, targets, eps, pad):
    """z (N, V), targets (N,) -> the mean loss of the tokens that are not `pad` (one at least), and what to remember."""
    N, V = z.shape
    q = np.full((N, V), eps / V)
    q[np.arange(N), targets] += 1 - eps
    shifted = z - z.real.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    losses = -(q * log_p).sum(axis=-1)
    counts = targets != pad
    share = counts / counts.sum()
    return share @ losses, (np.exp(log_p), q, share)


def cross_entropy_backward(dloss, cache):
    """dz_nv = dloss share_n (p_nv − q_nv)"""
    p, q, share = cache
    return dloss * share[:, None] * (p - q)


# %% [markdown]
# ## Checked
#
# First against derivatives that nobody derived. The complex step of lesson 01: move one entry of x by √−1 · h, an
# imaginary number, with h = 1e-30. Then f(x + √−1 h) = f(x) + √−1 h f'(x) − ..., where all further terms are far below
# rounding. So the imaginary part divided by h is f'(x), exact to rounding, because nothing is subtracted.
#
# To test a backward pass whose output is not one number, we weigh the outputs with random numbers (the "upstream
# gradient" dp) and take their sum as the loss. All-ones weights would be blind: the sum of a softmax is always 1.

# %%
rng = np.random.default_rng(3)
N, V, pad = 6, 7, 0
z = 2 * rng.standard_normal((N, V))
targets = np.array([3, 1, 3, 6, 0, 0])  # id 3 comes twice; 0 is padding
upstream = rng.standard_normal((N, V))


def complex_step(loss, x):
    """dloss/dx entry by entry: Im loss(x + √−1 h) / h."""
    dx = np.zeros(x.shape)
    for index in np.ndindex(x.shape):
        moved = x.astype(np.complex128)
        moved[index] += 1e-30j
        dx[index] = loss(moved).imag / 1e-30
    return dx


p = softmax(z)
J = np.diag(p[0]) - np.outer(p[0], p[0])
J_measured = np.array([complex_step(lambda row, i=i: softmax(row)[i], z[0]) for i in range(V)])  # row i: ∂p_i/∂z_j
lesson.check("Jacobian diag(p) - p pT, against the complex step", error(J, J_measured), 1e-13)
true = complex_step(lambda z: (upstream * softmax(z)).sum(), z)
dz = softmax_backward(upstream, p)
lesson.check("softmax backward, against the complex step", error(dz, true), 1e-14)
lesson.check("each row of it sums to 0", np.abs(dz.sum(axis=-1)).max(), 1e-14)
lesson.check("the elementwise mistake is far off", error(p * (1 - p) * upstream, true), at_least=0.1)

for eps in (0.0, 0.1):
    loss, cache = cross_entropy(z, targets, eps, pad)
    dz = cross_entropy_backward(-1.7, cache)
    true = complex_step(lambda z, eps=eps: -1.7 * cross_entropy(z, targets, eps, pad)[0], z)
    lesson.check(f"cross-entropy backward, smoothing {eps}, against the complex step", error(dz, true), 1e-14)
lesson.check("rows of padding get no gradient", np.abs(dz[targets == pad]).max(), 0.0)

# %% [markdown]
# Then the two steps of the first way of part 5 against the fused line, and everything against the library. Its
# `cross_entropy` is written for speed and puts the formula for q into the sum, so that q is never built; the result is
# the same. Last, two facts that hold whatever the logits are: more padding changes nothing, and equal logits cost ln V,
# smoothed or not (as −Σ_v q_v ln(1/V) = ln V Σ_v q_v = ln V).

# %%
from minitransformer import functional

loss, cache = cross_entropy(z, targets, 0.1, pad)
dz = cross_entropy_backward(-1.7, cache)
p, q, share = cache
in_two_steps = softmax_backward(-1.7 * share[:, None] * (-q / p), p)
lesson.check("−q/p through the softmax's backward = p − q", error(in_two_steps, dz), 1e-14)

p_library, cache_softmax = functional.softmax(z)
lesson.check("softmax = the library's", error(softmax(z), p_library), 1e-12)
back = functional.softmax_backward(upstream, cache_softmax)
lesson.check("its backward = the library's", error(softmax_backward(upstream, softmax(z)), back), 1e-12)
loss_library, cache_library = functional.cross_entropy(z, targets, smoothing=0.1, pad=pad)
lesson.check("smoothed loss = the library's", error(loss, loss_library), 1e-12)
lesson.check("its gradient = the library's", error(dz, functional.cross_entropy_backward(-1.7, cache_library)), 1e-12)

padded = np.concatenate([z, rng.standard_normal((9, V))])
loss_padded, _ = cross_entropy(padded, np.append(targets, [pad] * 9), 0.1, pad)
lesson.check("nine more tokens of padding do not change the loss", error(loss_padded, loss), 1e-15)
for eps in (0.0, 0.1):
    loss_equal, _ = cross_entropy(np.full((N, V), 2.5), targets, eps, pad)
    lesson.check(f"equal logits cost ln V at smoothing {eps}", error(loss_equal, np.log(V)), 1e-15)

# %% [markdown]
# And the floor of part 6, with the library's own loss at the paper's size. At the logits z = ln q the softmax is q
# itself, since Σ_v exp(ln q_v) = 1.

# %%
V, eps = 37000, 0.1
q = np.full((1, V), eps / V)
q[0, 5] += 1 - eps
at_floor, cache_floor = functional.cross_entropy(np.log(q), np.array([5]), smoothing=eps, pad=pad)
dz = functional.cross_entropy_backward(1.0, cache_floor)
nearby = np.log(q) + 0.1 * rng.standard_normal((1, V))
above, _ = functional.cross_entropy(nearby, np.array([5]), smoothing=eps, pad=pad)
print(f"the library's loss at p = q: {at_floor:.6f} nats")
lesson.check("the library's loss at p = q is the floor", error(at_floor, right_part + other_part), 1e-12)
lesson.check("there its gradient is 0", np.abs(dz).max(), 1e-14)
lesson.check("logits nearby cost more by", above - at_floor, at_least=1e-5)

# %% [markdown]
# ## The picture
#
# Let all wrong logits be 0 and the right one be g, its lead. From part 3, with a and b as in part 6:
#
#     loss(g) = −Σ_v q_v z_v + ln Z = −a g + ln(exp(g) + V − 1)
#
# Without smoothing a is 1, and the loss falls to 0 as the lead grows. With smoothing the best lead is where p = q, that
# is exp(g) = a/b, since the right token's probability is exp(g) times that of any other. Here a/b = 333,001, and its
# logarithm is the best lead: 12.7. Beyond it the loss rises again. Its slope is p_t − a (the fused gradient of the one
# logit that moves), and as p_t goes to 1 that is almost exactly ε.

# %%
leads = np.linspace(0, 40, 81)
logits = np.zeros((len(leads), V))
logits[:, 5] = leads
curves = {}
for eps in (0.0, 0.1):
    curves[eps] = [float(functional.cross_entropy(row[None], np.array([5]), eps, pad)[0]) for row in logits]
best = np.log(a / b)
slope = (curves[0.1][-1] - curves[0.1][-21]) / (leads[-1] - leads[-21])
lesson.quote("Here a/b = 333,001, and its logarithm is the best lead: 12.7", a / b, best)
lesson.check("far beyond the best lead, the loss rises by ε per unit", error(slope, 0.1), 1e-3)

figure, axis = plt.subplots()
axis.plot(leads, curves[0.0], color=BLUE)
axis.plot(leads, curves[0.1], color=ORANGE)
axis.axhline(at_floor, color=GREY, linewidth=0.8, linestyle=":")
axis.plot(best, at_floor, "o", color=ORANGE)
axis.annotate(f"lowest: {at_floor:.3f} nats, at a lead of {best:.1f}", (best + 0.3, at_floor - 0.7), color=ORANGE)
axis.text(27, 3.3, "smoothing 0.1", color=ORANGE, ha="right")
axis.text(40, 0.2, "no smoothing", color=BLUE, ha="right")
axis.annotate("ln V: nothing is known", (0.7, np.log(V)), color=GREY)
axis.set(xlabel="lead of the right logit over all others (nats)", ylabel="loss (nats per token)", ylim=(-0.3, 11))
axis.set_title(f"With label smoothing the loss is at least {at_floor:.3f} nats, and rises after a lead of {best:.1f}")
lesson.save(figure)

# %% [markdown]
# You should see both curves leave ln V together and fall side by side; the blue one reaches 0, the orange one touches
# the dotted line once and climbs. If your smoothed curve reaches 0 as well, somebody has subtracted the floor
# (some libraries do), or smoothing is off. If it jumps to infinity on the right, a logarithm of a probability is taken.
#
# ## The surprise
#
# Two things. First, the floor itself: of the 1.377 nats, the right token accounts for 0.095 only. The rest, 93 % of it,
# is paid for the 36,999 others, at 12.8 nats apiece with a weight of ε/V each. So exp(1.377) is no perplexity
# (perplexity is the exponential of the plain loss, −ln p_t: the number of equally likely tokens that would be as hard
# to guess). At the floor the plain loss is 0.105 nats, a perplexity of 1.111. A model without smoothing can come as
# near to 1 as it likes, where the right token can be known. The paper remarks that smoothing makes its perplexity
# worse; this is part of the reason.
#
# Second, the elementwise mistake of part 2. Take one context in which the three tokens come with the shares
# r = [0.6, 0.3, 0.1]. Over many occurrences the mean of y is r, so the right gradient of the mean loss is p − r: at
# rest when p = r. The mistaken one is worth a line of algebra. When the right token is t, dp_t = −1/p_t and every other
# dp is 0, so entry t gets p_t (1 − p_t) (−1/p_t) = −(1 − p_t), and the others 0. Token i is right in a share r_i of the
# cases, so the mean is
#
#     dz_i = −r_i (1 − p_i)
#
# All three logits rise, for ever. Still, p stands still if they rise equally fast: r_i (1 − p_i) the same for all i.
# Try it with two tokens: 1 − p_0 = p_1, so r_0 p_1 = r_1 p_0, so p = r. With two tokens, the mistake learns the right
# answer! It even takes the same path, at half the speed: the mistaken dz_0 − dz_1 is r_1 p_0 − r_0 p_1 = p_0 − r_0 (put
# in p_1 = 1 − p_0 and r_1 = 1 − r_0), and the right one is (p_0 − r_0) − (p_1 − r_1) = 2 (p_0 − r_0).

# %%
at_floor_plain = -np.log(a)
lesson.quote("of the 1.377 nats, the right token accounts for 0.095 only", at_floor, right_part)
lesson.quote("The rest, 93 % of it, is paid for the 36,999 others", 100 * other_part / at_floor, V - 1)
lesson.quote("at 12.8 nats apiece", -np.log(b))
lesson.quote("the plain loss is 0.105 nats, a perplexity of 1.111", at_floor_plain, np.exp(at_floor_plain))


def descend(shares, mistaken, steps, rate=0.1):
    """Gradient descent on the three (or two) logits of one context -> p, and the mean plain loss."""
    z = np.zeros(len(shares))
    for _ in range(steps):
        p = softmax(z)
        z -= rate * (-shares * (1 - p) if mistaken else p - shares)
    log_p = z - z.max() - np.log(np.exp(z - z.max()).sum())
    return np.exp(log_p), -(shares * log_p).sum()


two, three = np.array([0.7, 0.3]), np.array([0.6, 0.3, 0.1])
print("two tokens, shares 0.7 and 0.3, mistaken gradient: p =", descend(two, True, 2000)[0].round(4))
lesson.check("with two tokens the mistake finds the shares", error(descend(two, True, 2000)[0], two), 1e-9)
results = {}
print("three tokens, shares 0.6, 0.3 and 0.1:")
for steps in (10, 80, 1000, 20000):
    for mistaken in (False, True):
        p, loss = results[mistaken, steps] = descend(three, mistaken, steps)
        print(f"  {'mistaken' if mistaken else 'right':8s} {steps:6d} steps: p = {p.round(3)}, loss {loss:.4f} nats")

# %% [markdown]
# With three tokens it does not. Call the common speed c. Then p_i = 1 − c/r_i, and as the three must sum to 1,
#
#     3 − c (1/0.6 + 1/0.3 + 1/0.1) = 3 − 15 c = 1,   c = 2/15,   p_2 = 1 − (2/15)/0.1 = −1/3
#
# A probability cannot be negative, so there is no rest while all three live. The rare token dies out, and the other two
# share everything as if it did not exist: r_0 p_1 = r_1 p_0 gives p = [2/3, 1/3, 0]. There the first two logits rise at
# the speed 0.6/3 = 0.2, and the third at 0.1, so it falls behind for ever. That is what the run shows.
#
# And here is what I did not expect. After 80 steps the mistaken gradient has the LOWER loss: 0.8982 nats, against
# 0.9031 with the right one. Its path to nothing leads past the right answer. Whoever watches a short run, or stops at
# the lowest loss, keeps the mistake. After 20,000 steps it stands at 20.7 nats, because the rare token still comes once
# in ten times and is taken for impossible. The check that finds it at once, without any training: each row of dz must
# sum to 0. The mistaken row sums to −(1 − p_t). (The fused line p − q leaves no room for this mistake. It lives where a
# softmax stands alone inside a model.)

# %%
lesson.quote(
    "After 80 steps the mistaken gradient has the LOWER loss: 0.8982 nats, against 0.9031",
    80,
    results[True, 80][1],
    results[False, 80][1],
)
lesson.quote("After 20,000 steps it stands at 20.7 nats", 20000, results[True, 20000][1])
lesson.check("three tokens, mistaken: p goes to [2/3, 1/3, 0]", error(results[True, 20000][0], [2 / 3, 1 / 3, 0]), 1e-9)
lesson.check("three tokens, right: p goes to the shares", error(results[False, 20000][0], three), 1e-9)
lesson.claim(
    "the softmax's derivative is p (1 − p), as for the sigmoid",
    "wrong",
    "that is only the diagonal of the Jacobian; with two tokens training still finds [0.7, 0.3], but with three, "
    f"shares [0.6, 0.3, 0.1] are learnt as {[float(x) for x in results[True, 20000][0].round(3)]}",
)

# %% [markdown]
# ## Exercise
#
# 1. Pencil, 10 minutes. With the mistaken gradient and shares r_0 ≥ r_1 ≥ r_2, when does the third token survive? Find
#    the condition on r. Then take r = [0.4, 0.35, 0.25]: it survives, and p goes to [0.466, 0.389, 0.145]. Check this
#    with `descend`. (Right shares it is not: the rare are made rarer.)
# 2. Keyboard, 15 minutes. Write `cross_entropy` with the second definition of part 4: 1 − ε for the right token,
#    ε/(V − 1) for each other. Which lines change, and which line of backward? It passes if your gradient agrees with
#    `complex_step` to 1e-14, and if your loss at z = ln q is 0.464 nats for V = 5 and ε = 0.1.
#
# Checked exercises on this lesson: `minitransformer start 03`.
#
# ## Questions
#
# 1. Why must every row of the softmax's Jacobian sum to 0? Give the reason without a formula.
# 2. Why does no library compute dp = −q/p and then call the softmax's backward?
# 3. A batch of 100 tokens has 40 of padding. Somebody divides the loss by 100. What happens to the loss and to the
#    gradient, and why is that more than a change of the learning rate?
# 4. A model with V = 37,000 and smoothing 0.1 reports 1.50 nats. How far is it from the best that it can do?
# 5. Why should a test of a softmax backward have at least three classes?

# %%
shares = np.array([0.4, 0.35, 0.25])
survivor, _ = descend(shares, True, 20000)
lesson.quote("it survives, and p goes to [0.466, 0.389, 0.145]", *survivor)
lesson.check("exercise 1: p = 1 − c/r with c = 2/Σ 1/r", error(survivor, 1 - 2 / (1 / shares).sum() / shares), 1e-9)
lesson.quote("at z = ln q is 0.464 nats for V = 5 and ε = 0.1", entropy(0.9, 0.1 / 4, 4), 5, 0.1)

# %% [markdown]
# ## In the wild
#
# * PyTorch's `CrossEntropyLoss` wants logits. Giving it probabilities raises no error: it takes the softmax of a
#   softmax. As probabilities differ by 1 at most, the lead in the picture cannot go beyond 1, and at V = 37,000 the
#   loss never falls below 9.519 nats, one less than at the start. Its `label_smoothing` is the first definition of
#   part 4.
# * The same class leaves out targets equal to −100 unless `ignore_index` says otherwise. Padding with 0 and forgetting
#   that argument trains the model to predict padding, at which it soon excels: the mean loss looks wonderful.
# * tensor2tensor, the authors' own code, spreads ε over the V − 1 others and subtracts the floor from the loss it
#   reports. Not everybody does, so compare the losses of two repositories only after you have looked at this line. The
#   gradient is p − q in each.
# * fairseq also spreads over V − 1, and reports losses in bits (nats divided by ln 2).
# * The Annotated Transformer spreads over V − 2, gives the padding column the target 0, and uses `KLDivLoss`. The
#   Kullback-Leibler divergence is the left side of part 6's first line, cross-entropy minus entropy, so its floor is 0.
#   PyTorch takes care there that a target of 0 adds 0, not NaN.

# %%
V = 37000
twice = np.zeros((1, V))
twice[0, 5] = 1.0  # a perfect model's probabilities, taken for logits
stuck, _ = functional.cross_entropy(twice, np.array([5]), 0.0, pad)
print(f"a perfect model whose probabilities are taken for logits: {stuck:.3f} nats")
lesson.quote("at V = 37,000 the loss never falls below 9.519 nats", V, stuck)
lesson.quote("0.123 nats above the floor", 1.50 - at_floor)
lesson.finish()

# %% [markdown]
# ## Answers
#
# 1. Adding one number to all logits changes no probability. Row i of the Jacobian, summed, is the change of p_i when
#    all logits move together.
# 2. Where p has become 0 it would divide by 0 and multiply by 0: NaN. The two factors cancel on paper, to p − q, which
#    is also cheaper. (The first way of part 5 is there to be understood, not to be run.)
# 3. Both shrink by the factor 0.6. The factor depends on how much padding the batch happens to have, so batches with
#    short sentences count less, and the loss of one model depends on how its batches were cut.
# 4. It is 0.123 nats above the floor of 1.377.
# 5. With two classes the diagonal alone already leads to the right shares, as in The surprise: the lost off-diagonal
#    entries cost a factor of 2 in speed, and nothing else.
#
# The exercise: r_2 (1/r_0 + 1/r_1) > 1. The third survives if p_2 = 1 − c/r_2 > 0 with c = 2 / (1/r_0 + 1/r_1 + 1/r_2),
# that is r_2 (1/r_0 + 1/r_1 + 1/r_2) > 2. For [0.6, 0.3, 0.1] the left side of the short form is 0.5.
