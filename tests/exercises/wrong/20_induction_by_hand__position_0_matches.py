# continue_word: position 0 is found, because it has heard itself
def two_heads(letters, T):
    C = letters + T + letters
    W_q, W_k, W_vo = np.zeros((C, T)), np.zeros((C, T)), np.zeros((C, C))
    for t in range(T):
        W_k[letters + t, t] = 1.0
        if t > 0:
            W_q[letters + t, t - 1] = 1000.0
    W_q2, W_k2 = np.zeros((C, letters)), np.zeros((C, letters))
    for a in range(letters):
        W_vo[a, letters + T + a] = 1.0
        W_q2[a, a] = 1000.0
        W_k2[letters + T + a, a] = 1.0
    return (W_q, W_k, W_vo), (W_q2, W_k2)
