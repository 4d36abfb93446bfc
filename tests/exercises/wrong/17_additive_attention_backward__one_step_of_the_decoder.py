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
