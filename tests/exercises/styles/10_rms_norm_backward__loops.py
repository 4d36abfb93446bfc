def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    B, T, C = dy.shape
    dx, dgamma = np.zeros_like(dy), np.zeros(C)
    for b in range(B):
        for t in range(T):
            drho = sum(-dy[b, t, i] * gamma[i] * x_hat[b, t, i] / rho[b, t, 0] for i in range(C))
            for j in range(C):
                dgamma[j] += dy[b, t, j] * x_hat[b, t, j]
                dx[b, t, j] = dy[b, t, j] * gamma[j] / rho[b, t, 0] + drho * x_hat[b, t, j] / C
    return dx, dgamma
