# --- right: flat
def clip(gradients, c):
    flat = np.concatenate([np.ravel(g) for g in gradients])
    flat = flat / max(1.0, np.linalg.norm(flat) / c)
    ends = np.cumsum([np.size(g) for g in gradients])[:-1]
    return (part.reshape(np.shape(g)) for part, g in zip(np.split(flat, ends), gradients))


# --- wrong: largest_entry
# clip_each: the largest entry is used as the length
def clip(gradients, c):
    norm = max(np.abs(g).max() for g in gradients)
    return [g * min(1, c / (norm + 1e-6)) for g in gradients]


# --- wrong: sum_of_norms
# clip_each: the arrays' lengths are added
def clip(gradients, c):
    norm = sum(np.linalg.norm(g) for g in gradients)
    return [g * c / norm if norm > c else g.copy() for g in gradients]
