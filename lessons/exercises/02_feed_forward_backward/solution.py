def linear_backward(dy, x, W):
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (N, I), (N, O)
    return dy @ W.T, rows.T @ dy_rows, dy_rows.sum(axis=0)


def feed_forward_backward(dy, cache):
    x, W1, a, r, W2 = cache
    dr, dW2, db2 = linear_backward(dy, r, W2)
    da = dr * (a > 0)
    dx, dW1, db1 = linear_backward(da, x, W1)
    return dx, dW1, db1, dW2, db2
