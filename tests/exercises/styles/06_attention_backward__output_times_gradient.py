def attention_backward(do, cache):
    q, k, v, p = cache
    delta = (do * (p @ v)).sum(axis=-1, keepdims=True)
    ds = np.einsum("bts,bts->bts", p, do @ v.transpose(0, 2, 1) - delta)
    q, k = q * q.shape[-1] ** -0.5, k * k.shape[-1] ** -0.5
    return ds @ k, (q.transpose(0, 2, 1) @ ds).transpose(0, 2, 1), (do.transpose(0, 2, 1) @ p).transpose(0, 2, 1)
