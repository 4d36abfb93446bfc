def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    B, T, C = dy.shape
    dx, dgamma, dbeta = np.zeros_like(dy), np.zeros(C), np.zeros(C)
    for b in range(B):
        for t in range(T):
            g = [gamma[i] * dy[b, t, i] for i in range(C)]
            for j in range(C):
                dbeta[j] += dy[b, t, j]
                dgamma[j] += dy[b, t, j] * x_hat[b, t, j]
                for i in range(C):  # how x̂_i changes with x_j
                    slope = (i == j) - 1 / C - x_hat[b, t, i] * x_hat[b, t, j] / C
                    dx[b, t, j] += g[i] * slope / sigma[b, t, 0]
    return dx, dgamma, dbeta
