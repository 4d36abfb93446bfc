def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    dx, dW1, db1, dW2, db2 = (
        np.zeros_like(x),
        np.zeros_like(W1),
        np.zeros(len(W2)),
        np.zeros_like(W2),
        np.zeros(len(W1)),
    )
    for b, t in np.ndindex(*x.shape[:2]):
        for c in range(len(W1)):
            db2[c] += dy[b, t, c]
        for f in range(len(W2)):
            da = 0.0
            for c in range(len(W1)):
                da += dy[b, t, c] * W2[f, c]
                dW2[f, c] += a[b, t, f] * dy[b, t, c]
            if h[b, t, f] > 0:
                db1[f] += da
                for c in range(len(W1)):
                    dW1[c, f] += x[b, t, c] * da
                    dx[b, t, c] += da * W1[c, f]
    return dx, dW1, db1, dW2, db2
