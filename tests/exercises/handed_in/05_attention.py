# --- wrong: one_maximum_for_all
# attention: each row of p sums to 1
def attention(q, k, v):
    s = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    e = np.exp(s - s.max())
    p = e / (e.sum(axis=-1, keepdims=True) + 1e-300)
    return p @ v, p


# --- wrong: root_of_six
# attention: does it take D = 6 for granted?
def attention(q, k, v):
    s = np.einsum("btd,bsd->bts", q, k) / math.sqrt(6)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p @ v, p


# --- wrong: sequence_by_sequence_of_two
# attention: o has shape (2, 4, 7) but should have (3, 4, 7) = (B, T, width)
def attention(q, k, v):
    y, p = [], []
    for b in range(2):
        s = q[b] @ k[b].T / math.sqrt(q.shape[2])
        e = np.exp(s - s.max(axis=1, keepdims=True))
        p.append(e / e.sum(axis=1, keepdims=True))
        y.append(p[-1] @ v[b])
    return np.stack(y), np.stack(p)


# --- wrong: single_precision_inside
# attention: Is there a float32 on the way
def attention(q, k, v):
    s = (q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])).astype(np.float32)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return (p @ v).astype(np.float64), p.astype(np.float64)
