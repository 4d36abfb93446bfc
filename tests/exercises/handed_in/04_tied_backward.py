# --- right: bincount
def tied_backward(dz, cache):
    ids, E, s, h = cache
    dx = (dz @ E) * (1 + h) * (1 - h) * s
    columns = [np.bincount(ids.ravel(), dx[..., c].ravel(), len(E)) for c in range(E.shape[1])]
    return np.stack(columns, axis=1) + np.tensordot(dz, h, ((0, 1), (0, 1)))


# --- wrong: lookup_overwrites
# tied_backward: a token that comes more than once gets only its last gradient
def tied_backward(dz, cache):
    ids, E, s, h = cache
    dE = np.einsum("btv,btc->vc", dz, h)
    dE[ids] = dE[ids] + s * (dz @ E) * (1 - h * h)
    return dE


# --- wrong: slope_of_x
# tied_backward: the slope of tanh is computed from its input
def tied_backward(dz, cache):
    ids, E, s, h = cache
    dE = np.einsum("btv,btc->vc", dz, h)
    np.add.at(dE, ids, s * (dz @ E) * (1 - (s * E[ids]) ** 2))
    return dE
