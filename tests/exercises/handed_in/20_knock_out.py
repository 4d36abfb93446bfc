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


# --- wrong: zero_weight
# without_key: the weights that are left are not renormalised
def without_key(s, v, j):
    p = softmax(s)
    return p @ v - np.outer(p[:, j], v[j])
