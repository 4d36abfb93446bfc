def attention(q, k, v):
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, T, S)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p @ v, p
