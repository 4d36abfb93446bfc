# layer_norm_backward: γ is applied twice
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = gamma * dy
    dx = gamma * (g - g.mean(-1, keepdims=True) - x_hat * (g * x_hat).mean(-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))
