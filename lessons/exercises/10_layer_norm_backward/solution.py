def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dbeta = dy.sum(axis=(0, 1))  # (C,)
    dgamma = (dy * x_hat).sum(axis=(0, 1))  # (C,)
    dx_hat = dy * gamma
    mu_path = dx_hat.mean(axis=-1, keepdims=True)  # (B, T, 1)
    sigma_path = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)  # (B, T, C)
    dx = (dx_hat - mu_path - sigma_path) / sigma
    return dx, dgamma, dbeta
