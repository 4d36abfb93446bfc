# --- right: einsum
def additive_attention_backward(do, cache):
    """Each gradient as one sum over named axes; the average price is that of the output."""
    v, scorer, match, p = cache
    price = np.einsum("btw,bsw->bts", do, v)
    ds = p * (price - np.einsum("bts,bts->bt", p, price)[..., None])
    slope = 1 - match * match
    return (
        np.einsum("bts,d,btsd->btd", ds, scorer, slope),
        np.einsum("bts,d,btsd->bsd", ds, scorer, slope),
        np.einsum("bts,btw->bsw", p, do),
        np.einsum("bts,btsd->d", ds, match),
    )


# --- wrong: one_step_of_the_decoder
# additive_attention_backward: a key hears from the last query only
def additive_attention_backward(do, cache):
    v, scorer, match, p = cache
    dq, dk, dv, dscorer = np.zeros(match[:, :, 0].shape), np.zeros(match[:, 0].shape), np.zeros(v.shape), 0
    for t in range(match.shape[1]):
        dp = np.einsum("bw,bsw->bs", do[:, t], v)
        ds = p[:, t] * (dp - (p[:, t] * dp).sum(axis=1)[:, None])
        dv += p[:, t][..., None] * do[:, t][:, None]
        dscorer = dscorer + (ds[..., None] * match[:, t]).sum(axis=(0, 1))
        dk = ds[..., None] * scorer * (1 - match[:, t] ** 2)
        dq[:, t] = dk.sum(axis=1)
    return dq, dk, dv, dscorer


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
