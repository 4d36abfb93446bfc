def feed_forward_backward(dy, cache):
    x, W1, h, a, W2 = cache
    dW1, db1, dW2, db2 = np.zeros_like(W1), 0, np.zeros_like(W2), 0
    dx = np.empty_like(x)
    for i in np.ndindex(x.shape[:2]):
        db2, dW2 = db2 + dy[i], dW2 + np.outer(a[i], dy[i])
        dh = W2 @ dy[i] * np.heaviside(h[i], 0)
        db1, dW1 = db1 + dh, dW1 + np.outer(x[i], dh)
        dx[i] = W1 @ dh
    return dx, dW1, db1, dW2, db2
