def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dbeta = dy.sum(axis=(0, 1))  # (C,)
    dgamma = (dy * x_hat).sum(axis=(0, 1))  # (C,)
    g = dy * gamma  # the gradient of x̂
    through_mean = g.mean(axis=-1, keepdims=True)  # (B, T, 1)
    through_spread = x_hat * (g * x_hat).mean(axis=-1, keepdims=True)  # (B, T, C)
    dx = (g - through_mean - through_spread) / sigma
    return dx, dgamma, dbeta
