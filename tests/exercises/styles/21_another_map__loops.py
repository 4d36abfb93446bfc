def gram_schmidt(v):
    kept = []
    for column in [np.ones(len(v)), *v.T]:
        left = column.astype(float)
        for _ in range(2):
            for other in kept:
                left = left - (left @ other) * other
        if np.sqrt(left @ left) > 1e-9 * np.sqrt(column @ column):
            kept.append(left / np.sqrt(left @ left))
    return kept


def count_directions(v):
    return np.int64(len(v) - len(gram_schmidt(v)))


def another_map(p, v, wish):
    delta = wish.copy()
    for _ in range(2):
        for other in gram_schmidt(v):
            delta = delta - (delta @ other) * other
    way = float("inf")
    for weight, change in zip(p, delta):
        if change < 0:
            way = min(way, weight / -change)
    return [weight + way * change for weight, change in zip(p, delta)]
