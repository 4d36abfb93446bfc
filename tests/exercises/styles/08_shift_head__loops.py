def shift_head(letters, n):
    W_q, W_k = np.zeros((letters + n, n + 3)), np.zeros((letters + n, n + 3))  # three features too many
    for t in range(n):
        W_k[letters + t, t] = -7.0
        W_q[letters + t, max(t - 1, 0)] = -7.0
    return [W_q.tolist(), W_k.tolist()]
