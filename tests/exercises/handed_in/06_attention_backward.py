# --- right: einsum
def attention_backward(do, cache):
    q, k, v, p = cache
    o = np.einsum("bts,bse->bte", p, v)
    dp = np.einsum("bte,bse->bts", do, v)
    ds = p * (dp - np.einsum("bte,bte->bt", do, o)[..., None]) * q.shape[-1] ** -0.5
    return np.einsum("bts,bsd->btd", ds, k), np.einsum("bts,btd->bsd", ds, q), np.einsum("bts,bte->bse", p, do)


# --- wrong: single_precision
# attention_backward: Is there a float32 on the way
def attention_backward(do, cache):
    q, k, v, p = (np.asarray(array, np.float32) for array in cache)
    dp = do.astype(np.float32) @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(q.shape[2])
    return ((ds @ k).astype(float), (ds.swapaxes(1, 2) @ q).astype(float), (p.swapaxes(1, 2) @ do))
