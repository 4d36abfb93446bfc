def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    G = k.shape[1]
    q, do, p = (array.reshape(len(array), G, -1, *array.shape[2:]) for array in (q, do, p))
    dp = np.einsum("bghte,bgse->bghts", do, v)
    ds = p * (dp - np.einsum("bghts,bghts->bght", p, dp)[..., None]) / math.sqrt(q.shape[-1])
    dq = np.einsum("bghts,bgsd->bghtd", ds, k)
    dk, dv = np.einsum("bghts,bghtd->bgsd", ds, q), np.einsum("bghts,bghte->bgse", p, do)
    return dq.reshape(len(dq), -1, *dq.shape[3:]), dk, dv
