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
