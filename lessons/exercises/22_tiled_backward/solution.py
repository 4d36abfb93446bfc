def tile_backward(do, q, k, v, o, logsum):
    scale = 1 / math.sqrt(q.shape[-1])
    p = np.exp(q @ k.swapaxes(-1, -2) * scale - logsum)
    dp = do @ v.swapaxes(-1, -2)
    price = (do * o).sum(axis=-1, keepdims=True)
    ds = p * (dp - price)
    return ds @ k * scale, ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ do
