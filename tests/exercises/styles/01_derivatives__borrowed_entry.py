def central_difference(f, x, h=6e-6):
    slopes = []
    for i in range(x.size):
        kept = x.flat[i]
        x.flat[i] = kept + h
        up = f(x)
        x.flat[i] = kept - h
        slopes.append((up - f(x)) / (2 * h))
        x.flat[i] = kept  # the input is as it was
    return np.reshape(slopes, x.shape)


def complex_step(f, x):
    def slope(i):
        z = x + 0j
        z[i] += 1e-100j
        return f(z).imag * 1e100

    return [[slope((m, n)) for n in range(x.shape[1])] for m in range(x.shape[0])]
