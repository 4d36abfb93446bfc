# --- wrong: single_precision
# attention_backward: Is there a float32 on the way
def attention_backward(do, cache):
    q, k, v, p = (np.asarray(array, np.float32) for array in cache)
    dp = do.astype(np.float32) @ v.swapaxes(1, 2)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / math.sqrt(q.shape[2])
    return ((ds @ k).astype(float), (ds.swapaxes(1, 2) @ q).astype(float), (p.swapaxes(1, 2) @ do))
