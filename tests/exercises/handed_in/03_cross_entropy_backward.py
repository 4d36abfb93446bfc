# --- right: one_hot
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    V = p.shape[-1]
    dz = p - (1 - eps) * np.eye(V)[targets] - eps / V
    dz[targets == pad] = 0
    return dz * (dloss / np.count_nonzero(targets != pad))


# --- wrong: column_of_padding
# cross_entropy_backward: the column of the padding token is set to 0, not the rows of padding
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    dz = p - (1 - eps) * np.eye(V)[targets] - eps / V
    dz[:, pad] = 0
    return dloss * dz / (targets != pad).sum()


# --- wrong: no_dloss
# cross_entropy_backward: dloss is missing
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    q = (1 - eps) * np.eye(V)[targets] + eps / V
    counts = targets != pad
    return (p - q) * counts[:, None] / counts.sum()


# --- wrong: others_share
# cross_entropy_backward: the smoothing is spread over the other V - 1 tokens
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    q = np.full((N, V), eps / (V - 1))
    q[np.arange(N), targets] = 1 - eps
    counts = targets != pad
    return dloss * (p - q) * counts[:, None] / counts.sum()


# --- wrong: padding_is_zero
# cross_entropy_backward: the id of padding is always taken to be 0
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    dz = p - eps / p.shape[1]
    dz[np.arange(len(p)), targets] -= 1 - eps
    dz[targets == 0] = 0
    return dloss * dz / (targets != 0).sum()


# --- wrong: two_at_once
# cross_entropy_backward: 2 of 2: the smoothing is spread over the other V - 1 tokens
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    dz = p.copy()
    for n, target in enumerate(targets):
        dz[n] -= eps / (V - 1)
        dz[n, target] += eps / (V - 1) - (1 - eps)
        if target == pad:
            dz[n] = 0
    return dloss * dz / N
