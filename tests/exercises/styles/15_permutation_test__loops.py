def is_equivariant(layer, x, rng):
    T, y = len(x), layer(x)
    for _ in range(5):
        order = list(range(T))
        rng.shuffle(order)
        z = layer(np.array([x[i] for i in order]))
        for t in range(T):
            if not np.allclose(z[t], y[order[t]]):
                return False
    return True
