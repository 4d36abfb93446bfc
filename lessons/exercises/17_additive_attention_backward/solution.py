def additive_attention_backward(do, cache):
    v, scorer, match, p = cache
    dv = p.swapaxes(-1, -2) @ do
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True))
    dmatch = ds[..., None] * scorer  # (B, T, S, D)
    dscorer = (ds[..., None] * match).sum(axis=(0, 1, 2))
    dsum = dmatch * (1 - match**2)
    return dsum.sum(axis=2), dsum.sum(axis=1), dv, dscorer
