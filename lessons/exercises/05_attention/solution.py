def attention(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, T, S)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    return p @ v, p
