# without_key: the weights that are left are not renormalised
# without_head: the mean is taken over the features, too
def without_key(s, v, j):
    weights = softmax(s)
    return weights @ v - np.outer(weights[:, j], v[j])


def without_head(o, W_o, gone):
    each = np.split(W_o, o.shape[1])
    others = sum(o[:, h] @ W for h, W in enumerate(each) if h != gone)
    return others, others + np.full(o.shape[3], o[:, gone].mean()) @ each[gone]
