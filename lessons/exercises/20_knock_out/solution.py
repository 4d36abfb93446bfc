def without_key(s, v, j):
    seen = s.copy()
    seen[:, j] = -np.inf
    return softmax(seen) @ v


def without_head(o, W_o, gone):
    B, H, T, D = o.shape
    zero, mean = o.copy(), o.copy()
    zero[:, gone] = 0.0
    mean[:, gone] = o[:, gone].mean(axis=(0, 1))
    y_zero, y_mean = (each.transpose(0, 2, 1, 3).reshape(B, T, H * D) @ W_o for each in (zero, mean))
    return y_zero, y_mean
