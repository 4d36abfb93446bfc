def shift_head(letters, T):
    looks_for = np.eye(T, k=-1)
    looks_for[0, 0] = 1.0
    nothing = np.zeros((letters, T))
    return np.vstack([nothing, 20 * math.sqrt(T) * looks_for]), np.vstack([nothing, np.eye(T)])
