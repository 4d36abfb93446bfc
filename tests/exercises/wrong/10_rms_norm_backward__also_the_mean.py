# rms_norm_backward: a mean is subtracted, as in LayerNorm
def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    g = dy * gamma
    dx = (g - g.mean(-1, keepdims=True) - x_hat * (g * x_hat).mean(-1, keepdims=True)) / rho
    return dx, (dy * x_hat).sum((0, 1))
