# split_heads: the features are dealt out to the heads in turn, like cards
# split_heads_backward: the features are dealt out to the heads in turn, like cards
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, C // H, H).transpose(0, 3, 1, 2)


def split_heads_backward(dheads):
    B, H, T, D = dheads.shape
    return dheads.transpose(0, 2, 3, 1).reshape(B, T, H * D)
