def clip(gradients, limit):
    length = np.sqrt(sum((g**2).sum() for g in gradients))
    factor = min(1.0, limit / (length + 1e-6))
    return [factor * g for g in gradients]
