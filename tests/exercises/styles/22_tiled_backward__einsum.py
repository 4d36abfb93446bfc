def tile_backward(do, q, k, v, o, logsum):
    root = q.shape[-1] ** 0.5
    p = np.exp(np.einsum("btd,bsd->bts", q, k) / root) / np.exp(logsum)
    ds = np.einsum("bts,btd,btsd->bts", p, do, v[:, None] - o[:, :, None]) / root
    return np.einsum("bts,bsd->btd", ds, k), np.einsum("bts,btd->bsd", ds, q), np.einsum("bts,btd->bsd", p, do)
