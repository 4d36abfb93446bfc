# --- right: einsum
def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    along = np.einsum("btc,c,btc->bt", dy, gamma, x_hat)[..., None] / len(gamma)
    return (dy * gamma - along * x_hat) / rho, np.einsum("btc,btc->c", dy, x_hat)
