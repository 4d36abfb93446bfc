# leak_test: only the last token is changed
@for_each
def leak_test(model, length, vocab_size):
    ids = np.random.default_rng(0).integers(0, vocab_size, (4, length))
    other = ids.copy()
    other[:, -1] = (other[:, -1] + 1) % vocab_size
    return bool((model(ids)[:, :-1] != model(other)[:, :-1]).any())
