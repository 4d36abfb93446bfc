def two_heads(letters, n):
    C, end = 2 * letters + n, letters + n
    W_q, W_k, W_vo = np.zeros((C, n + 2)), np.zeros((C, n + 2)), np.zeros((C, C))  # two features too many
    for t in range(n):
        W_k[letters + t, t] = 8.0
        W_q[letters + t, max(t - 1, 0)] = 9.0
    W_q2, W_k2 = np.zeros((C, letters)), np.zeros((C, letters))
    for a in range(letters):
        W_vo[a, end + a] = -1.0  # a heard letter may be written with the other sign
        W_q2[a, a] = -50.0
        W_k2[end + a, a] = 5.0
        W_k2[letters, a] = 60.0
    return (W_q, W_k, W_vo), [W_q2, W_k2]
