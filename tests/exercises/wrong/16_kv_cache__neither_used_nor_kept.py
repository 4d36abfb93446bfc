# extend: k, v: the new key and value are not kept
def extend(x, K, V, W, P):
    W_q, W_k, W_v = W
    B, t, D = K.shape
    x = x + P[t]
    return x @ W_v, K, V
