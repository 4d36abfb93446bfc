def embed_backward(dx, cache):
    ids, V, s = cache
    order = np.argsort(ids, axis=None, kind="stable")
    total = np.vstack([np.zeros((1, dx.shape[2])), s * np.cumsum(dx.reshape(-1, dx.shape[2])[order], axis=0)])
    ends = np.searchsorted(ids.ravel()[order], np.arange(V + 1))
    return total[ends[1:]] - total[ends[:-1]]
