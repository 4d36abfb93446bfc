def weights(q, k, allowed):
    s = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    largest = s.max(axis=-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(largest), largest, 0.0))
    total = p.sum(axis=-1, keepdims=True)
    return p / np.where(total == 0.0, 1.0, total)


def masked_attention_backward(do, cache):
    q, k, v, allowed = cache
    p = weights(q, k, allowed)  # its zeros are the mask
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do
