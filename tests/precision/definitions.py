"""The functions by their definitions, in loops over Exact numbers: slow, and with nothing to go wrong.

Every argument is an array of Exact numbers, except for masks, whole numbers and rates. No number is ever shifted or
scaled to keep it in range: an Exact number cannot overflow.
"""

import numpy as np
from mpmath import mp

from tests.precision.exact import Exact, as_array, dot, exact, exp, log, normal_cdf, sqrt, total
from tests.precision.exact import tanh as tanh_of_one


def each(function):
    """The function of arrays that applies `function` to every entry."""

    def of_arrays(x):
        y = np.empty(x.shape, object)
        for i in np.ndindex(x.shape):
            y[i] = function(x[i])
        return y

    return of_arrays


def gated(activation):
    """Activation of the first half of the features times the second half."""

    def of_arrays(x):
        F = x.shape[-1] // 2
        return activation(x[..., :F]) * x[..., F:]

    return of_arrays


def empty(*shape):
    return np.empty(shape, object)


def sigmoid(x):
    return exact(1) / (exp(-x) + 1)


def cubic(x):
    """The argument of tanh in GELU's tanh form."""
    return (x + x * x * x * mp.mpf("0.044715")) * mp.sqrt(2 / mp.pi)


def positive_part(x):
    return x if x.value > 0 else x * 0


relu = each(positive_part)
gelu = each(lambda x: x * normal_cdf(x))
gelu_tanh = each(lambda x: x * sigmoid(cubic(x) * 2))  # (1 + tanh(s)) / 2 = sigmoid(2 s)
silu = each(lambda x: x * sigmoid(x))
sigmoids = each(sigmoid)
geglu, geglu_tanh, swiglu, glu = map(gated, (gelu, gelu_tanh, silu, sigmoids))
tanh = each(tanh_of_one)
elu_plus_one = each(lambda x: x + 1 if x.value > 0 else exp(x))
error_function = each(lambda x: Exact(mp.erf(x.value)))
cumulative = each(normal_cdf)
density = each(lambda x: Exact(mp.npdf(x.value)))


def softmax(scores, allowed=None):
    allowed = np.ones(scores.shape, bool) if allowed is None else np.broadcast_to(allowed, scores.shape)
    p = empty(*scores.shape)
    for row in np.ndindex(scores.shape[:-1]):
        powers = [exp(s) if may else exact(0) for s, may in zip(scores[row], allowed[row], strict=True)]
        if allowed[row].any():
            denominator = total(powers)
            p[row] = [power / denominator for power in powers]
        else:
            p[row] = powers
    return p


def cross_entropy(logits, targets, smoothing=0.0, pad=0):
    """The mean over the tokens that count, of -sum_i p*_i log p_i."""
    V = logits.shape[-1]
    eps, losses = mp.mpf(smoothing), []
    for z, target in zip(logits, targets, strict=True):
        if target != pad:
            log_total = log(total([exp(x) for x in z]))
            loss = (z[target] - log_total) * (eps - 1)
            losses.append(total([loss, *((x - log_total) * (-eps / V) for x in z)]) if eps else loss)
    return as_array(total(losses) / len(losses))


def token_log_probs(z, targets, counted):
    """log p of each target, 0 where it does not count."""
    log_p = empty(*targets.shape)
    for n in np.ndindex(targets.shape):
        log_p[n] = z[n][targets[n]] - log(total([exp(x) for x in z[n]])) if counted[n] else exact(0)
    return log_p


def dpo(chosen, rejected, ref_chosen, ref_rejected, beta):
    """The mean of log(1 + exp(-u))."""
    losses = []
    for w, x, ref_w, ref_x in zip(chosen, rejected, ref_chosen, ref_rejected, strict=True):
        losses.append(log(exp((total(w - ref_w) - total(x - ref_x)) * -mp.mpf(beta)) + 1))
    return as_array(total(losses) / len(losses))


def grpo(log_p, old_log_p, advantages, counted, clip, ref_log_p, beta):
    """The mean over the answers of the mean over their tokens of -min(rho A, clip(rho) A) + beta (exp(d) - d - 1)."""
    answers = []
    for i, A in enumerate(advantages):
        losses = []
        for t in np.flatnonzero(counted[i]):
            rho = exp(log_p[i, t] - old_log_p[i, t])
            d = ref_log_p[i, t] - log_p[i, t]
            bounded = exact(min(max(rho.value, 1 - mp.mpf(clip)), 1 + mp.mpf(clip)))
            gains = rho * A, (rho if bounded.value == rho.value else bounded) * A
            losses.append((exp(d) - d - 1) * mp.mpf(beta) - min(gains, key=lambda gain: gain.value))
        answers.append(total(losses) / len(losses))
    return as_array(total(answers) / len(answers))


def layer_norm(x, gamma, beta, eps):
    y = empty(*x.shape)
    for row in np.ndindex(x.shape[:-1]):
        C = x.shape[-1]
        mu = total(x[row]) / C
        centred = [entry - mu for entry in x[row]]
        deviation = sqrt(dot(centred, centred) / C + mp.mpf(eps))
        y[row] = [c / deviation * g + b for c, g, b in zip(centred, gamma, beta, strict=True)]
    return y


def rms_norm(x, gamma, eps):
    y = empty(*x.shape)
    for row in np.ndindex(x.shape[:-1]):
        size = sqrt(dot(x[row], x[row]) / x.shape[-1] + mp.mpf(eps))
        y[row] = [entry / size * g for entry, g in zip(x[row], gamma, strict=True)]
    return y


