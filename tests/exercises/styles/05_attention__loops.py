def attention(q, k, v):
    B, T, D = q.shape
    S, E = k.shape[1], v.shape[2]
    y, p = np.zeros((B, T, E)), np.zeros((B, T, S))
    for b in range(B):
        for t in range(T):
            s = [sum(q[b, t, d] * k[b, i, d] for d in range(D)) / math.sqrt(D) for i in range(S)]
            e = [math.exp(score - max(s)) for score in s]
            for i in range(S):
                p[b, t, i] = e[i] / sum(e)
                y[b, t] += p[b, t, i] * v[b, i]
    return y, p
