# post_norm_backward: the dropout mask comes after the sub-layer on the way back
def post_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    ds = back_norm(dy)
    return ds + m * back_sublayer(ds)