def product(a, b):
    """The matrix product of a (N, I) and b (I, O)."""
    y = empty(len(a), b.shape[1])
    for n, o in np.ndindex(y.shape):
        y[n, o] = dot(a[n], b[:, o])
    return y


def linear(x, W, b):
    return product(x, W) + b


def conv1d(x, W, b, dilation, causal):
    (B, T, _), (K, _, O) = x.shape, W.shape
    before = (K - 1) * dilation if causal else (K - 1) * dilation // 2
    y = empty(B, T, O)
    for n, t, o in np.ndindex(y.shape):
        read = [(k, t + k * dilation - before) for k in range(K)]
        terms = [dot(x[n, s], W[k, :, o]) for k, s in read if 0 <= s < T]
        y[n, t, o] = total([*terms, b[o]])
    return y


def dropout(x, kept, rate):
    """`rate` is a fraction with denominator 65536."""
    return each(lambda entry: entry / (1 - mp.mpf(rate)))(x) * kept


def embedding(E, ids, scale):
    y = empty(*ids.shape, E.shape[1])
    for place in np.ndindex(ids.shape):
        y[place] = E[ids[place]] * mp.mpf(scale)
    return y


def relative_bias(table, buckets):
    y = empty(table.shape[1], *buckets.shape)
    for h, t, s in np.ndindex(y.shape):
        y[h, t, s] = table[buckets[t, s], h] * 1
    return y


def repeat_heads(x, times):
    y = empty(x.shape[0], x.shape[1] * times, *x.shape[2:])
    for h in range(y.shape[1]):
        y[:, h] = x[:, h // times] * 1
    return y


def rotate(x, cos, sin):
    y = empty(*x.shape)
    for *head, t, i in np.ndindex(*x.shape[:-1], x.shape[-1] // 2):
        first, second = (*head, t, 2 * i), (*head, t, 2 * i + 1)
        y[first] = x[first] * cos[t, i] - x[second] * sin[t, i]
        y[second] = x[first] * sin[t, i] + x[second] * cos[t, i]
    return y


def attention(q, k, v, allowed=None, bias=None):
    """softmax(q k^T / sqrt(D)) v, with H / G heads of queries for each head of keys."""
    B, H, T, D = q.shape
    S, times = k.shape[2], H // k.shape[1]
    root, scores, y = mp.sqrt(D), empty(B, H, T, S), empty(B, H, T, v.shape[-1])
    for n, h, t, s in np.ndindex(scores.shape):
        scores[n, h, t, s] = dot(q[n, h, t], k[n, h // times, s]) / root
        if bias is not None:
            scores[n, h, t, s] += bias[h, t, s]
    p = softmax(scores, allowed)
    for n, h, t, e in np.ndindex(y.shape):
        y[n, h, t, e] = dot(p[n, h, t], v[n, h // times, :, e])
    return y


def linear_attention(q, k, v, causal):
    """The mean of the values, weighted by phi(q) . phi(k)."""
    B, H, T, _ = q.shape
    times, phi_q, phi_k, y = H // k.shape[1], elu_plus_one(q), elu_plus_one(k), empty(B, H, T, v.shape[-1])
    for n, h, t in np.ndindex(B, H, T):
        seen = t + 1 if causal else k.shape[2]
        weights = [dot(phi_q[n, h, t], phi_k[n, h // times, s]) for s in range(seen)]
        denominator = total(weights)
        for e in range(v.shape[-1]):
            y[n, h, t, e] = dot(weights, v[n, h // times, :seen, e]) / denominator
    return y


def additive_attention(q, k, v, w):
    (B, T, A), S = q.shape, k.shape[1]
    scores, y = empty(B, T, S), empty(B, T, v.shape[-1])
    for n, t, s in np.ndindex(scores.shape):
        scores[n, t, s] = dot([tanh_of_one(q[n, t, a] + k[n, s, a]) for a in range(A)], w)
    p = softmax(scores)
    for n, t, e in np.ndindex(y.shape):
        y[n, t, e] = dot(p[n, t], v[n, :, e])
    return y


def lstm(x, W, U, b, h, c):
    (B, T, _), R = x.shape, len(U)
    y = empty(B, T, R)
    for t in range(T):
        a = product(x[:, t], W) + product(h, U) + b
        o, i, f = (sigmoids(a[:, gate * R : (gate + 1) * R]) for gate in range(3))
        c = f * c + i * tanh(a[:, 3 * R :])
        h = y[:, t] = o * tanh(c)
    return y


def gru(x, W, U, b, d, h):
    (B, T, _), R = x.shape, len(U)
    y = empty(B, T, R)
    for t in range(T):
        a, k = product(x[:, t], W) + b, product(h, U)
        r, z = (sigmoids(a[:, rows] + k[:, rows]) for rows in (slice(R), slice(R, 2 * R)))
        n = tanh(a[:, 2 * R :] + r * (k[:, 2 * R :] + d))
        h = y[:, t] = z * h + (1 - z) * n
    return y


def turns(angles):
    """Sines and cosines side by side, as in `sinusoidal_positions`."""
    y = empty(len(angles), 2 * angles.shape[1])
    y[:, 0::2] = each(lambda a: Exact(mp.sin(a.value)))(angles)
    y[:, 1::2] = each(lambda a: Exact(mp.cos(a.value)))(angles)
    return y


def alibi_bias(slopes, distances):
    return slopes[:, None, None] * -distances
