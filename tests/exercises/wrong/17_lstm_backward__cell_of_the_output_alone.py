# lstm_backward: the cell hears its own step only
def lstm_backward(dy, cache):
    x, W_x, W_y, steps = cache
    dsums, back = [], 0
    for t in range(dy.shape[1] - 1, -1, -1):
        r, w, f, n, cell, _, old = steps[t]
        d = dy[:, t] + back
        dcell = d * r * (1 - np.tanh(cell) ** 2)
        parts = [d * np.tanh(cell) * (r - r * r), dcell * n * (w - w * w), dcell * old * (f - f * f)]
        dsums.insert(0, np.concatenate([*parts, dcell * w * (1 - n * n)], axis=1))
        back = dsums[0] @ W_y.T
    dsums, said = np.stack(dsums, axis=1), np.stack([step[5] for step in steps], axis=1)
    return (
        dsums @ W_x.T,
        np.einsum("btc,btf->cf", x, dsums),
        np.einsum("btc,btf->cf", said, dsums),
        dsums.sum(axis=(0, 1)),
    )
