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
