def central_difference(f, x, h=6e-6):
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        gradient[i] = (f(x + step) - f(x - step)) / (2 * h)
    return gradient


def complex_step(f, x):
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        gradient[i] = f(z).imag / 1e-30
    return gradient
