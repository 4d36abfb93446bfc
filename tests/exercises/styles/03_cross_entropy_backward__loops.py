def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    V = p.shape[1]
    M = sum(target != pad for target in targets)
    dz = np.zeros_like(p)
    for n, target in enumerate(targets):
        if target == pad:
            continue
        for v in range(V):
            q = eps / V + (1 - eps if v == target else 0)
            dz[n, v] = dloss * (p[n, v] - q) / M
    return dz
