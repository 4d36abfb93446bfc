# embed_backward: the gradients of a token's uses are averaged
def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    np.add.at(dE, ids, s * dx)
    return dE / np.maximum(np.bincount(ids.ravel(), minlength=V), 1)[:, None]
