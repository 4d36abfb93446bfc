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
