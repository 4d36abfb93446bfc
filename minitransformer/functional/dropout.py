"""Dropout: forget a random part of the activations while training."""


def dropout(x, rate, rng=None):
    """Inverted dropout (paper section 5.4): set each entry to 0 with probability `rate`, scale up the others.

    x any shape; rng draws the mask, and rng=None (evaluation) or rate=0 makes it the identity.

    Forward    y_i = x_i m_i        m_i = 0 with probability P, else 1 / (1 - P), so that the mean of y_i is x_i
    Jacobian   dy_i/dx_j = 1[i = j] m_i
    Chain      dx_i = dy_i m_i
    Remember   only m (None for the identity); backward must never draw a second mask
    Check      dx is 0 just where y is 0; without rng, y is x
    """
    if rng is None or rate == 0.0:
        return x, None
    real = x.real.dtype  # float32 for float32, float64 for float64 and complex128
    mask = (rng.random(x.shape, dtype=real) >= rate).astype(real)
    mask *= 1.0 / (1.0 - rate)
    return x * mask, mask


def dropout_backward(dy, mask):
    """dx from dy and the remembered mask; the derivation stands in `dropout`."""
    return dy if mask is None else dy * mask
