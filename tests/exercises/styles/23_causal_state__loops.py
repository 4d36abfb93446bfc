def causal_states(k, v):
    states = np.zeros((*k.shape, v.shape[-1]), dtype=k.dtype)
    for b in range(len(k)):
        state = np.zeros((k.shape[2], v.shape[2]))
        for t in range(k.shape[1]):
            state = state + np.outer(k[b, t], v[b, t])
            states[b, t] = state
    return states


def attend_backward(do, cache):
    q, k, v = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for b, t, j in np.ndindex(len(q), q.shape[1], q.shape[1]):
        if j <= t:
            dq[b, t] += do[b, t] @ v[b, j] * k[b, j]
            dk[b, j] += do[b, t] @ v[b, j] * q[b, t]
            dv[b, j] += q[b, t] @ k[b, j] * do[b, t]
    return dq, dk, dv
