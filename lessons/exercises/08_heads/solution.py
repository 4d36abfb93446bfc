def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H).transpose(0, 2, 1, 3)


def merge_heads(heads):
    B, H, T, D = heads.shape
    return heads.transpose(0, 2, 1, 3).reshape(B, T, H * D)


def split_heads_backward(dheads):
    return merge_heads(dheads)


def merge_heads_backward(dx, H):
    return split_heads(dx, H)
