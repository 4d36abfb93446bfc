# --- right: from_the_whole
def without_key(s, v, j):
    """What the row got, less the share of the key, over what is left of the weight."""
    p = softmax(s)
    one = p[:, [j]]
    return (p @ v - one * v[j]) / (1 - one)


def without_head(o, W_o, gone):
    D = o.shape[-1]
    rows = W_o[gone * D : (gone + 1) * D]
    whole = np.einsum("bhtd,hdc->btc", o, W_o.reshape(o.shape[1], D, -1))
    y_zero = whole - o[:, gone] @ rows
    return y_zero, y_zero + np.einsum("btd,dc->c", o[:, gone], rows) / (len(o) * o.shape[2])


# --- wrong: mean_of_each_row
# without_head: each sequence has a mean of its own
def without_head(o, W_o, gone):
    B, H, T, D = o.shape
    kept = np.arange(H) != gone
    zero = o * kept[:, None, None]
    usual = o.mean(axis=2, keepdims=True) * ~kept[:, None, None]
    parts = [x.swapaxes(1, 2).reshape(B, T, H * D) @ W_o for x in (zero, zero + usual)]
    return parts[0], parts[1]


# --- wrong: score_is_zero
# without_key: the score becomes 0, not −∞
# without_head: each sequence has a mean of its own
def without_key(s, v, j):
    return softmax(s * (np.arange(s.shape[1]) != j)) @ v


def without_head(o, W_o, gone):
    B, H, T, D = o.shape
    results = []
    for put_there in (0.0, o[:, gone].mean(axis=1, keepdims=True)):
        changed = o.copy()
        changed[:, gone] = put_there
        results.append(np.einsum("bhtd,hdc->btc", changed, W_o.reshape(H, D, -1)))
    return tuple(results)


# --- wrong: weight_is_zero
# without_key: the weights that are left are not renormalised
# without_head: the mean is taken over the features, too
def without_key(s, v, j):
    weights = softmax(s)
    return weights @ v - np.outer(weights[:, j], v[j])


def without_head(o, W_o, gone):
    each = np.split(W_o, o.shape[1])
    others = sum(o[:, h] @ W for h, W in enumerate(each) if h != gone)
    return others, others + np.full(o.shape[3], o[:, gone].mean()) @ each[gone]


# --- wrong: zero_weight
# without_key: the weights that are left are not renormalised
def without_key(s, v, j):
    p = softmax(s)
    return p @ v - np.outer(p[:, j], v[j])
