# --- wrong: five_features
# layer_norm_backward: does it take C = 5 for granted?
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = dy * gamma
    dx = (g - g.sum(-1, keepdims=True) / 5 - x_hat * (g * x_hat).sum(-1, keepdims=True) / 5) / sigma
    return dx, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))
