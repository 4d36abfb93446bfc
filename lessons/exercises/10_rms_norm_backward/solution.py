def rms_norm_backward(dy, cache):
    x_hat, rms, gamma = cache
    dgamma = (dy * x_hat).sum(axis=(0, 1))  # (C,)
    dx_hat = dy * gamma
    dx = (dx_hat - x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)) / rms
    return dx, dgamma
