# --- right: batch
@for_each
def leak_test(model, length, vocab_size):
    ids = np.random.default_rng(1).integers(vocab_size, size=length)
    batch = np.tile(ids, (length, 1))  # sequence s differs at position s
    batch[np.arange(length), np.arange(length)] = vocab_size - 1 - ids + (2 * ids == vocab_size - 1)
    moved = np.abs(model(batch) - model(ids[None])).max(axis=-1) > 1e-14  # [s, t]
    return np.triu(moved.T, 1).any()


# --- wrong: close_enough
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


# --- wrong: last_token_only
# leak_test: only the last token is changed
@for_each
def leak_test(model, length, vocab_size):
    ids = np.random.default_rng(0).integers(0, vocab_size, (4, length))
    other = ids.copy()
    other[:, -1] = (other[:, -1] + 1) % vocab_size
    return bool((model(ids)[:, :-1] != model(other)[:, :-1]).any())
