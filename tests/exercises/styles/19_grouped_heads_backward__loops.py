def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for b, h in np.ndindex(q.shape[:2]):
        shared = h // (q.shape[1] // k.shape[1])
        dp = do[b, h] @ v[b, shared].T
        ds = p[b, h] * (dp - (p[b, h] * dp).sum(axis=1, keepdims=True)) / math.sqrt(q.shape[-1])
        dq[b, h] = ds @ k[b, shared]
        dk[b, shared] += ds.T @ q[b, h]
        dv[b, shared] += p[b, h].T @ do[b, h]
    return dq, dk, dv
