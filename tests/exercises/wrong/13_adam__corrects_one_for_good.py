# adam_step: the corrected m1 is returned
def adam_step(theta, g, m, v, t, lr):
    m = (BETA1 * m + (1 - BETA1) * g) / (1 - BETA1**t)
    v = BETA2 * v + (1 - BETA2) * g * g
    return theta - lr * m / (np.sqrt(v / (1 - BETA2**t)) + EPS), m, v
