# --- right: einsum
def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    dh = np.where(h > 0, np.einsum("btc,fc->btf", dy, W2), 0)
    dx = np.einsum("btf,cf->btc", dh, W1)
    dW1, dW2 = np.einsum("btc,btf->cf", x, dh), np.einsum("btf,btc->fc", a, dy)
    return dx, dW1, dh.sum(axis=(0, 1)), dW2, dy.sum(axis=(0, 1))
