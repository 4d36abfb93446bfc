# --- right: branches
def noam(s, d_model, w=4000, factor=1.0):
    return [factor / math.sqrt(d_model) * (n / w / math.sqrt(w) if n <= w else 1 / math.sqrt(n)) for n in s.tolist()]
