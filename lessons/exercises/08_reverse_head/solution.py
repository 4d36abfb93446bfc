def reverse_head(letters, T):
    angles = 2 * math.pi * np.arange(T) / T
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)  # T points of a circle
    nothing = np.zeros((letters, 2))
    return np.vstack([nothing, 200 * keys[::-1]]), np.vstack([nothing, keys])
