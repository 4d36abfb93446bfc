def attention_backward(do, cache):
    q, k, v, p = cache
    dv = p.swapaxes(-1, -2) @ do  # (B, S, width)
    dp = do @ v.swapaxes(-1, -2)  # (B, T, S)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
    dq = ds @ k  # (B, T, D)
    dk = ds.swapaxes(-1, -2) @ q  # (B, S, D)
    return dq, dk, dv
