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
