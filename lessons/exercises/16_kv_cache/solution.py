def extend(x, k, v, W, PE):
    W_q, W_k, W_v = W
    x = x + PE[k.shape[1]]
    k = np.concatenate([k, (x @ W_k)[:, None]], axis=1)
    v = np.concatenate([v, (x @ W_v)[:, None]], axis=1)
    s = (k @ (x @ W_q)[..., None])[..., 0] / math.sqrt(k.shape[-1])  # (B, T + 1)
    return (softmax(s)[:, None] @ v)[:, 0], k, v
