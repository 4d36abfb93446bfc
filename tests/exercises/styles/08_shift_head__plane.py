def shift_head(letters, n):
    """Two features: points of a parabola, and the directions in which they are farthest."""
    s = np.concatenate([np.zeros(letters), np.arange(n)])
    seen = np.arange(letters + n) >= letters
    goal = np.maximum(s - 1, 0)
    return 50 * np.stack([2 * goal, -np.ones_like(s)], axis=1) * seen[:, None], np.stack([s, s * s], axis=1)
