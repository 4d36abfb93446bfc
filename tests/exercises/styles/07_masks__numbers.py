def causal_mask(length):
    return np.tril(np.ones((1, 1, length, length))) == 1


def padding_mask(ids, pad=0):
    return np.where(ids == pad, 0.0, 1.0).reshape(len(ids), 1, 1, -1).astype(bool)


def target_mask(ids, pad=0):
    return np.minimum(causal_mask(ids.shape[-1]), padding_mask(ids, pad))
