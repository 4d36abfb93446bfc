def noticed(v):
    """What o and the sum notice: (S, D + 1)."""
    return np.column_stack([v, np.ones(len(v))])


def count_directions(v):
    return len(v) - np.linalg.matrix_rank(noticed(v))


def another_map(p, v, wish):
    both = noticed(v)
    delta = wish - both @ np.linalg.lstsq(both, wish, rcond=None)[0]
    falling = delta < 0
    way = np.min(p[falling] / -delta[falling])
    return p + way * delta
