def lanczos(product, start, steps):
    u = start / np.linalg.norm(start)
    basis, diagonal, beside = u[None], np.zeros(0, u.dtype), np.zeros(0, u.dtype)
    while True:
        image = product(basis[-1])
        diagonal = np.append(diagonal, image @ basis[-1])
        projector = np.eye(len(u), dtype=u.dtype) - basis.T @ basis
        left = projector @ (projector @ image)
        beside = np.append(beside, np.linalg.norm(left))
        if len(basis) == steps:
            return diagonal, beside, basis
        basis = np.vstack([basis, left / beside[-1]])
