def adam_step(theta, g, m, v, t, lr):
    m, v = m + (1 - BETA1) * (g - m), v + (1 - BETA2) * (g * g - v)
    root = math.sqrt(1 - BETA2**t)
    return theta - lr * root / (1 - BETA1**t) * m / (v**0.5 + EPS * root), m, v
