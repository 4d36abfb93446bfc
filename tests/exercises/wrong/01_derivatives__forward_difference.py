# central_difference: the difference is one-sided
def central_difference(f, x, h=6e-6):
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        moved = x.copy()
        moved[i] += h
        gradient[i] = (f(moved) - f(x)) / h
    return gradient
