# attention: Is there a float32 on the way
def attention(q, k, v):
    s = (q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])).astype(np.float32)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return (p @ v).astype(np.float64), p.astype(np.float64)
