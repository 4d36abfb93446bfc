def tied_backward(dz, cache):
    ids, E, s, h = cache
    one_hot = np.eye(len(E))[ids]  # (B, T, V)
    dx = s * np.einsum("btv,vc->btc", dz, E) * (1 - h * h)
    return np.einsum("btv,btc->vc", dz, h) + np.einsum("btv,btc->vc", one_hot, dx)
