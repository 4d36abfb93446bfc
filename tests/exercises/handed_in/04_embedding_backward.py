# --- wrong: table_as_long_as_needed
# embed_backward: dE has shape (6, 5) but should have (7, 5) = (V, C)
def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((ids.max() + 1, dx.shape[-1]))
    np.add.at(dE, ids, s * dx)
    return dE
