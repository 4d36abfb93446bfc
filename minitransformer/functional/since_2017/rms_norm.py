"""Root mean square normalization (Zhang and Sennrich 2019): LayerNorm without the mean."""

from typing import NamedTuple

from minitransformer.backend import backend_name, xp
from minitransformer.functional.reductions import SMALL_EPS, column_dot, row_dot, row_inverse_rms


class RMSNormCache(NamedTuple):
    """What `rms_norm` remembers."""

    x_hat: xp.ndarray  # (..., C), normalized
    rrms: xp.ndarray  # (..., 1), one over the root mean square
    gamma: xp.ndarray  # (C,)


def rms_norm(x: xp.ndarray, gamma: xp.ndarray, eps: float = 1e-5) -> tuple[xp.ndarray, RMSNormCache]:
    """Give each token a mean square of 1 over its features, then a learned scale (equation 4 of the source).

    x (..., C), gamma (C,) -> y (..., C). It keeps the property of LayerNorm that its authors found to matter: the size
    of a token makes no difference. It leaves out the rest: no mean is subtracted, no shift is learned. The source has
    no eps; here it is inside the root, as in LayerNorm.

    Forward    r = 1 / sqrt(mean(x^2) + eps)        x_hat = x r        y = gamma x_hat
    Jacobian   dx_hat_i/dx_j = r (1[i = j] - x_hat_i x_hat_j / C)
               two paths lead from x_j to x_hat_i: directly, and through r, where dr/dx_j = -r^3 x_j / C
    Chain      dx_hat = gamma dy          (gamma inside the mean below: outside is right only where gamma = 1)
               dx = r (dx_hat - x_hat mean(dx_hat x_hat))
               dgamma = sum over tokens of dy x_hat
    Remember   x_hat, r and gamma
    Check      dx is orthogonal to x_hat except for eps; for a token with mean 0, y is LayerNorm's with beta = 0
    """
    is_usual = backend_name() == "numpy" and eps >= SMALL_EPS  # a GPU would have to wait for the answer below
    if is_usual:
        rrms = 1.0 / xp.sqrt(row_dot(x, x) / x.shape[-1] + eps)  # (..., 1)
        is_usual = rrms.all()  # not 0: no square has overflowed
    if not is_usual:
        rrms = row_inverse_rms(x, eps)
    x_hat = x * rrms
    return x_hat * gamma, RMSNormCache(x_hat, rrms, gamma)


def rms_norm_backward(dy: xp.ndarray, cache: RMSNormCache) -> tuple[xp.ndarray, xp.ndarray]:
    """(dx, dgamma) from dy (..., C); see `rms_norm` for the derivation."""
    x_hat, rrms, gamma = cache
    C = dy.shape[-1]
    dgamma = column_dot(dy.reshape(-1, C), x_hat.reshape(-1, C))
    dx = dy * gamma  # dx_hat
    dx -= x_hat * (row_dot(dx, x_hat) / C)
    dx *= rrms
    return dx, dgamma
