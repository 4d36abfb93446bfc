# --- right: einsum
def post_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    paths = [lambda ds: ds, lambda ds: back_sublayer(np.einsum("btc,btc->btc", m, ds))]
    return np.einsum("pbtc->btc", [path(back_norm(dy)) for path in paths])


def pre_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    return np.add(dy, back_norm(back_sublayer(np.where(m == 0, 0, dy) * m.max())))


# --- wrong: whole_sum_through_norm
# pre_norm_backward: the identity path goes through the norm
def pre_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    return back_norm(dy + back_sublayer(m * dy))
