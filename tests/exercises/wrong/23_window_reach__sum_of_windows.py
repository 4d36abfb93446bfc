# first_seen_each: a token is not counted in its own window
def first_seen(T, windows):
    reach = T if min(windows) == 0 else sum(windows)
    return [t - min(t, reach) for t in range(T)]
