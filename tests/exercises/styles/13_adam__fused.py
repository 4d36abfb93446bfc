def adam_step(theta, g, m, v, t, lr):
    beta = np.array([BETA1, BETA2])
    m, v = beta[:, None, None] * np.stack([m, v]) + np.einsum("k,kio->kio", 1 - beta, np.stack([g, g * g]))
    a, b = 1 - beta**t
    return theta - lr * b**0.5 / a * m / (v**0.5 + b**0.5 * EPS), m, v
