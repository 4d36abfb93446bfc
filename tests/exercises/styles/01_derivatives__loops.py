def central_difference(f, x, h=6e-6):
    rows = []
    for i in range(len(x)):
        row = []
        for j in range(len(x[0])):
            moved = x.copy()
            moved[i, j] = x[i, j] + h
            above = f(moved)
            moved[i, j] = x[i, j] - h
            row.append((above - f(moved)) / h / 2)
        rows.append(row)
    return rows


def complex_step(f, x):
    return [
        [
            f(
                np.array(
                    [[x[a, b] + (1e-20j if (a, b) == (i, j) else 0) for b in range(len(x[0]))] for a in range(len(x))]
                )
            ).imag
            * 1e20
            for j in range(len(x[0]))
        ]
        for i in range(len(x))
    ]
