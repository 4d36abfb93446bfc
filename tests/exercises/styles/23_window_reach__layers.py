def first_seen(T, windows):
    first = list(range(T))
    for window in windows:
        first = [first[max(0, t - window + 1) if window > 0 else 0] for t in range(T)]
    return first
