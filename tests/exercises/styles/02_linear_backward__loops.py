def linear_backward(dy, cache):
    x, W = cache
    B, T, I = x.shape
    O = W.shape[1]
    dx, dW, db = np.zeros_like(x), np.zeros_like(W), np.zeros(O)
    for b in range(B):
        for t in range(T):
            for o in range(O):
                db[o] += dy[b, t, o]
                for i in range(I):
                    dx[b, t, i] += dy[b, t, o] * W[i, o]
                    dW[i, o] += x[b, t, i] * dy[b, t, o]
    return dx, dW, db


def mix_backward(dy, cache):
    return linear_backward(dy, cache)[:2]
