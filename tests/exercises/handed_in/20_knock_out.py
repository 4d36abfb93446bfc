# --- wrong: zero_weight
# without_key: the weights that are left are not renormalised
def without_key(s, v, j):
    p = softmax(s)
    return p @ v - np.outer(p[:, j], v[j])
