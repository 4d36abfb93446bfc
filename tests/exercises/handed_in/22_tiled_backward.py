# --- wrong: as_in_lesson_06
# tiled_backward: 1 of 2: the weights are divided by the sum of their own tile
def tile_backward(do, q, k, v, o, log_total):
    root = math.sqrt(q.shape[-1])
    p = np.exp(q @ k.swapaxes(1, 2) / root)
    p = p / p.sum(axis=-1, keepdims=True)
    dp = do @ v.swapaxes(1, 2)
    ds = p * (dp - (p * dp).sum(axis=-1, keepdims=True)) / root
    return ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ do
