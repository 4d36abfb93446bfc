def noam(step, C, warmup=4000, factor=1.0):
    return factor * C**-0.5 * np.minimum(step**-0.5, step * warmup**-1.5)
