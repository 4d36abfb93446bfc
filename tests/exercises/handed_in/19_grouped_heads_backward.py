# --- right: long_rows
def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    rows = [array.reshape(*k.shape[:2], -1, array.shape[-1]) for array in (q, do, p)]  # a group's queries as one head
    long_q, long_do, long_p = rows
    dp = long_do @ v.swapaxes(2, 3)
    ds = long_p * (dp - np.sum(long_p * dp, axis=3, keepdims=True)) * q.shape[-1] ** -0.5
    return [(ds @ k).reshape(q.shape), ds.swapaxes(2, 3) @ long_q, long_p.swapaxes(2, 3) @ long_do]


# --- wrong: last_of_the_group
# grouped_attention_backward: each head of a group writes over the share of the one before
def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for h in range(q.shape[1]):
        g = h * k.shape[1] // q.shape[1]
        dp = do[:, h] @ v[:, g].swapaxes(1, 2)
        ds = p[:, h] * (dp - (dp * p[:, h]).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
        dq[:, h] = ds @ k[:, g]
        dk[:, g] = ds.swapaxes(1, 2) @ q[:, h]
        dv[:, g] = p[:, h].swapaxes(1, 2) @ do[:, h]
    return dq, dk, dv


# --- wrong: mean_of_copies
# grouped_attention_backward: dk and dv are averaged over the group
def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    group = q.shape[1] // k.shape[1]
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for h in range(q.shape[1]):
        g = h // group
        dp = np.einsum("btw,bsw->bts", do[:, h], v[:, g])
        ds = p[:, h] * (dp - np.einsum("bts,bts->bt", dp, p[:, h])[..., None]) / math.sqrt(q.shape[-1])
        dq[:, h] = ds @ k[:, g]
        dk[:, g] += np.einsum("bts,btd->bsd", ds, q[:, h]) / group
        dv[:, g] += np.einsum("bts,btw->bsw", p[:, h], do[:, h]) / group
    return dq, dk, dv
