# --- right: einsum
def weighted_mean_backward(do, cache):
    p, v = cache
    return np.einsum("bte,bse->bts", do, v), np.einsum("bts,bte->bse", p, do)


def softmax_backward(dp, cache):
    jacobian = np.einsum("bts,su->btsu", cache, np.eye(cache.shape[-1])) - np.einsum("bts,btu->btsu", cache, cache)
    return np.einsum("bts,btsu->btu", dp, jacobian)


def scores_backward(ds, cache):
    q, k = cache
    scale = q.shape[-1] ** -0.5
    return [scale * np.einsum("bts,bsd->btd", ds, k), scale * np.einsum("bts,btd->bsd", ds, q)]


# --- wrong: gradient_of_p_squared
# softmax_backward: each row of ds sums to 0: what one key gains, the others lose
def softmax_backward(dp, cache):
    p = cache
    return p * dp - p * p * dp.sum(-1, keepdims=True)
