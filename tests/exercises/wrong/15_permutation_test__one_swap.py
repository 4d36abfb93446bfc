# verdicts: only two tokens change places
def is_equivariant(layer, x, rng):
    order = np.arange(len(x))
    order[:2] = 1, 0
    return bool(np.allclose(layer(x[order]), layer(x)[order]))
