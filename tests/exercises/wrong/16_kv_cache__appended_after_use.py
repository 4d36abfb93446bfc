# extend: the new token does not see itself
def extend(x, K, V, W, P):
    W_q, W_k, W_v = W
    B, t, D = K.shape
    x = (x + P[t])[:, None]
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    o = softmax(q @ K.swapaxes(1, 2) / math.sqrt(D)) @ V
    return o[:, 0], np.concatenate([K, k], 1), np.concatenate([V, v], 1)
