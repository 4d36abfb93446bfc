# --- wrong: big_imaginary_step
# complex_step: Is there a float32 on the way
def complex_step(f, x):
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-3j
        gradient[i] = f(z).imag / 1e-3
    return gradient


# --- wrong: fixed_columns
# complex_step: gradient is wrong only where the index of C is 4
def complex_step(f, x):
    gradient = np.zeros(x.shape)
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            z = x.astype(complex)
            z[i, j] += 1e-30j
            gradient[i, j] = f(z).imag / 1e-30
    return gradient
