def weighted_mean_backward(do, cache):
    p, v = cache
    dp = do @ v.swapaxes(-1, -2)  # (B, T, S)
    dv = p.swapaxes(-1, -2) @ do  # (B, S, width)
    return dp, dv


def softmax_backward(dp, cache):
    p = cache
    return p * (dp - (dp * p).sum(axis=-1, keepdims=True))


def scores_backward(ds, cache):
    q, k = cache
    dproduct = ds / math.sqrt(q.shape[-1])
    return dproduct @ k, dproduct.swapaxes(-1, -2) @ q
