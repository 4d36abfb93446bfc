def rotate_backward(dy, cache):
    dx = np.zeros_like(dy)
    for t, i in np.ndindex(cache[0].shape):
        cos, sin = cache[0][t, i], cache[1][t, i]
        for b in range(len(dy)):
            dx[b, t, 2 * i] += cos * dy[b, t, 2 * i] + sin * dy[b, t, 2 * i + 1]
            dx[b, t, 2 * i + 1] += cos * dy[b, t, 2 * i + 1] - sin * dy[b, t, 2 * i]
    return dx
