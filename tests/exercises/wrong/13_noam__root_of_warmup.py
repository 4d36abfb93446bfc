# noam: the slope of the warm-up is warmup^−0.5
def noam(s, d_model, w=4000, factor=1.0):
    return factor * d_model**-0.5 * np.minimum(s**-0.5, s * w**-0.5)
