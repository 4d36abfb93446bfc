# attention: each row of p sums to 1
def attention(q, k, v):
    s = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    e = np.exp(s - s.max())
    p = e / (e.sum(axis=-1, keepdims=True) + 1e-300)
    return p @ v, p
