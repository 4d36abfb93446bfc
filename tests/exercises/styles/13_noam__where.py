def noam(s, d_model, w=4000, factor=1.0):
    peak = factor / np.sqrt(d_model * w)
    return peak * np.where(s < w, s / w, np.sqrt(w / s))
