def tile_backward(do, q, k, v, o, logsum):
    """One key after the other."""
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    root = math.sqrt(q.shape[-1])
    for b in range(len(q)):
        for t in range(q.shape[1]):
            for j in range(k.shape[1]):
                p = np.exp(q[b, t] @ k[b, j] / root - logsum[b, t, 0])
                ds = p * (do[b, t] @ (v[b, j] - o[b, t]))
                dq[b, t] += ds * k[b, j] / root
                dk[b, j] += ds * q[b, t] / root
                dv[b, j] += p * do[b, t]
    return dq, dk, dv
