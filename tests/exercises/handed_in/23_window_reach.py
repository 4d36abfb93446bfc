# --- right: layers
def first_seen(T, windows):
    first = list(range(T))
    for window in windows:
        first = [first[max(0, t - window + 1) if window > 0 else 0] for t in range(T)]
    return first


# --- wrong: widest
# first_seen_each: only the widest window counts
def first_seen(T, windows):
    return [0 if 0 in windows else max(0, t + 1 - max(windows)) for t in range(T)]
