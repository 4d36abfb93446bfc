# --- right: batch
@for_each
def leak_test(model, length, vocab_size):
    ids = np.random.default_rng(1).integers(vocab_size, size=length)
    batch = np.tile(ids, (length, 1))  # sequence s differs at position s
    batch[np.arange(length), np.arange(length)] = vocab_size - 1 - ids + (2 * ids == vocab_size - 1)
    moved = np.abs(model(batch) - model(ids[None])).max(axis=-1) > 1e-14  # [s, t]
    return np.triu(moved.T, 1).any()
