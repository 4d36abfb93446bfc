# step_limit: the eigenvalue largest in size
# descend: only the diagonal of J acts
def step_limit(J):
    return np.array([2 / np.linalg.norm(matrix, 2) for matrix in J])


def descend(theta, J, lr, steps):
    for _ in range(steps):
        theta = theta * (1 - lr * np.einsum("bii->bi", J))
    return theta.copy()
