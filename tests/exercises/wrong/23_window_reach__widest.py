# first_seen_each: only the widest window counts
def first_seen(T, windows):
    return [0 if 0 in windows else max(0, t + 1 - max(windows)) for t in range(T)]
