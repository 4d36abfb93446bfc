# --- right: fancy_index
def split_heads(x, H):
    C = x.shape[-1]
    return np.moveaxis(x[..., np.arange(C).reshape(H, -1)], 2, 1)


def merge_heads(heads):
    return np.concatenate(list(np.moveaxis(heads, 1, 0)), axis=-1)


split_heads_backward = merge_heads
merge_heads_backward = split_heads
