# noam: the warm-up always has the paper's 4000 steps
def noam(s, d_model, w=4000, factor=1.0):
    return factor * d_model**-0.5 * np.minimum(s**-0.5, s * 4000**-1.5)
