def split_heads(x, H):
    return np.stack(np.split(x, H, axis=-1), axis=1)


def merge_heads(heads):
    return np.concatenate(list(np.moveaxis(heads, 1, 0)), axis=-1)


def split_heads_backward(dheads):
    _, H, _, D = dheads.shape
    place = np.eye(H * D).reshape(H, D, H * D)  # feature d of head h stands in column c
    return np.einsum("bhtd,hdc->btc", dheads, place)


def merge_heads_backward(dx, H):
    C = dx.shape[-1]
    place = np.eye(C).reshape(H, C // H, C)
    return np.einsum("btc,hdc->bhtd", dx, place)
