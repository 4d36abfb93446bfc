# --- right: einsum
def masked_attention_backward(dy, cache):
    q, k, v, allowed = cache
    scale = q.shape[-1] ** -0.5
    y, _ = masked_attention(q, k, v, allowed)
    e = np.exp(scale * np.einsum("btd,bsd->bts", q, k)) * allowed  # of order one here, so exp cannot overflow
    p = np.nan_to_num(e / np.maximum(e.sum(axis=-1, keepdims=True), np.finfo(e.dtype).tiny))
    ds = scale * p * (np.einsum("bte,bse->bts", dy, v) - np.einsum("bte,bte->bt", dy, y)[..., None])
    return np.einsum("bts,bsd->btd", ds, k), np.einsum("bts,btd->bsd", ds, q), np.einsum("bts,bte->bse", p, dy)
