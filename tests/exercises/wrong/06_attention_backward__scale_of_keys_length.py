# attention_backward: the scores are divided by the root of the number of keys
def attention_backward(do, cache):
    q, k, v, p = cache
    dp = do @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(k.shape[1])
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ do
