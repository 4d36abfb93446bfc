def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    V = p.shape[-1]
    dz = p - (1 - eps) * np.eye(V)[targets] - eps / V
    dz[targets == pad] = 0
    return dz * (dloss / np.count_nonzero(targets != pad))
