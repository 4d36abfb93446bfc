# --- right: plane
def two_heads(letters, n):
    """Positions on a parabola, letters on a circle: two features in layer 1, three in layer 2."""
    C = letters + n + letters
    s, angles = np.arange(n, dtype=float), 2 * np.pi * np.arange(letters) / letters
    goal, points = np.maximum(s - 1, 0), np.stack([np.cos(angles), np.sin(angles), np.ones(letters)], axis=1)
    W_q, W_k, W_q2, W_k2 = np.zeros((C, 2)), np.zeros((C, 2)), np.zeros((C, 3)), np.zeros((C, 3))
    W_q[letters:-letters] = 50 * np.stack([2 * goal, -np.ones(n)], axis=1)
    W_k[letters:-letters] = np.stack([s, s**2], axis=1)
    W_vo = np.eye(C, k=letters + n)
    W_q2[:letters], W_k2[-letters:] = 300 * points, points
    W_k2[letters] = [0, 0, -5]
    return (W_q, W_k, W_vo), (W_q2, W_k2)


# --- wrong: half_as_sharp
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


# --- wrong: looks_two_back
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


# --- wrong: position_0_matches
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


# --- wrong: soft
# continue_word: the scores of layer 2 are too small for the softmax
def two_heads(letters, T):
    one = np.eye(letters + T + letters)
    letter, place, empty = np.split(one, [letters, letters + T], axis=1)
    shifted = 500 * np.roll(place, -1, axis=1)
    shifted[letters] = 0.0
    key = empty - place[:, [0]]
    return (shifted, place, letter @ empty.T), (math.sqrt(letters) * letter, key)
