# --- right: layers
def first_seen(T, windows):
    first = list(range(T))
    for window in windows:
        first = [first[max(0, t - window + 1) if window > 0 else 0] for t in range(T)]
    return first


# --- wrong: sum_of_windows
# first_seen_each: a token is not counted in its own window
def first_seen(T, windows):
    reach = T if min(windows) == 0 else sum(windows)
    return [t - min(t, reach) for t in range(T)]


# --- wrong: widest
# first_seen_each: only the widest window counts
def first_seen(T, windows):
    return [0 if 0 in windows else max(0, t + 1 - max(windows)) for t in range(T)]
