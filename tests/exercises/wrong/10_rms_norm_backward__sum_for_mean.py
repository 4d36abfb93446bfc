# rms_norm_backward: the path through rms has a sum where a mean should be
def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    g = dy * gamma
    return (g - x_hat * (g * x_hat).sum(-1, keepdims=True)) / rho, (dy * x_hat).sum((0, 1))
