# count_directions: the equation of the sum is forgotten
# another_map: the sum of the weights changes, because the ones are missing
def count_directions(v):
    return len(v) - int(np.sum(np.linalg.svd(v)[1] > 1e-9))


def another_map(p, v, wish):
    delta = wish - v @ np.linalg.pinv(v) @ wish
    return p + min(-weight / change for weight, change in zip(p, delta) if change < 0) * delta
