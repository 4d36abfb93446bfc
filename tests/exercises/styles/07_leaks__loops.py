@for_each
def leak_test(model, length, vocab_size):
    rng = np.random.default_rng()
    for _ in range(3):
        for t in range(length - 1):  # everything after t, drawn again
            ids = rng.integers(vocab_size, size=(2, length))
            other = ids.copy()
            for b in range(2):
                for s in range(t + 1, length):
                    other[b, s] = (ids[b, s] + rng.integers(1, vocab_size)) % vocab_size
            a, b = model(ids), model(other)
            if max(abs(a[i, t, c] - b[i, t, c]) for i in range(2) for c in range(vocab_size)) > 0:
                return True
    return False
