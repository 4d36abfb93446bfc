def lanczos(product, start, steps):
    basis = np.zeros((steps, len(start)), start.dtype)
    diagonal, beside = np.zeros(steps, start.dtype), np.zeros(steps, start.dtype)
    left = start
    length = np.linalg.norm(start)
    for step in range(steps):
        basis[step] = left / length
        left = product(basis[step])
        diagonal[step] = basis[step] @ left
        known = basis[: step + 1]
        for _ in range(2):
            left = left - (known @ left) @ known
        length = np.linalg.norm(left)
        beside[step] = length
    return diagonal, beside, basis
