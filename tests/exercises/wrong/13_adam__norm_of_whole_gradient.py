# adam_step: m2 is one number for all weights
def adam_step(theta, g, m, v, t, lr):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * (g * g).mean()
    return theta - lr * m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS), m, v
