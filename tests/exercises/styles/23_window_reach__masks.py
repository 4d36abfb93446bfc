def first_seen(T, windows):
    places = np.arange(T)
    seen = np.eye(T, dtype=bool)
    for window in windows:
        back = places[:, None] - places[None, :]
        allowed = (back >= 0) & (back < window if window else True)
        seen = (allowed[:, :, None] & seen[None, :, :]).any(axis=1)
    return seen.argmax(axis=1)
