# linear_backward: yours / right = 0.5 everywhere = 1/B
def linear_backward(dy, cache):
    x, W = cache
    dW = np.einsum("bti,bto->bio", x, dy).mean(axis=0)
    return dy @ W.T, dW, dy.sum(axis=(0, 1))
