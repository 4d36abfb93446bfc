# adam_step: the corrected means are returned
def adam_step(theta, g, m, v, t, lr):
    m = (BETA1 * m + (1 - BETA1) * g) / (1 - BETA1**t)
    v = (BETA2 * v + (1 - BETA2) * g**2) / (1 - BETA2**t)
    return theta - lr * m / (np.sqrt(v) + EPS), m, v
