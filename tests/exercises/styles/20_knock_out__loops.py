def without_key(s, v, j):
    others = [i for i in range(len(v)) if i != j]
    o = np.zeros((len(s), v.shape[1]), dtype=s.dtype)
    for t in range(len(s)):
        e = np.exp(s[t, others] - s[t, others].max())
        for i, share in zip(others, e / e.sum()):
            o[t] += share * v[i]
    return o


def without_head(o, W_o, gone):
    B, H, T, D = o.shape
    y = np.zeros((2, B, T, W_o.shape[1]), dtype=o.dtype)
    mean = sum(o[b, gone, t] for b in range(B) for t in range(T)) / (B * T)
    for b in range(B):
        for t in range(T):
            for i in range(H):
                rows = W_o[i * D : (i + 1) * D]
                y[0, b, t] += 0 if i == gone else o[b, i, t] @ rows
                y[1, b, t] += (mean if i == gone else o[b, i, t]) @ rows
    return y[0], y[1]
