def weighted_mean_backward(do, cache):
    p, v = cache
    dp, dv = np.zeros(p.shape), np.zeros(v.shape)
    for b, t, s in np.ndindex(p.shape):
        for e in range(v.shape[-1]):
            dp[b, t, s] += do[b, t, e] * v[b, s, e]
            dv[b, s, e] += do[b, t, e] * p[b, t, s]
    return dp, dv


def softmax_backward(dp, cache):
    ds = np.zeros(cache.shape)
    for b, t, s in np.ndindex(cache.shape):
        for m in range(cache.shape[-1]):
            ds[b, t, s] += dp[b, t, m] * cache[b, t, m] * ((m == s) - cache[b, t, s])
    return ds


def scores_backward(ds, cache):
    q, k = cache
    dq, dk = np.zeros(q.shape), np.zeros(k.shape)
    for b, t, s in np.ndindex(ds.shape):
        for d in range(q.shape[-1]):
            dq[b, t, d] += ds[b, t, s] * k[b, s, d] / math.sqrt(q.shape[-1])
            dk[b, s, d] += ds[b, t, s] * q[b, t, d] / math.sqrt(q.shape[-1])
    return dq, dk
