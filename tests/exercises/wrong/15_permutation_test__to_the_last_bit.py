# verdicts: it asks for equality to the last digit
def is_equivariant(layer, x, rng):
    order = rng.permutation(len(x))
    return bool((layer(x[order]) == layer(x)[order]).all())
