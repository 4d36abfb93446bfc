# --- right: einsum
def masked_attention_backward(dy, cache):
    q, k, v, allowed = cache
    scale = q.shape[-1] ** -0.5
    y, _ = masked_attention(q, k, v, allowed)
    e = np.exp(scale * np.einsum("btd,bsd->bts", q, k)) * allowed  # of order one here, so exp cannot overflow
    p = np.nan_to_num(e / np.maximum(e.sum(axis=-1, keepdims=True), np.finfo(e.dtype).tiny))
    ds = scale * p * (np.einsum("bte,bse->bts", dy, v) - np.einsum("bte,bte->bt", dy, y)[..., None])
    return np.einsum("bts,bsd->btd", ds, k), np.einsum("bts,btd->bsd", ds, q), np.einsum("bts,bte->bse", p, dy)


# --- wrong: mask_after_softmax
# masked_attention_backward: the mask is multiplied onto the weights, after the softmax
def masked_attention_backward(dy, cache):
    q, k, v, allowed = cache
    s = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True) * allowed
    dp = dy @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(q.shape[2])
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dy


# --- wrong: minus_billion
# masked_attention_backward: an empty row looks at all keys alike, because forbidden scores are finite
def masked_attention_backward(dy, cache):
    q, k, v, allowed = cache
    s = np.where(allowed, q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2]), -1e9)
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True)
    dp = dy @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(q.shape[2])
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dy
