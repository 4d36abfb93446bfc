# layer_norm_backward: the path through σ divides by C − 1
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = dy * gamma
    C = g.shape[-1]
    spread = x_hat * (g * x_hat).sum(-1, keepdims=True) / (C - 1)
    return (g - g.mean(-1, keepdims=True) - spread) / sigma, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))
