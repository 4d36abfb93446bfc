# target_mask: a look is allowed if either mask allows it
def target_mask(ids, pad=0):
    T = ids.shape[1]
    return np.tri(T, dtype=bool)[None, None] | (ids != pad)[:, None, None, :]
