# extend: the new token has no position
def extend(x, K, V, W, P):
    q, k, v = (x[:, None] @ matrix for matrix in W)
    K, V = np.concatenate([K, k], 1), np.concatenate([V, v], 1)
    return (softmax(q @ K.swapaxes(1, 2) / math.sqrt(K.shape[2])) @ V)[:, 0], K, V
