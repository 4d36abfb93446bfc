# encoder_layer_backward: the path around the attention is forgotten
def encoder_layer_backward(dy, cache):
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    ds = back_norm_2(dy)
    da = ds + back_feed_forward(ds)
    ds = back_norm_1(da)
    return sum(back_attention(ds)), da
