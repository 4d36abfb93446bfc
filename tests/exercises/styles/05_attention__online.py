def attention(q, k, v):
    """One key after the other, as flash attention does."""
    y, largest, total, scores = 0.0, -np.inf, 0.0, []
    for j in range(k.shape[1]):
        s = np.sum(q * k[:, j, None], axis=-1, keepdims=True) / q.shape[-1] ** 0.5
        new = np.maximum(largest, s)
        old, now = np.exp(largest - new), np.exp(s - new)
        y, total, largest = y * old + now * v[:, j, None], total * old + now, new
        scores.append(s)
    return y / total, np.exp(np.concatenate(scores, axis=-1) - largest) / total
