# --- right: einsum
def extend(x, K, V, W, P):
    q, k, v = (np.einsum("bc,cd->bd", x + P[K.shape[1]], matrix) for matrix in W)
    K, V = (np.append(kept, new[:, None], axis=1) for kept, new in ((K, k), (V, v)))
    p = softmax(np.einsum("bd,btd->bt", q, K) * q.shape[-1] ** -0.5)
    return np.einsum("bt,bte->be", p, V), K, V


# --- wrong: neither_used_nor_kept
# extend: k, v: the new key and value are not kept
def extend(x, K, V, W, P):
    W_q, W_k, W_v = W
    B, t, D = K.shape
    x = x + P[t]
    return x @ W_v, K, V


# --- wrong: window_of_four
# extend: this is not one of the known mistakes
def extend(x, K, V, W, P):
    q, k, v = ((x + P[K.shape[1]])[:, None] @ matrix for matrix in W)
    K, V = np.concatenate([K, k], 1), np.concatenate([V, v], 1)
    s = q @ K[:, -4:].swapaxes(1, 2) / math.sqrt(K.shape[2])
    return (softmax(s) @ V[:, -4:])[:, 0], K, V
