def embed_backward(dx, cache):
    ids, V, s = cache
    B, T, C = dx.shape
    dE = np.zeros((V, C))
    for b in range(B):
        for t in range(T):
            dE[ids[b, t]] += s * dx[b, t]
    return dE
