def directions(x):
    return np.eye(x.size).reshape(x.size, *x.shape)


def central_difference(f, x, h=6e-6):
    return np.array([0.5 * (f(x + h * e) - f(x - h * e)) for e in directions(x)]).reshape(x.shape) / h


def complex_step(f, x, h=1e-40):
    return np.array([np.imag(f(x + 1j * h * e)) for e in directions(x)]).reshape(x.shape) / h
