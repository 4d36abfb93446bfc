# --- wrong: slope_of_the_mean
# additive_attention_backward: the derivative of tanh is taken after the sums
def additive_attention_backward(do, cache):
    v, scorer, match, p = cache
    dp = np.einsum("btw,bsw->bts", do, v)
    ds = p * (dp - np.einsum("bts,bts->bt", p, dp)[..., None])
    dmatch = ds[..., None] * scorer
    dq = dmatch.sum(axis=2) * (1 - match.mean(axis=2) ** 2)
    dk = dmatch.sum(axis=1) * (1 - match.mean(axis=1) ** 2)
    return dq, dk, np.einsum("bts,btw->bsw", p, do), np.einsum("bts,btsd->d", ds, match)
