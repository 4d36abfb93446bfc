# cross_entropy_backward: the id of padding is always taken to be 0
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    dz = p - eps / p.shape[1]
    dz[np.arange(len(p)), targets] -= 1 - eps
    dz[targets == 0] = 0
    return dloss * dz / (targets != 0).sum()
