def clip(gradients, c):
    whole = np.concatenate([g.ravel() for g in gradients])
    whole = whole / max(1.0, np.sqrt(np.einsum("n,n->", whole, whole)) / c)
    ends = np.cumsum([g.size for g in gradients])
    return [part.reshape(g.shape) for part, g in zip(np.split(whole, ends[:-1]), gradients, strict=True)]
