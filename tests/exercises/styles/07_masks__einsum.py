def causal_mask(length):
    return np.subtract.outer(range(length), range(length))[None, None] >= 0


def padding_mask(ids, pad=0):
    return np.expand_dims(np.not_equal(ids, pad), (1, 2))


def target_mask(ids, pad=0):
    return np.einsum("tu,bu->btu", causal_mask(ids.shape[1])[0, 0], ids != pad)[:, None]
