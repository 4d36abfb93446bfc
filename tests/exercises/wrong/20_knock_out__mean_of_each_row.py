# without_head: each sequence has a mean of its own
def without_head(o, W_o, gone):
    B, H, T, D = o.shape
    kept = np.arange(H) != gone
    zero = o * kept[:, None, None]
    usual = o.mean(axis=2, keepdims=True) * ~kept[:, None, None]
    parts = [x.swapaxes(1, 2).reshape(B, T, H * D) @ W_o for x in (zero, zero + usual)]
    return parts[0], parts[1]
