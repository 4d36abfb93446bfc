# --- right: einsum
def is_equivariant(layer, x, rng):
    P = np.eye(len(x))[rng.permutation(len(x))]  # one 1 in each row
    back = np.einsum("ts,tc->sc", P, layer(np.einsum("ts,sc->tc", P, x)))
    return bool(np.linalg.norm(back - layer(x)) <= 1e-6 * np.linalg.norm(x))


# --- wrong: to_the_last_bit
# verdicts: it asks for equality to the last digit
def is_equivariant(layer, x, rng):
    order = rng.permutation(len(x))
    return bool((layer(x[order]) == layer(x)[order]).all())
