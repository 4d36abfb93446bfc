@for_each
def leak_test(model, length, vocab_size):
    rng = np.random.default_rng(7)
    ids = rng.integers(vocab_size, size=(64, length))

    def leaks_before(t):
        if t == 0:
            return False
        other = ids.copy()
        other[:, t:] = rng.integers(vocab_size, size=(64, length - t))
        return np.any(model(other)[:, :t] != model(ids)[:, :t]) or leaks_before(t - 1)

    return bool(leaks_before(length - 1))
