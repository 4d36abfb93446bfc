def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    dsum = back_norm_3(dy)  # the gradient of second + fed
    dsecond = dsum + back_feed_forward(dsum)
    dsum = back_norm_2(dsecond)  # the gradient of first + read
    dquery, dkey, dvalue = back_cross(dsum)
    dfirst = dsum + dquery
    dM = dkey + dvalue
    dsum = back_norm_1(dfirst)  # the gradient of x + attended
    dquery, dkey, dvalue = back_self(dsum)
    return dsum + dquery + dkey + dvalue, dM


def decoder_backward(dy, backs):
    dM = 0.0
    for back in reversed(backs):
        dy, share = back(dy)
        dM = dM + share
    return dy, dM
