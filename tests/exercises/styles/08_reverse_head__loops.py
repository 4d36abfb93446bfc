def reverse_head(letters, n):
    W_q, W_k = np.zeros((letters + n, 2)), np.zeros((letters + n, 2))
    for s in range(n):  # half a circle will do
        W_k[letters + s] = [math.cos(math.pi * s / n), math.sin(math.pi * s / n)]
    for t in range(n):
        W_q[letters + t] = 500.0 * W_k[letters + n - 1 - t]
    return W_q, W_k
