def attention_backward(do, cache):
    q, k, v, p = cache
    B, T, S = p.shape
    D, E = q.shape[-1], v.shape[-1]
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for b in range(B):
        for t in range(T):
            dp = [sum(do[b, t, e] * v[b, i, e] for e in range(E)) for i in range(S)]
            mean = sum(p[b, t, i] * dp[i] for i in range(S))
            for i in range(S):
                ds = p[b, t, i] * (dp[i] - mean) / math.sqrt(D)
                for d in range(D):
                    dq[b, t, d] += ds * k[b, i, d]
                    dk[b, i, d] += ds * q[b, t, d]
                for e in range(E):
                    dv[b, i, e] += p[b, t, i] * do[b, t, e]
    return dq, dk, dv
