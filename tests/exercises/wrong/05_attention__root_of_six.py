# attention: does it take D = 6 for granted?
def attention(q, k, v):
    s = np.einsum("btd,bsd->bts", q, k) / math.sqrt(6)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p @ v, p
