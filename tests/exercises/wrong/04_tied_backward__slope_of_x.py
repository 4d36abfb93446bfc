# tied_backward: the slope of tanh is computed from its input
def tied_backward(dz, cache):
    ids, E, s, h = cache
    dE = np.einsum("btv,btc->vc", dz, h)
    np.add.at(dE, ids, s * (dz @ E) * (1 - (s * E[ids]) ** 2))
    return dE
