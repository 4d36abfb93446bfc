def softmax_backward(dp, p):
    N, V = p.shape
    dz = np.zeros_like(p)
    for n in range(N):
        for i in range(V):
            for j in range(V):
                dz[n, j] += dp[n, i] * p[n, i] * ((i == j) - p[n, j])
    return dz
