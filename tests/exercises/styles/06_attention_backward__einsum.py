def attention_backward(do, cache):
    q, k, v, p = cache
    o = np.einsum("bts,bse->bte", p, v)
    dp = np.einsum("bte,bse->bts", do, v)
    ds = p * (dp - np.einsum("bte,bte->bt", do, o)[..., None]) * q.shape[-1] ** -0.5
    return np.einsum("bts,bsd->btd", ds, k), np.einsum("bts,btd->bsd", ds, q), np.einsum("bts,bte->bse", p, do)
