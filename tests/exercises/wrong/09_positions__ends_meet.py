# sinusoids: the frequencies end at 1/10000
def sinusoids(length, C):
    angle = np.arange(length)[:, None] / 10000 ** np.linspace(0, 1, C // 2)
    PE = np.empty((length, C))
    PE[:, ::2], PE[:, 1::2] = np.sin(angle), np.cos(angle)
    return PE
