# --- right: loops
def shift_head(letters, n):
    W_q, W_k = np.zeros((letters + n, n + 3)), np.zeros((letters + n, n + 3))  # three features too many
    for t in range(n):
        W_k[letters + t, t] = -7.0
        W_q[letters + t, max(t - 1, 0)] = -7.0
    return [W_q.tolist(), W_k.tolist()]


# --- wrong: soft
# shift_head: each row has one weight near 1, because its best score is far above the others
def shift_head(letters, n):
    before = np.eye(n, k=-1)
    before[0, 0] = 1
    nothing = np.zeros((letters, n))
    return np.vstack([nothing, 4 * before]), np.vstack([nothing, np.eye(n)])
