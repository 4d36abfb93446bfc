def costs(z, targets):
    found = []
    for gone in range(len(z)):
        others = np.zeros_like(z[0])
        for i in range(len(z)):
            if i != gone:
                others = others + z[i]
        found.append(losses(others, targets).mean() - losses(sum(z), targets).mean())
    return np.stack(found)


def ranking(cost):
    left, order = list(range(len(cost))), []
    while left:
        best = max(left, key=lambda i: cost[i])
        order.append(left.pop(left.index(best)))
    return order


def slopes(z, targets):
    found = np.zeros(len(z), dtype=z.dtype)
    for n, target in enumerate(targets):
        e = np.exp(z[:, n].sum(axis=0))
        for i in range(len(z)):
            found[i] += abs(e @ z[i, n] / e.sum() - z[i, n, target]) / len(targets)
    return found
