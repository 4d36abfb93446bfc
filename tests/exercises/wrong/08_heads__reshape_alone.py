# split_heads: heads are split and merged by a reshape alone
# merge_heads: heads are split and merged by a reshape alone
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


def merge_heads(heads):
    B, H, T, D = heads.shape
    return heads.reshape(B, T, H * D)
