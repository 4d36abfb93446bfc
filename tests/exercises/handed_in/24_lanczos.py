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


# --- wrong: scaled_products
# lanczos: nothing is taken out of a product
def lanczos(product, start, steps):
    rows, diagonal, beside = [start / math.sqrt(start @ start)], [], []
    for _ in range(steps):
        image = product(rows[-1])
        diagonal.append(rows[-1] @ image)
        beside.append(math.sqrt(image @ image))
        rows.append(image / beside[-1])
    return np.array(diagonal), np.array(beside), np.array(rows[:-1])


# --- wrong: three_terms
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
