def post_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    dsum = back_norm(dy)  # the gradient of the sum x + m f
    return dsum + back_sublayer(m * dsum)


def pre_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    dn = back_sublayer(m * dy)
    return dy + back_norm(dn)
