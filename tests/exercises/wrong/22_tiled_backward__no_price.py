# tiled_backward: the average of dp is forgotten: the sum in the denominator is treated as a constant
def tile_backward(do, q, k, v, o, log_total):
    root = math.sqrt(q.shape[-1])
    p = np.exp(np.einsum("btd,bsd->bts", q, k) / root - log_total)
    ds = p * np.einsum("btw,bsw->bts", do, v) / root
    return np.einsum("bts,bsd->btd", ds, k), np.einsum("bts,btd->bsd", ds, q), np.einsum("bts,btw->bsw", p, do)
