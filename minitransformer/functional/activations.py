"""Activations: functions of each entry alone, between the two matrices of the feed-forward network."""

from minitransformer.backend import fused_on_gpu, xp


def relu(x):
    """Rectified linear unit (paper section 3.3, the max(0, .) of equation 2), entry by entry, any shape.

    Forward    y_i = max(0, x_i)
    Jacobian   dy_i/dx_j = 1[i = j] 1[x_i > 0]        at the kink x_i = 0 we take 0, as everybody does
    Chain      dx_i = dy_i 1[x_i > 0]
    Remember   only y: it is positive just where x is, and the next layer keeps the same array as its input
    Check      dx is 0 wherever y is 0, and dy elsewhere
    """
    y = xp.maximum(x, 0)
    return y, y


@fused_on_gpu
def relu_backward(dy, y):
    """dx from dy and the remembered output y, all of one shape; the derivation stands in `relu`."""
    return dy * (y > 0)
