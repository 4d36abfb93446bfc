def sinusoids(length, C):
    PE = [[0.0] * C for _ in range(length)]
    for p in range(length):
        for i in range(C // 2):
            PE[p][2 * i] = math.sin(p / 10000 ** (2 * i / C))
            PE[p][2 * i + 1] = math.cos(p / 10000 ** (2 * i / C))
    return PE


def turn(k, C):
    R = np.zeros((C, C))
    for j in range(C):
        angle = k / 10000 ** ((j - j % 2) / C)
        R[j, j] = math.cos(angle)
        partner = j + 1 if j % 2 == 0 else j - 1
        R[j, partner] = math.sin(angle) if j % 2 else -math.sin(angle)
    return R
