@for_each
def leak_test(model, length, vocab_size):
    ids = np.random.default_rng(0).integers(0, vocab_size, (1, length))
    before = model(ids)
    for s in range(1, length):
        changed = ids.copy()
        changed[:, s] = (ids[:, s] + 1) % vocab_size
        if np.any(model(changed)[:, :s] != before[:, :s]):
            return True
    return False
