def step_limit(J):
    values = np.linalg.eigvalsh(J)
    limit = 2 / values.max(axis=-1)
    return np.where(values.min(axis=-1) > 0, limit, 0.0)


def descend(theta, J, lr, steps):
    theta = theta.copy()
    for _ in range(steps):
        g = (J @ theta[..., None])[..., 0]
        theta = theta - lr * g
    return theta
