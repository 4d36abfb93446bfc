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
