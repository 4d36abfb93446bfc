def noam(s, d_model, w=4000, factor=1.0):
    rates = []
    for step in s:
        falling, rising = 1 / math.sqrt(step), step / w / math.sqrt(w)
        rates.append(factor * min(falling, rising) / math.sqrt(d_model))
    return rates
