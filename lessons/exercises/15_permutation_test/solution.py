def is_equivariant(layer, x, rng):
    order = rng.permutation(len(x))
    difference = layer(x[order]) - layer(x)[order]
    return np.abs(difference).max() < 1e-9
