# continue_word: the scores of layer 2 are too small for the softmax
def two_heads(letters, T):
    C = 2 * letters + T
    W_q, W_k, W_vo = np.zeros((C, T)), np.zeros((C, T)), np.zeros((C, C))
    W_q2, W_k2 = np.zeros((C, letters)), np.zeros((C, letters))
    for t in range(T):
        W_k[letters + t, t] = 30 * math.sqrt(T)
        if t:
            W_q[letters + t, t - 1] = 1
    for a in range(letters):
        W_vo[a, letters + T + a] = 1
        W_q2[a, a] = math.sqrt(letters)
        W_k2[letters + T + a, a] = 1
        W_k2[letters, a] = -1
    return (W_q, W_k, W_vo), (W_q2, W_k2)
