# split_heads: the reshape is there and the transpose is not
# merge_heads: the reshape is there and the transpose is not
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def merge_heads(heads):
    B, H, T, D = heads.shape
    return heads.reshape(B, T, H * D)
