# clip_each: the arrays' lengths are added
def clip(gradients, c):
    norm = sum(np.linalg.norm(g) for g in gradients)
    return [g * c / norm if norm > c else g.copy() for g in gradients]
