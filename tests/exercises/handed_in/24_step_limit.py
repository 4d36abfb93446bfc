# --- wrong: trace
# step_limit: the sum of the eigenvalues
# descend: exp(−lr λ)
def step_limit(J):
    return np.array([2 / np.trace(matrix) if np.linalg.eigvalsh(matrix)[0] > 0 else 0.0 for matrix in J])


def descend(theta, J, lr, steps):
    values, axes = np.linalg.eigh(J)
    along = np.einsum("bij,bi->bj", axes, theta) * np.exp(-lr * steps * values)
    return np.einsum("bij,bj->bi", axes, along)
