# cross_entropy_backward: dloss is missing
def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    q = (1 - eps) * np.eye(V)[targets] + eps / V
    counts = targets != pad
    return (p - q) * counts[:, None] / counts.sum()
