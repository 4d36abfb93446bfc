def embed_backward(dx, cache):
    ids, V, s = cache
    return s * np.einsum("btv,btc->vc", np.eye(V)[ids], dx)
