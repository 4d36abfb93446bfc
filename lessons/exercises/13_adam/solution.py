def adam_step(theta, g, m1, m2, step, lr):
    m1 = BETA1 * m1 + (1 - BETA1) * g
    m2 = BETA2 * m2 + (1 - BETA2) * g**2
    m1_hat = m1 / (1 - BETA1**step)
    m2_hat = m2 / (1 - BETA2**step)
    return theta - lr * m1_hat / (np.sqrt(m2_hat) + EPS), m1, m2
