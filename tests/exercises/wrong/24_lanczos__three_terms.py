# lanczos: the short recurrence
def lanczos(product, start, steps):
    u, before, beta = start / np.linalg.norm(start), np.zeros_like(start), 0.0
    basis, diagonal, beside = [], [], []
    for _ in range(steps):
        basis.append(u)
        rest = product(u) - beta * before
        diagonal.append(u @ rest)
        rest = rest - diagonal[-1] * u
        beta = np.linalg.norm(rest)
        beside.append(beta)
        before, u = u, rest / beta
    return np.array(diagonal), np.array(beside), np.array(basis)
