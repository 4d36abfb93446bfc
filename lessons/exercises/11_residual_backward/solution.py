def post_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    ds = back_norm(dy)  # the gradient of the sum x + m f
    return ds + back_sublayer(m * ds)


def pre_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    dn = back_sublayer(m * dy)
    return dy + back_norm(dn)
