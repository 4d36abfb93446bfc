# --- right: flat
def clip(gradients, c):
    flat = np.concatenate([np.ravel(g) for g in gradients])
    flat = flat / max(1.0, np.linalg.norm(flat) / c)
    ends = np.cumsum([np.size(g) for g in gradients])[:-1]
    return (part.reshape(np.shape(g)) for part, g in zip(np.split(flat, ends), gradients))
