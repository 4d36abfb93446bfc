def adam_step(theta, g, m, v, t, lr):
    theta, m, v = theta.copy(), m.copy(), v.copy()
    for i in range(theta.shape[0]):
        for o in range(theta.shape[1]):
            m[i, o] += (1 - BETA1) * (g[i, o] - m[i, o])
            v[i, o] += (1 - BETA2) * (g[i, o] * g[i, o] - v[i, o])
            spread = math.sqrt(v[i, o] / (1 - BETA2**t))
            theta[i, o] -= lr * (m[i, o] / (1 - BETA1**t)) / (spread + EPS)
    return theta, m, v
