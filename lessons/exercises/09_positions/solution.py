def sinusoids(length, C):
    frequencies = 10000.0 ** (-np.arange(0, C, 2) / C)  # (C/2,)
    angles = np.arange(length)[:, None] * frequencies  # (length, C/2)
    PE = np.empty((length, C))
    PE[:, 0::2], PE[:, 1::2] = np.sin(angles), np.cos(angles)
    return PE


def turn(j, C):
    matrix = np.zeros((C, C))
    for i in range(C // 2):
        angle = j * 10000.0 ** (-2 * i / C)
        sin, cos = math.sin(angle), math.cos(angle)
        matrix[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[cos, -sin], [sin, cos]]
    return matrix
