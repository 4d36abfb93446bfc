# extend: this is not one of the known mistakes
def extend(x, K, V, W, P):
    q, k, v = ((x + P[K.shape[1]])[:, None] @ matrix for matrix in W)
    K, V = np.concatenate([K, k], 1), np.concatenate([V, v], 1)
    s = q @ K[:, -4:].swapaxes(1, 2) / math.sqrt(K.shape[2])
    return (softmax(s) @ V[:, -4:])[:, 0], K, V
