# count_directions: all equations are taken for independent, but never more than there are weights
# another_map: it walks until the last weight that falls is 0, so others are negative
def count_directions(v):
    S, D = v.shape
    return max(S - D - 1, 0)


def another_map(p, v, wish):
    basis, _ = np.linalg.qr(np.column_stack([np.ones(len(p)), v]))
    way = wish - basis @ (basis.T @ wish)
    return p + way * max(-x / d for x, d in zip(p, way, strict=True) if d < 0)
