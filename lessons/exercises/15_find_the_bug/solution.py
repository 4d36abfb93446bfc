def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    dx_hat = dy * gamma  # before the means, because y = gamma x_hat + beta is the last step of the forward
    mu_path = dx_hat.mean(axis=-1, keepdims=True)
    sigma_path = x_hat * (dx_hat * x_hat).mean(axis=-1, keepdims=True)
    dx = (dx_hat - mu_path - sigma_path) / sigma
    return dx, (dy * x_hat).sum(axis=(0, 1)), dy.sum(axis=(0, 1))


def greedy(model, B, max_len):
    ids, done = np.full((B, 1), BOS), np.zeros(B, dtype=bool)
    while ids.shape[1] <= max_len and not done.all():  # not any
        token = model(ids)[:, -1].argmax(axis=-1)
        token[done] = PAD
        done |= token == EOS
        ids = np.concatenate([ids, token[:, None]], axis=1)
    return ids[:, 1:]


def masked_loss(logits, targets):
    z = logits - logits.max(axis=-1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    losses = -np.take_along_axis(log_p, targets[..., None], axis=-1)[..., 0]  # (B, T)
    real = targets != PAD
    return (losses * real).sum() / real.sum()  # not by all tokens
