# --- right: one_hot
def embed_backward(dx, cache):
    ids, V, s = cache
    return s * np.einsum("btv,btc->vc", np.eye(V)[ids], dx)


# --- wrong: last_wins
# embed_backward: a token that comes more than once gets only its last gradient
def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    dE[ids] += s * dx
    return dE


# --- wrong: mean_of_uses
# embed_backward: the gradients of a token's uses are averaged
def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((V, dx.shape[-1]))
    np.add.at(dE, ids, s * dx)
    return dE / np.maximum(np.bincount(ids.ravel(), minlength=V), 1)[:, None]


# --- wrong: table_as_long_as_needed
# embed_backward: dE has shape (6, 5) but should have (7, 5) = (V, C)
def embed_backward(dx, cache):
    ids, V, s = cache
    dE = np.zeros((ids.max() + 1, dx.shape[-1]))
    np.add.at(dE, ids, s * dx)
    return dE
