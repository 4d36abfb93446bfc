# cross_entropy_backward: the smoothing is spread over the other V - 1 tokens
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    q = np.full((N, V), eps / (V - 1))
    q[np.arange(N), targets] = 1 - eps
    counts = targets != pad
    return dloss * (p - q) * counts[:, None] / counts.sum()
