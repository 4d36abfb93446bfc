def adam_step(theta, g, m, v, t, lr):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g**2
    m_hat = m / (1 - BETA1**t)
    v_hat = v / (1 - BETA2**t)
    return theta - lr * m_hat / (np.sqrt(v_hat) + EPS), m, v
