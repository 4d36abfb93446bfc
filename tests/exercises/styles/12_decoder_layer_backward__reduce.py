def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache

    def add(ds, back):
        return ds + back(ds)

    da = back_norm_2(add(back_norm_3(dy), back_feed_forward))
    dquery, *dmemory = back_cross(da)
    return add(back_norm_1(da + dquery), lambda ds: sum(back_self(ds))), sum(dmemory)


def decoder_backward(dy, backs):
    *others, last = backs
    dx, dmemory = last(dy)
    if not others:
        return dx, dmemory
    dx, rest = decoder_backward(dx, others)
    return dx, dmemory + rest
