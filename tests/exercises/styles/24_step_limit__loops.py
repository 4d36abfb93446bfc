def step_limit(J):
    limit = np.zeros(len(J), J.dtype)
    for number, matrix in enumerate(J):
        values = np.linalg.eigvalsh(matrix)
        if min(values) > 0:
            limit[number] = 2 / max(values)
    return limit


def descend(theta, J, lr, steps):
    rows = []
    for matrix, row in zip(J, theta):
        for _ in range(steps):
            row = row - lr * (matrix @ row)
        rows.append(row)
    return np.array(rows)
