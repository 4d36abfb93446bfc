def encoder_layer_backward(dy, cache):
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    dsum = back_norm_2(dy)  # the gradient of middle + fed
    dmiddle = dsum + back_feed_forward(dsum)
    dsum = back_norm_1(dmiddle)  # the gradient of x + attended
    dquery, dkey, dvalue = back_attention(dsum)
    return dsum + dquery + dkey + dvalue, dmiddle
