# --- wrong: mean_over_sequences
# linear_backward: yours / right = 0.5 everywhere = 1/B
def linear_backward(dy, cache):
    x, W = cache
    dW = np.einsum("bti,bto->bio", x, dy).mean(axis=0)
    return dy @ W.T, dW, dy.sum(axis=(0, 1))


# --- wrong: two_sequences
# linear_backward: does it take B = 2 for granted?
def linear_backward(dy, cache):
    x, W = cache
    dW = x[0].T @ dy[0] + x[1].T @ dy[1]
    return dy @ W.T, dW, dy[0].sum(0) + dy[1].sum(0)
