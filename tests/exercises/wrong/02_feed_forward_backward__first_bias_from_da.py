# feed_forward_backward: db_1 is taken before the gate
def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    da = dy @ W2.T
    dh = np.where(h > 0, da, 0.0)
    dW2 = np.einsum("btf,btc->fc", a, dy)
    dW1 = np.einsum("btc,btf->cf", x, dh)
    return dh @ W1.T, dW1, da.sum((0, 1)), dW2, dy.sum((0, 1))
