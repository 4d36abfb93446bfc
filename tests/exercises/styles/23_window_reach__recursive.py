def first_seen(T, windows):
    def earliest(t, layers):
        if not layers or t == 0:
            return t
        *below, window = layers
        return earliest(0 if window == 0 else max(t - (window - 1), 0), below)

    return np.array([earliest(t, windows) for t in range(T)])
