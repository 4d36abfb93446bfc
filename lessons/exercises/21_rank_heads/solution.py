def costs(z, targets):
    whole = losses(z.sum(axis=0), targets).mean()
    return np.array([losses(z.sum(axis=0) - head, targets).mean() - whole for head in z])


def ranking(cost):
    return np.argsort(-cost)


def slopes(z, targets):
    everything = z.sum(axis=0)
    p = np.exp(everything - everything.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    p[np.arange(len(p)), targets] -= 1
    each = (z * p).sum(axis=-1)
    return np.abs(each).mean(axis=1)
