# grouped_attention_backward: each head of a group writes over the share of the one before
def grouped_attention_backward(do, cache):
    q, k, v, p = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for h in range(q.shape[1]):
        g = h * k.shape[1] // q.shape[1]
        dp = do[:, h] @ v[:, g].swapaxes(1, 2)
        ds = p[:, h] * (dp - (dp * p[:, h]).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
        dq[:, h] = ds @ k[:, g]
        dk[:, g] = ds.swapaxes(1, 2) @ q[:, h]
        dv[:, g] = p[:, h].swapaxes(1, 2) @ do[:, h]
    return dq, dk, dv
