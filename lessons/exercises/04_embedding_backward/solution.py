def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]), dx.dtype)
    np.add.at(dE, ids, s * dx)
    return dE
