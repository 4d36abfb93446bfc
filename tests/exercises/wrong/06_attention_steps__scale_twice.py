# scores_backward: it is divided by d_k and not by its root
def scores_backward(ds, cache):
    q, k = cache
    return ds @ k / q.shape[-1], ds.swapaxes(1, 2) @ q / q.shape[-1]
