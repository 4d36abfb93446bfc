# verdicts: it asks whether the output stays as it is, which is invariance
def is_equivariant(layer, x, rng):
    order = rng.permutation(len(x))
    return bool(np.allclose(layer(x[order]), layer(x)))
