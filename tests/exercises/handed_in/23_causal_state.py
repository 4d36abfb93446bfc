# --- right: parallel
def causal_states(k, v):
    seen = np.tri(k.shape[1], dtype=k.dtype)
    return np.einsum("tj,bjd,bje->btde", seen, k, v)


def attend_backward(do, cache):
    q, k, v = cache
    scores, dscores = np.tril(q @ k.swapaxes(1, 2)), np.tril(do @ v.swapaxes(1, 2))
    return dscores @ k, dscores.swapaxes(1, 2) @ q, scores.swapaxes(1, 2) @ do


# --- wrong: everybody_hears_all
# causal_states: every token gets the state after the last one
# attend_backward: dk and dv hear from all queries
def causal_states(k, v):
    return np.repeat(np.einsum("btd,bte->bde", k, v)[:, None], k.shape[1], axis=1)


def attend_backward(do, cache):
    q, k, v = cache
    seen = np.tri(q.shape[1], dtype=q.dtype)
    dq = (seen * (do @ v.swapaxes(1, 2))) @ k
    return dq, (v @ do.swapaxes(1, 2)) @ q, (k @ q.swapaxes(1, 2)) @ do


# --- wrong: not_yet
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
