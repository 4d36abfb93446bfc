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
