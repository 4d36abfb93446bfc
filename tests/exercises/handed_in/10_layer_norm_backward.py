# --- right: einsum
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    C = len(gamma)
    outer = np.einsum("bti,btj->btij", x_hat, x_hat)
    J = (np.eye(C) - 1 / C - outer / C) / sigma[..., None]
    dx = np.einsum("bti,i,btij->btj", dy, gamma, J)
    return dx, np.einsum("bti,bti->i", dy, x_hat), np.einsum("bti->i", dy)


# --- wrong: five_features
# layer_norm_backward: does it take C = 5 for granted?
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = dy * gamma
    dx = (g - g.sum(-1, keepdims=True) / 5 - x_hat * (g * x_hat).sum(-1, keepdims=True) / 5) / sigma
    return dx, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))
