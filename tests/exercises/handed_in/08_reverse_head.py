# --- right: circle
def reverse_head(letters, n):
    angle = 2 * np.pi * np.arange(n) / n
    points = 1000 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.pad(points[::-1], ((letters, 0), (0, 0))), np.pad(points, ((letters, 0), (0, 0)))


# --- wrong: on_a_line
# reverse_head: the positions' keys do not all lie on one line
def reverse_head(letters, n):
    position = np.arange(n) - (n - 1) / 2
    points = np.stack([position, np.ones(n)], axis=1)
    W_k = np.vstack([np.zeros((letters, 2)), points])
    W_q = np.vstack([np.zeros((letters, 2)), 100 * points[::-1]])
    return W_q, W_k
