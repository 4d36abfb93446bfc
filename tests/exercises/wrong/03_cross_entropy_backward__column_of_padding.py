# cross_entropy_backward: the column of the padding token is set to 0, not the rows of padding
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    dz = p - (1 - eps) * np.eye(V)[targets] - eps / V
    dz[:, pad] = 0
    return dloss * dz / (targets != pad).sum()
