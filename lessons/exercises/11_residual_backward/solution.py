def post_norm_backward(dy, cache):
    mask, back_sublayer, back_norm = cache
    dsum = back_norm(dy)  # the gradient of x + mask * f_x
    return dsum + back_sublayer(mask * dsum)


def pre_norm_backward(dy, cache):
    mask, back_sublayer, back_norm = cache
    dnormed = back_sublayer(mask * dy)
    return dy + back_norm(dnormed)
