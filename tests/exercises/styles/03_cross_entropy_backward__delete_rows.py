def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    dz = np.zeros_like(p)
    (real,) = np.nonzero(targets != pad)
    for n in real:
        for token in range(p.shape[1]):
            q = (token == targets[n]) * (1 - eps) + eps / p.shape[1]
            dz[n, token] = dloss * (p[n, token] - q) / real.size
    return dz
