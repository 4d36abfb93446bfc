# decoder_layer_backward: the memory gets only the gradient of its keys
def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    dc = back_norm_3(dy)
    dc = dc + back_feed_forward(dc)
    da = back_norm_2(dc)
    dquery, dkey, dvalue = back_cross(da)
    dx = back_norm_1(da + dquery)
    return dx + sum(back_self(dx)), dkey
