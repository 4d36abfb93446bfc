def causal_mask(length):
    return np.array([[[[s <= t for s in range(length)] for t in range(length)]]])


def padding_mask(ids, pad=0):
    return np.array([[[[token != pad for token in row]]] for row in ids])


def target_mask(ids, pad=0):
    B, T = ids.shape
    mask = np.zeros((B, 1, T, T), bool)
    for b in range(B):
        for t in range(T):
            for s in range(t + 1):
                mask[b, 0, t, s] = ids[b, s] != pad
    return mask
