# --- right: einsum
def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    along = np.einsum("btc,c,btc->bt", dy, gamma, x_hat)[..., None] / len(gamma)
    return (dy * gamma - along * x_hat) / rho, np.einsum("btc,btc->c", dy, x_hat)


# --- wrong: also_the_mean
# rms_norm_backward: a mean is subtracted, as in LayerNorm
def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    g = dy * gamma
    dx = (g - g.mean(-1, keepdims=True) - x_hat * (g * x_hat).mean(-1, keepdims=True)) / rho
    return dx, (dy * x_hat).sum((0, 1))


# --- wrong: sum_for_mean
# rms_norm_backward: the path through rms has a sum where a mean should be
def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    g = dy * gamma
    return (g - x_hat * (g * x_hat).sum(-1, keepdims=True)) / rho, (dy * x_hat).sum((0, 1))
