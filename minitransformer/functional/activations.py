"""The activation between the two matrices of the feed-forward network: ReLU, a function of each entry alone."""

from minitransformer.backend import fused, xp


def relu(x: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
    """Rectified linear unit (paper section 3.3, the max(0, .) of equation 2), entry by entry, any shape.

    Forward    y_i = max(0, x_i)
    Jacobian   dy_i/dx_j = 1[i = j] 1[x_i > 0]        at the kink x_i = 0 we take 0, as is usual
    Chain      dx_i = dy_i 1[x_i > 0]
    Remember   only y: it is positive exactly where x is, and the next layer keeps the same array as its input
    Check      dx is 0 wherever y is 0, and dy elsewhere
    """
    y = xp.maximum(x, 0)
    return y, y


@fused
def relu_backward(dy: xp.ndarray, y: xp.ndarray) -> xp.ndarray:
    """dx from dy and the remembered output y, all of one shape; see `relu` for the derivation."""
    return dy * (y > 0)
