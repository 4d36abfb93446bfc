# --- right: bincount
def tied_backward(dz, cache):
    ids, E, s, h = cache
    dx = (dz @ E) * (1 + h) * (1 - h) * s
    columns = [np.bincount(ids.ravel(), dx[..., c].ravel(), len(E)) for c in range(E.shape[1])]
    return np.stack(columns, axis=1) + np.tensordot(dz, h, ((0, 1), (0, 1)))
