# sinusoids: positions are counted from 1
def sinusoids(length, C):
    p = np.arange(1, length + 1)[:, None]
    angle = p / 10000 ** (np.arange(0, C, 2) / C)
    PE = np.empty((length, C))
    PE[:, ::2], PE[:, 1::2] = np.sin(angle), np.cos(angle)
    return PE
