# scores_backward: the scores are divided by D instead of √D
def scores_backward(ds, cache):
    q, k = cache
    return ds @ k / q.shape[-1], ds.swapaxes(1, 2) @ q / q.shape[-1]
