def sum_groups(dcopies, G):
    B, H, S, width = dcopies.shape
    return dcopies.reshape(B, G, H // G, S, width).sum(axis=2)


def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    G, group = k.shape[1], q.shape[1] // k.shape[1]
    copies_of_k, copies_of_v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    dp = do @ copies_of_v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
    dk = ds.swapaxes(-1, -2) @ q
    dv = p.swapaxes(-1, -2) @ do
    return ds @ copies_of_k, sum_groups(dk, G), sum_groups(dv, G)
