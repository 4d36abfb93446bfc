def tied_backward(dz, cache):
    ids, E, s, h = cache
    dE = np.zeros_like(E)
    for b, t in np.ndindex(*ids.shape):
        for c in range(E.shape[1]):
            dh = 0.0
            for v in range(len(E)):
                dE[v, c] += dz[b, t, v] * h[b, t, c]
                dh += dz[b, t, v] * E[v, c]
            dE[ids[b, t], c] += s * dh * (1 - h[b, t, c] ** 2)
    return dE
