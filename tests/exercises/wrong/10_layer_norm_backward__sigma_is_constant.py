# layer_norm_backward: the path through σ is missing
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = dy * gamma
    return (g - g.mean(-1, keepdims=True)) / sigma, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))
