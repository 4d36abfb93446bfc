def sinusoids(length, C):
    table = [[0.0, 1.0] * (C // 2)]
    for _ in range(length - 1):
        table.append(np.asarray(table[-1]) @ turn(1, C))
    return np.array(table)


def turn(k, C):
    R = np.eye(C)
    for i in range(0, C, 2):
        turn = np.exp(1j * k * 10000 ** (-i / C))
        R[i, i] = R[i + 1, i + 1] = turn.real
        R[i + 1, i], R[i, i + 1] = turn.imag, -turn.imag
    return R
