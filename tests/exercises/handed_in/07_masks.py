# --- right: einsum
def causal_mask(length):
    return np.subtract.outer(range(length), range(length))[None, None] >= 0


def padding_mask(ids, pad=0):
    return np.expand_dims(np.not_equal(ids, pad), (1, 2))


def target_mask(ids, pad=0):
    return np.einsum("tu,bu->btu", causal_mask(ids.shape[1])[0, 0], ids != pad)[:, None]


# --- wrong: ones_and_zeros
# causal_mask: mask has the dtype float64, but should hold booleans
# padding_mask: mask has the dtype int64, but should hold booleans
# target_mask: mask is a list, but should be an array of booleans
def causal_mask(length):
    return np.tril(np.ones((1, 1, length, length)))


def padding_mask(ids, pad=0):
    return (ids != pad).astype(int)[:, None, None, :]


def target_mask(ids, pad=0):
    return (causal_mask(ids.shape[1]) * padding_mask(ids, pad)).tolist()
