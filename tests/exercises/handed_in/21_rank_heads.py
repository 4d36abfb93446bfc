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


# --- wrong: head_alone
# costs: the loss of the head alone is measured, not the loss without it
# ranking: it returns the rank of each head, not the heads in order
# slopes: the absolute value is taken after the mean, where tokens cancel
def costs(z, targets):
    everything = losses(sum(z), targets).mean()
    return np.array([losses(one, targets).mean() - everything for one in z])


def ranking(cost):
    return np.array([sum(other > one for other in cost) for one in cost])


def slopes(z, targets):
    h = 1e-6
    found = []
    for one in z:
        change = losses(sum(z) + h * one, targets).mean() - losses(sum(z) - h * one, targets).mean()
        found.append(abs(change) / (2 * h))
    return np.array(found)


# --- wrong: importance
# costs: the absolute value hides which heads do harm
# ranking: it returns the rank of each head, not the heads in order
# slopes: the absolute value is taken after the mean, where tokens cancel
def costs(z, targets):
    loss = losses(z.sum(axis=0), targets).mean()
    return np.array([abs(loss - losses(np.delete(z, i, axis=0).sum(axis=0), targets).mean()) for i in range(len(z))])


def ranking(cost):
    return np.array([int((cost > one).sum()) for one in cost])


def slopes(z, targets):
    e = np.exp(z.sum(axis=0))
    dz = e / e.sum(axis=-1, keepdims=True) - np.eye(e.shape[-1])[targets]
    return np.abs(np.einsum("hnv,nv->h", z, dz)) / len(targets)


# --- wrong: loud_heads
# costs: the loss of the head alone is measured, not the loss without it
# ranking: the least needed head stands first
def costs(z, targets):
    return np.array([losses(one, targets).mean() - losses(z.sum(axis=0), targets).mean() for one in z])


def ranking(cost):
    return np.array(sorted(range(len(cost)), key=lambda i: cost[i]))
