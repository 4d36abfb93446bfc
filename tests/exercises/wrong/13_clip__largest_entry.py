# clip_each: the largest entry is used as the length
def clip(gradients, c):
    norm = max(np.abs(g).max() for g in gradients)
    return [g * min(1, c / (norm + 1e-6)) for g in gradients]
