# --- right: einsum
def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    dh = np.where(h > 0, np.einsum("btc,fc->btf", dy, W2), 0)
    dx = np.einsum("btf,cf->btc", dh, W1)
    dW1, dW2 = np.einsum("btc,btf->cf", x, dh), np.einsum("btf,btc->fc", a, dy)
    return dx, dW1, dh.sum(axis=(0, 1)), dW2, dy.sum(axis=(0, 1))


# --- wrong: first_bias_from_da
# feed_forward_backward: db_1 is taken before the gate
def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    da = dy @ W2.T
    dh = np.where(h > 0, da, 0.0)
    dW2 = np.einsum("btf,btc->fc", a, dy)
    dW1 = np.einsum("btc,btf->cf", x, dh)
    return dh @ W1.T, dW1, da.sum((0, 1)), dW2, dy.sum((0, 1))


# --- wrong: zero_counts_as_on
# feed_forward_backward: ReLU's gate is missing
def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    rows = (0, 1)
    da = dy @ W2.T
    dW2 = np.tensordot(a, dy, (rows, rows))
    dh = da * (a >= 0)
    return dh @ W1.T, np.tensordot(x, dh, (rows, rows)), dh.sum(rows), dW2, dy.sum(rows)
