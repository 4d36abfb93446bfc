"""Layer normalization (Ba, Kiros and Hinton 2016), the Norm in "Add & Norm" (paper section 3.1)."""

from typing import NamedTuple

from minitransformer.backend import backend_name, fused, xp
from minitransformer.checks import check_numbers, check_shape
from minitransformer.functional.reductions import SMALL_EPS, column_dot, column_sum, row_dot, row_inverse_rms, row_mean

FAR = 10.0  # standard deviations: the rounding error of a mean that is farther from 0 shows in x_hat


class LayerNormCache(NamedTuple):
    """What `layer_norm` remembers."""

    x_hat: xp.ndarray  # (..., C), normalized
    rstd: xp.ndarray  # (..., 1), one over the standard deviation
    gamma: xp.ndarray  # (C,)


def layer_norm(
    x: xp.ndarray, gamma: xp.ndarray, beta: xp.ndarray, eps: float = 1e-5
) -> tuple[xp.ndarray, LayerNormCache]:
    """Give each token mean 0 and variance 1 over its features, then a learned scale and shift.

    x (..., C), gamma (C,), beta (C,) -> y (..., C). The variance is the biased one (divided by C), and eps is inside
    the root: the first entry of [1, 0, 0, 0] becomes 1.732. The paper gives no eps; this is PyTorch's. Raises TypeError
    or ValueError for an x that is not an array of numbers, and ValueError for a gamma or beta of another shape.

    Forward    mu = mean(x)    r = 1 / sqrt(mean((x - mu)^2) + eps)    x_hat = (x - mu) r    y = gamma x_hat + beta
    Jacobian   dx_hat_i/dx_j = r (1[i = j] - 1/C - x_hat_i x_hat_j / C)
               three paths lead from x_j to x_hat_i: directly, through mu, and through r. With c = x - mu,
               dr/dx_j = -r^3 c_j / C, so the third contributes c_i dr/dx_j = -r x_hat_i x_hat_j / C.
    Chain      dx_hat = gamma dy          (gamma inside the two means below: outside is right only where gamma = 1)
               dx = r (dx_hat - mean(dx_hat) - x_hat mean(dx_hat x_hat))
               dgamma = sum over tokens of dy x_hat        dbeta = sum over tokens of dy
    Remember   x_hat, r and gamma
    Check      each row of dx sums to 0; it is orthogonal to x_hat except for eps
    """
    check_numbers("x", x)
    if not gamma.shape == beta.shape == x.shape[-1:]:  # 40 calls fewer in a small model's step
        check_shape("gamma", gamma, x.shape[-1:])
        check_shape("beta", beta, x.shape[-1:])
    y, x_hat, rstd = _layer_norm(x, gamma, beta, eps)
    return y, LayerNormCache(x_hat, rstd, gamma)


@fused
def _layer_norm(x, gamma, beta, eps):
    mean = row_mean(x)
    x_hat = x - mean
    is_usual = backend_name() == "numpy" and eps >= SMALL_EPS  # a GPU would have to wait for the answer below
    if is_usual:
        variance = row_dot(x_hat, x_hat) / x.shape[-1]
        rstd = 1.0 / xp.sqrt(variance + eps)  # (..., 1)
        is_usual = _are_usual(mean, rstd)
    if not is_usual:
        x_hat, rstd = _with_care(x_hat, mean, eps)
    x_hat *= rstd
    y = x_hat * gamma
    y += beta
    return y, x_hat, rstd


def _are_usual(mean, rstd):
    """Whether all tokens have a mean that is not FAR from 0, and squares that have not overflowed, so that rstd > 0."""
    if mean.size == 1:  # in decoding, where a call of NumPy costs more than its arithmetic
        return rstd.item() != 0.0 and abs(mean.item() * rstd.item()) < FAR
    return bool(rstd.all() and abs(mean * rstd).max().item() < FAR)


def _with_care(x_hat, mean, eps):
    """x_hat and rstd from x - mean, which is changed in place, for tokens of any mean and any size.

    Where the mean is FAR from 0, its rounding leaves the same offset in all differences. First the first difference is
    subtracted from all, so that features that are all equal become exactly 0, however large they are. Then the mean of
    what remains is subtracted, which is so small that its own rounding does not show.
    """
    far = abs(mean * row_inverse_rms(x_hat, eps)) > FAR
    x_hat -= far * x_hat[..., :1]
    x_hat -= far * row_mean(x_hat)
    return x_hat, row_inverse_rms(x_hat, eps)


def layer_norm_backward(dy: xp.ndarray, cache: LayerNormCache) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray]:
    """(dx, dgamma, dbeta) from dy (..., C); see `layer_norm` for the derivation.

    Raises ValueError for a dy of another shape.
    """
    check_shape("dy", dy, cache.x_hat.shape)
    return _layer_norm_backward(dy, *cache)


@fused
def _layer_norm_backward(dy, x_hat, rstd, gamma):
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
