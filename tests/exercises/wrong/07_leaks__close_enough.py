# leak_test: the tolerance is so large that a small leak is missed
@for_each
def leak_test(model, length, vocab_size):
    rng = np.random.default_rng(0)
    for t in range(1, length):
        ids = rng.integers(0, vocab_size, (8, length))
        other = ids.copy()
        other[:, t:] = rng.integers(0, vocab_size, (8, length - t))
        if not np.allclose(model(ids)[:, :t], model(other)[:, :t]):
            return True
    return False
