# greedy: rows go on after their eos
def greedy(model, B, max_len):
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len and not done.all():
        token = model(ids)[:, -1].argmax(axis=-1)
        done |= token == EOS
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]
