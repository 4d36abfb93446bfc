def step_limit(J):
    values = np.linalg.eigvalsh(J)
    return 2 * (values[:, 0] > 0) / values[:, -1]


def descend(theta, J, lr, steps):
    for _ in range(steps):
        theta = theta - lr * np.einsum("bij,bj->bi", J, theta)
    return theta + 0
