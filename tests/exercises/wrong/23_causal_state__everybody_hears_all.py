# causal_states: every token gets the state after the last one
# attend_backward: dk and dv hear from all queries
def causal_states(k, v):
    return np.repeat(np.einsum("btd,bte->bde", k, v)[:, None], k.shape[1], axis=1)


def attend_backward(do, cache):
    q, k, v = cache
    seen = np.tri(q.shape[1], dtype=q.dtype)
    dq = (seen * (do @ v.swapaxes(1, 2))) @ k
    return dq, (v @ do.swapaxes(1, 2)) @ q, (k @ q.swapaxes(1, 2)) @ do
