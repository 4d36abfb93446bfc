def cross_entropy_backward(dloss, cache):
    p, targets, eps, pad = cache
    N, V = p.shape
    wanted = np.full((N, V), eps / V, p.dtype)
    wanted[np.arange(N), targets] += 1 - eps
    counts = targets != pad
    share = (counts / counts.sum()).astype(p.dtype)  # 1 / their number for a row that counts, 0 for padding
    return dloss * share[:, None] * (p - wanted)
