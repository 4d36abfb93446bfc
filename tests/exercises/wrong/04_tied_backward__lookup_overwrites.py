# tied_backward: a token that comes more than once gets only its last gradient
def tied_backward(dz, cache):
    ids, E, s, h = cache
    dE = np.einsum("btv,btc->vc", dz, h)
    dE[ids] = dE[ids] + s * (dz @ E) * (1 - h * h)
    return dE
