def first_seen(T, windows):
    reach = sum(window - 1 for window in windows)
    if 0 in windows:
        reach = T
    return np.maximum(np.arange(T) - reach, 0)
