# --- right: long_rows
def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    rows = [array.reshape(*k.shape[:2], -1, array.shape[-1]) for array in (q, do, p)]  # a group's queries as one head
    long_q, long_do, long_p = rows
    dp = long_do @ v.swapaxes(2, 3)
    ds = long_p * (dp - np.sum(long_p * dp, axis=3, keepdims=True)) * q.shape[-1] ** -0.5
    return [(ds @ k).reshape(q.shape), ds.swapaxes(2, 3) @ long_q, long_p.swapaxes(2, 3) @ long_do]
