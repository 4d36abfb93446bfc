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


# --- wrong: always_S_minus_D_minus_1
# count_directions: all equations are taken for independent, but never more than there are weights
# another_map: it walks until the last weight that falls is 0, so others are negative
def count_directions(v):
    S, D = v.shape
    return max(S - D - 1, 0)


def another_map(p, v, wish):
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(p)), v]))
    way = wish - basis @ (basis.T @ wish)
    return p + way * max(-x / d for x, d in zip(p, way, strict=True) if d < 0)


# --- wrong: clipped
# another_map: negative weights are cut off
def another_map(p, v, wish):
    both = np.hstack([v, np.ones((len(v), 1))])
    return np.clip(p + wish - both @ np.linalg.pinv(both) @ wish, 0, None)


# --- wrong: orthogonal_to_values
# count_directions: the equation of the sum is forgotten
# another_map: the sum of the weights changes, because the ones are missing
def count_directions(v):
    return len(v) - int(np.sum(np.linalg.svd(v)[1] > 1e-9))


def another_map(p, v, wish):
    delta = wish - v @ np.linalg.pinv(v) @ wish
    return p + min(-weight / change for weight, change in zip(p, delta) if change < 0) * delta
