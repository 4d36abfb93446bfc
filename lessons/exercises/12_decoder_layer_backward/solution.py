def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    ds = back_norm_3(dy)  # the gradient of c + f
    dc = ds + back_feed_forward(ds)
    ds = back_norm_2(dc)  # the gradient of a + r
    dquery, dkey, dvalue = back_cross(ds)
    da = ds + dquery
    dmemory = dkey + dvalue
    ds = back_norm_1(da)  # the gradient of x + s
    dquery, dkey, dvalue = back_self(ds)
    return ds + dquery + dkey + dvalue, dmemory


def decoder_backward(dy, backs):
    dmemory = 0.0
    for back in reversed(backs):
        dy, part = back(dy)
        dmemory = dmemory + part
    return dy, dmemory
