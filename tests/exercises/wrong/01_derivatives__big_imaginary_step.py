# complex_step: Is there a float32 on the way
def complex_step(f, x):
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-3j
        gradient[i] = f(z).imag / 1e-3
    return gradient
