def rms_norm_backward(dy, cache):
    x_hat, rho, gamma = cache
    dx = np.empty(dy.shape)
    for b, t in np.ndindex(dy.shape[:2]):
        n = x_hat[b, t]
        dx[b, t] = (np.eye(n.size) - np.outer(n, n) / n.size) @ (gamma * dy[b, t]) / rho[b, t]
    return dx, sum(sum(dy * x_hat))
