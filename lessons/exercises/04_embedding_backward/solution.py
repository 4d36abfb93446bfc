def embed_backward(dx, cache):
    ids, V, scale = cache
    dE = np.zeros((V, dx.shape[-1]), dx.dtype)
    np.add.at(dE, ids, scale * dx)
    return dE
