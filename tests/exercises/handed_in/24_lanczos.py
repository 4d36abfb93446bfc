# --- right: qr
def lanczos(product, start, steps):
    basis = (start / np.linalg.norm(start))[:, None]
    diagonal, beside = [], []
    for _ in range(steps):
        image = product(basis[:, -1])
        diagonal.append(basis[:, -1] @ image)
        q, triangle = np.linalg.qr(np.column_stack([basis, image]))
        beside.append(abs(triangle[-1, -1]))
        basis = np.column_stack([basis, q[:, -1] * np.sign(triangle[-1, -1])])
    return np.array(diagonal), np.array(beside), basis[:, :-1].T
