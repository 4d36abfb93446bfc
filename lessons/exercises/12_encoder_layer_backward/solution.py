def encoder_layer_backward(dy, cache):
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    ds = back_norm_2(dy)  # the gradient of a + f
    da = ds + back_feed_forward(ds)
    ds = back_norm_1(da)  # the gradient of x + s
    dquery, dkey, dvalue = back_attention(ds)
    return ds + dquery + dkey + dvalue, da
