def reverse_head(letters, n):
    angle = 2 * np.pi * np.arange(n) / n
    points = 1000 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.pad(points[::-1], ((letters, 0), (0, 0))), np.pad(points, ((letters, 0), (0, 0)))
