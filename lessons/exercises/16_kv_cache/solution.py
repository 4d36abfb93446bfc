def extend(x, K, V, W, P):
    W_q, W_k, W_v = W
    x = x + P[K.shape[1]]
    K = np.concatenate([K, (x @ W_k)[:, None]], axis=1)
    V = np.concatenate([V, (x @ W_v)[:, None]], axis=1)
    s = (K @ (x @ W_q)[..., None])[..., 0] / math.sqrt(K.shape[-1])  # (B, t + 1)
    return (softmax(s)[:, None] @ V)[:, 0], K, V
