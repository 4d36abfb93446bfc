# --- right: svd
def basis(v):
    rows, lengths, _ = np.linalg.svd(np.hstack([v, np.ones((len(v), 1))]))
    return rows[:, (lengths > 1e-9 * lengths[0]).sum() :]


def count_directions(v):
    return basis(v).shape[1]


def another_map(p, v, wish):
    free = basis(v)
    delta = free @ (free.T @ wish)
    with np.errstate(divide="ignore"):
        ways = np.where(delta < 0, -p / delta, np.inf)
    return p + ways.min() * delta


# --- wrong: clipped
# another_map: negative weights are cut off
def another_map(p, v, wish):
    both = np.hstack([v, np.ones((len(v), 1))])
    return np.clip(p + wish - both @ np.linalg.pinv(both) @ wish, 0, None)
