def post_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    ds = back_norm(dy)
    df = np.zeros_like(ds)
    for index in np.ndindex(ds.shape):
        df[index] = m[index] * ds[index]
    through = back_sublayer(df)
    B, T, C = dy.shape
    return [[[ds[b, t, c] + through[b, t, c] for c in range(C)] for t in range(T)] for b in range(B)]


def pre_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    dx = dy.copy()
    df = np.zeros_like(dy)
    for index in np.ndindex(dy.shape):
        df[index] = m[index] * dy[index]
    through = back_norm(back_sublayer(df))
    for index in np.ndindex(dy.shape):
        dx[index] += through[index]
    return dx
