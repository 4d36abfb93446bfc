# masked_loss: each sequence counts the same, however long it is
def masked_loss(logits, targets):
    z = logits - logits.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    losses = -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]
    real = targets != PAD
    return ((losses * real).sum(axis=1) / real.sum(axis=1)).mean()
