# layer_norm_backward: γ is applied after the means, not before them
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dx = gamma * (dy - dy.mean(-1, keepdims=True) - x_hat * (dy * x_hat).mean(-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))
