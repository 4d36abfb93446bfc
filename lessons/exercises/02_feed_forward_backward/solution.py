def linear_backward(dy, x, W):
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # tokens as rows
    return dy @ W.T, rows.T @ dy_rows, dy_rows.sum(axis=0)


def feed_forward_backward(dy, cache):
    x, W_1, a, r, W_2 = cache
    dr, dW_2, db_2 = linear_backward(dy, r, W_2)
    da = dr * (a > 0)
    dx, dW_1, db_1 = linear_backward(da, x, W_1)
    return dx, dW_1, db_1, dW_2, db_2
