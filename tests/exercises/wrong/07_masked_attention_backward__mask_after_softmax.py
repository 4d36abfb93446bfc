# masked_attention_backward: the mask is multiplied onto the weights, after the softmax
def masked_attention_backward(dy, cache):
    q, k, v, allowed = cache
    s = q @ k.swapaxes(1, 2) / math.sqrt(q.shape[2])
    e = np.exp(s - s.max(-1, keepdims=True))
    p = e / e.sum(-1, keepdims=True) * allowed
    dp = dy @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(q.shape[2])
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ dy
