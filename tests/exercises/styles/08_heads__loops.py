def split_heads(x, H):
    B, T, C = x.shape
    D = C // H
    heads = np.zeros((B, H, T, D))
    for b in range(B):
        for t in range(T):
            for c in range(C):
                heads[b, c // D, t, c % D] = x[b, t, c]
    return heads


def merge_heads(heads):
    B, H, T, D = heads.shape
    return [[[heads[b, c // D, t, c % D] for c in range(H * D)] for t in range(T)] for b in range(B)]


def split_heads_backward(dheads):
    B, H, T, D = dheads.shape
    dx = np.zeros((B, T, H * D))
    for h in range(H):
        for d in range(D):
            dx[:, :, h * D + d] += dheads[:, h, :, d]
    return dx


def merge_heads_backward(dx, H):
    B, T, C = dx.shape
    D = C // H
    dheads = np.zeros((B, H, T, D))
    for h in range(H):
        for d in range(D):
            dheads[:, h, :, d] += dx[:, :, h * D + d]
    return dheads
