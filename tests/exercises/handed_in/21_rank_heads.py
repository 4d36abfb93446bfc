# --- right: einsum
def costs(z, targets):
    H, N, V = z.shape
    everything = z.sum(axis=0)
    stacked = np.concatenate([everything - z, everything[None]]).reshape(-1, V)  # H models without one, and the whole
    found = losses(stacked, np.tile(targets, H + 1)).reshape(H + 1, N).mean(axis=1)
    return found[:-1] - found[-1]


def ranking(cost):
    return np.argsort(cost, kind="stable")[::-1]


def slopes(z, targets):
    """The mean of the head under the model's probabilities, less what it says for the right token."""
    logs = z.sum(axis=0)
    logs = logs - np.logaddexp.reduce(logs, axis=-1)[:, None]
    right = np.take_along_axis(z, np.broadcast_to(targets[None, :, None], (len(z), len(targets), 1)), axis=-1)[..., 0]
    return abs(np.einsum("nv,hnv->hn", np.exp(logs), z) - right).mean(axis=-1)
