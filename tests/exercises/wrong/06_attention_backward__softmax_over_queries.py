# attention_backward: the average of dp is taken over the rows
def attention_backward(do, cache):
    q, k, v, p = cache
    dp = do @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(axis=1, keepdims=True)) / math.sqrt(q.shape[2])
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ do
