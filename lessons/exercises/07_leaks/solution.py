@for_each
def leak_test(model, length, vocab_size):
    ids = np.random.default_rng(0).integers(0, vocab_size, (1, length))
    before = model(ids)
    for t in range(1, length):
        changed = ids.copy()
        changed[:, t] = (ids[:, t] + 1) % vocab_size
        if np.any(model(changed)[:, :t] != before[:, :t]):
            return True
    return False
