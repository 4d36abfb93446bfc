def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    dgamma = (dy * x_hat).sum(axis=(0, 1))  # (C,)
    g = dy * gamma  # the gradient of x̂
    dx = (g - x_hat * (g * x_hat).mean(axis=-1, keepdims=True)) / rho
    return dx, dgamma
