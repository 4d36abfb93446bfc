def weighted_mean_backward(do, cache):
    p, v = cache
    return [np.inner(do[b], v[b]) for b in range(len(p))], [p[b].T @ do[b] for b in range(len(p))]


def softmax_backward(dp, cache):
    p = cache
    jacobian = np.eye(p.shape[-1]) * p[..., None] - p[..., None] * p[..., None, :]
    return np.squeeze(jacobian @ dp[..., None], -1)


def scores_backward(ds, cache):
    q, k = cache
    ds = ds * q.shape[-1] ** -0.5
    return np.matmul(ds, k), np.matmul(np.moveaxis(ds, 1, 2), q)
