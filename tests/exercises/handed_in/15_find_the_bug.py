# --- right: einsum
def layer_norm_backward(dy, cache):
    x_hat, sigma, gamma = cache
    C = dy.shape[-1]
    g = np.einsum("btc,c->btc", dy, gamma)
    dx = g - np.einsum("btc->bt", g)[..., None] / C - x_hat * np.einsum("btc,btc->bt", g, x_hat)[..., None] / C
    return dx / sigma, np.einsum("btc,btc->c", dy, x_hat), np.einsum("btc->c", dy)


def greedy(model, B, max_len):
    ids = np.full((B, 1), BOS)
    for _ in range(max_len):
        done = (ids == EOS).any(axis=1)
        if done.all():
            break
        token = np.where(done, PAD, np.argmax(model(ids)[:, -1], axis=1))
        ids = np.hstack([ids, token[:, None]])
    return ids[:, 1:]


def masked_loss(logits, targets):
    wanted = logits[targets != PAD]  # (N, V)
    right = np.eye(logits.shape[-1])[targets[targets != PAD]]
    return (np.log(np.exp(wanted).sum(axis=-1)) - np.einsum("nv,nv->n", wanted, right)).mean()
