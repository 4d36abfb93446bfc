"""Layer normalisation (Ba, Kiros and Hinton 2016), the Norm in "Add & Norm" (paper section 3.1)."""

from typing import NamedTuple

from minitransformer.backend import fused_on_gpu, xp
from minitransformer.checks import check_numbers, check_shape
from minitransformer.functional.reductions import column_dot, column_sum, row_dot, row_mean


class LayerNormCache(NamedTuple):
    """What `layer_norm` remembers."""

    x_hat: xp.ndarray  # (..., C), normalised
    rstd: xp.ndarray  # (..., 1), one over the standard deviation
    gamma: xp.ndarray  # (C,)


@fused_on_gpu
def layer_norm(x, gamma, beta, eps=1e-5):
    """Give each token mean 0 and variance 1 over its features, then a learnt scale and shift.

    x (..., C), gamma (C,), beta (C,) -> y (..., C). The variance is the biased one (divided by C), and eps stands
    inside the root: [1, 0, 0, 0] becomes 1.732 in its first entry. The paper gives no eps; this is PyTorch's.

    Forward    mu = mean(x)    r = 1 / sqrt(mean((x - mu)^2) + eps)    x_hat = (x - mu) r    y = gamma x_hat + beta
    Jacobian   dx_hat_i/dx_j = r (1[i = j] - 1/C - x_hat_i x_hat_j / C)
               three paths lead from x_j to x_hat_i: directly, through mu, and through r. With c = x - mu,
               dr/dx_j = -r^3 c_j / C, so the third contributes c_i dr/dx_j = -r x_hat_i x_hat_j / C.
    Chain      dx_hat = gamma dy          (gamma inside the two means below: outside is right only where gamma = 1)
               dx = r (dx_hat - mean(dx_hat) - x_hat mean(dx_hat x_hat))
               dgamma = sum over tokens of dy x_hat        dbeta = sum over tokens of dy
    Remember   x_hat, r and gamma
    Check      each row of dx sums to 0; it is orthogonal to x_hat but for eps
    """
    check_numbers("x", x)
    C = x.shape[-1]
    check_shape("gamma", gamma, (C,))
    check_shape("beta", beta, (C,))
    x_hat = x - row_mean(x)
    variance = row_dot(x_hat, x_hat) / C
    rstd = 1.0 / xp.sqrt(variance + eps)  # (..., 1)
    x_hat *= rstd
    y = x_hat * gamma
    y += beta
    return y, LayerNormCache(x_hat, rstd, gamma)


@fused_on_gpu
def layer_norm_backward(dy, cache):
    """(dx, dgamma, dbeta) from dy (..., C); the derivation stands in `layer_norm`."""
    x_hat, rstd, gamma = cache
    C = dy.shape[-1]
    dy_rows = dy.reshape(-1, C)
    dgamma = column_dot(dy_rows, x_hat.reshape(-1, C))
    dbeta = column_sum(dy_rows)
    dx = dy * gamma  # dx_hat
    through_std = row_dot(dx, x_hat) / C
    dx -= row_mean(dx)
    dx -= x_hat * through_std
    dx *= rstd
    return dx, dgamma, dbeta
