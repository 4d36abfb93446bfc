def causal_mask(length):
    t, j = np.arange(length)[:, None], np.arange(length)[None, :]
    return (j <= t)[None, None]


def padding_mask(ids, pad=0):
    return (ids != pad)[:, None, None, :]


def target_mask(ids, pad=0):
    return causal_mask(ids.shape[1]) & padding_mask(ids, pad)
