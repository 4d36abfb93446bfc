def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    C = len(gamma)
    outer = np.einsum("bti,btj->btij", x_hat, x_hat)
    J = (np.eye(C) - 1 / C - outer / C) / sigma[..., None]
    dx = np.einsum("bti,i,btij->btj", dy, gamma, J)
    return dx, np.einsum("bti,bti->i", dy, x_hat), np.einsum("bti->i", dy)
