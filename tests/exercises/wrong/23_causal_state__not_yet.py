# causal_states: the current token is left out of its state
# attend_backward: the gradient of the states is summed forward
def causal_states(k, v):
    B, T, D = k.shape
    states = np.zeros((B, T, D, v.shape[-1]), k.dtype)
    for t in range(1, T):
        states[:, t] = states[:, t - 1] + k[:, t - 1, :, None] * v[:, t - 1, None, :]
    return states


def attend_backward(do, cache):
    q, k, v = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for t in range(q.shape[1]):
        for j in range(t + 1):
            dq[:, t] += (do[:, t] * v[:, j]).sum(-1, keepdims=True) * k[:, j]
            dk[:, t] += (do[:, j] * v[:, t]).sum(-1, keepdims=True) * q[:, j]
            dv[:, t] += (q[:, j] * k[:, t]).sum(-1, keepdims=True) * do[:, j]
    return dq, dk, dv
