# --- wrong: decays_a_tenth
# adam_step: stays where it is (weight decay would move it)
def adam_step(theta, g, m, v, t, lr):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    step = m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS)
    return theta - lr * (step + 0.1 * theta), m, v
