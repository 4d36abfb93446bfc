# --- right: lerp
def adam_step(theta, g, m, v, t, lr):
    m, v = m + (1 - BETA1) * (g - m), v + (1 - BETA2) * (g * g - v)
    root = math.sqrt(1 - BETA2**t)
    return theta - lr * root / (1 - BETA1**t) * m / (v**0.5 + EPS * root), m, v


# --- wrong: corrects_one_for_good
# adam_step: the corrected m1 is returned
def adam_step(theta, g, m, v, t, lr):
    m = (BETA1 * m + (1 - BETA1) * g) / (1 - BETA1**t)
    v = BETA2 * v + (1 - BETA2) * g * g
    return theta - lr * m / (np.sqrt(v / (1 - BETA2**t)) + EPS), m, v


# --- wrong: decays_a_tenth
# adam_step: stays where it is (weight decay would move it)
def adam_step(theta, g, m, v, t, lr):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    step = m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS)
    return theta - lr * (step + 0.1 * theta), m, v


# --- wrong: epsilon_in_root
# adam_step: eps is inside the root
def adam_step(theta, g, m, v, t, lr):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g**2
    return theta - lr * m / (1 - BETA1**t) / np.sqrt(v / (1 - BETA2**t) + EPS), m, v


# --- wrong: keeps_corrected_means
# adam_step: the corrected means are returned
def adam_step(theta, g, m, v, t, lr):
    m = (BETA1 * m + (1 - BETA1) * g) / (1 - BETA1**t)
    v = (BETA2 * v + (1 - BETA2) * g**2) / (1 - BETA2**t)
    return theta - lr * m / (np.sqrt(v) + EPS), m, v


# --- wrong: l2_in_the_gradient
# adam_step: weight decay of 0.01 is added to the gradient
def adam_step(theta, g, m, v, t, lr):
    slope = g + 0.01 * theta
    m = BETA1 * m + (1 - BETA1) * slope
    v = BETA2 * v + (1 - BETA2) * slope * slope
    return theta - lr * m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS), m, v


# --- wrong: norm_of_whole_gradient
# adam_step: m2 is one number for all weights
def adam_step(theta, g, m, v, t, lr):
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * (g * g).mean()
    return theta - lr * m / (1 - BETA1**t) / (np.sqrt(v / (1 - BETA2**t)) + EPS), m, v
