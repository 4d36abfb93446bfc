def linear_backward(dy, cache):
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (N, C), (N, F)
    return dy @ W.T, rows.T @ dy_rows, dy_rows.sum(axis=0)


def mix_backward(dy, cache):
    dx, dW, _ = linear_backward(dy, cache)
    return dx, dW
