# --- right: plane
def two_heads(letters, n):
    """Positions on a parabola, letters on a circle: two features in layer 1, three in layer 2."""
    C = letters + n + letters
    s, angles = np.arange(n, dtype=float), 2 * np.pi * np.arange(letters) / letters
    goal, points = np.maximum(s - 1, 0), np.stack([np.cos(angles), np.sin(angles), np.ones(letters)], axis=1)
    W_q, W_k, W_q2, W_k2 = np.zeros((C, 2)), np.zeros((C, 2)), np.zeros((C, 3)), np.zeros((C, 3))
    W_q[letters:-letters] = 50 * np.stack([2 * goal, -np.ones(n)], axis=1)
    W_k[letters:-letters] = np.stack([s, s**2], axis=1)
    W_vo = np.eye(C, k=letters + n)
    W_q2[:letters], W_k2[-letters:] = 300 * points, points
    W_k2[letters] = [0, 0, -5]
    return (W_q, W_k, W_vo), (W_q2, W_k2)
