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


# --- wrong: gamma_outside
# layer_norm_backward: γ is applied after the means, not before them
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dx = gamma * (dy - dy.mean(-1, keepdims=True) - x_hat * (dy * x_hat).mean(-1, keepdims=True)) / sigma
    return dx, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))


# --- wrong: sigma_is_constant
# layer_norm_backward: the path through σ is missing
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = dy * gamma
    return (g - g.mean(-1, keepdims=True)) / sigma, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))


# --- wrong: unbiased
# layer_norm_backward: the path through σ divides by C − 1
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    g = dy * gamma
    C = g.shape[-1]
    spread = x_hat * (g * x_hat).sum(-1, keepdims=True) / (C - 1)
    return (g - g.mean(-1, keepdims=True) - spread) / sigma, (dy * x_hat).sum((0, 1)), dy.sum((0, 1))
