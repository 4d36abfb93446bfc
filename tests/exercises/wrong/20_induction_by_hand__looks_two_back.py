# continue_word: layer 1 looks two places back
def two_heads(letters, T):
    C = 2 * letters + T
    W_q, W_k, W_vo = np.zeros((C, T)), np.zeros((C, T)), np.zeros((C, C))
    W_q[letters : letters + T] = 90 * np.eye(T, k=-2)
    W_k[letters : letters + T] = np.eye(T)
    W_vo[:letters, letters + T :] = np.eye(letters)
    W_q2, W_k2 = np.zeros((C, letters)), np.zeros((C, letters))
    W_q2[:letters], W_k2[letters + T :], W_k2[letters] = 90 * np.eye(letters), np.eye(letters), -1
    return (W_q, W_k, W_vo), (W_q2, W_k2)
