def additive_attention_backward(do, cache):
    """One query and one key at a time."""
    v, scorer, match, p = cache
    B, T, S, D = match.shape
    dq, dk = np.zeros_like(match[:, :, 0]), np.zeros_like(match[:, 0])
    dv, dscorer = np.zeros_like(v), np.zeros_like(scorer)
    for n in range(B):
        for t in range(T):
            o = p[n, t] @ v[n]
            for j in range(S):
                ds = p[n, t, j] * (do[n, t] @ (v[n, j] - o))
                turn = ds * scorer * (1 + match[n, t, j]) * (1 - match[n, t, j])
                dq[n, t] += turn
                dk[n, j] += turn
                dscorer += ds * match[n, t, j]
                dv[n, j] += p[n, t, j] * do[n, t]
    return dq, dk, dv, dscorer
