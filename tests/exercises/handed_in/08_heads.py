# --- right: fancy_index
def split_heads(x, H):
    C = x.shape[-1]
    return np.moveaxis(x[..., np.arange(C).reshape(H, -1)], 2, 1)


def merge_heads(heads):
    return np.concatenate(list(np.moveaxis(heads, 1, 0)), axis=-1)


split_heads_backward = merge_heads
merge_heads_backward = split_heads


# --- wrong: interleaved
# split_heads: the features are dealt out to the heads in turn, like cards
# split_heads_backward: the features are dealt out to the heads in turn, like cards
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, C // H, H).transpose(0, 3, 1, 2)


def split_heads_backward(dheads):
    B, H, T, D = dheads.shape
    return dheads.transpose(0, 2, 3, 1).reshape(B, T, H * D)
