def reverse_head(letters, n):
    """Keys (s, s²) and queries (2m, -1) c: the score c (m² - (s - m)²) is largest at s = m."""
    s = np.arange(n, dtype=float)
    m = n - 1 - s
    W_k, W_q = np.stack([s, s**2], axis=1), 10 * np.stack([2 * m, -np.ones(n)], axis=1)
    return np.pad(W_q, ((letters, 0), (0, 0))), np.pad(W_k, ((letters, 0), (0, 0)))
