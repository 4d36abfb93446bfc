# adam_step: weight decay of 0.01 is added to the gradient
def adam_step(theta, g, m, v, t, lr):
    slope = g + 0.01 * theta
    m = BETA1 * m + (1 - BETA1) * slope
    v = BETA2 * v + (1 - BETA2) * slope * slope
    return theta - lr * m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS), m, v
