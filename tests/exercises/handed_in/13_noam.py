# --- right: branches
def noam(s, d_model, w=4000, factor=1.0):
    return [factor / math.sqrt(d_model) * (n / w / math.sqrt(w) if n <= w else 1 / math.sqrt(n)) for n in s.tolist()]


# --- wrong: default_warmup
# noam: the warm-up always has the paper's 4000 steps
def noam(s, d_model, w=4000, factor=1.0):
    return factor * d_model**-0.5 * np.minimum(s**-0.5, s * 4000**-1.5)


# --- wrong: root_of_warmup
# noam: the slope of the warm-up is warmup^−0.5
def noam(s, d_model, w=4000, factor=1.0):
    return factor * d_model**-0.5 * np.minimum(s**-0.5, s * w**-0.5)
