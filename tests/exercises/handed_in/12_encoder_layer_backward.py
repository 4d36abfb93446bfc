# --- right: einsum
def encoder_layer_backward(dy, cache):
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    at_sum = back_norm_2(dy)
    da = np.einsum("pbtc->btc", [at_sum, back_feed_forward(at_sum)])
    at_sum = back_norm_1(da)
    return np.einsum("pbtc->btc", [at_sum, *back_attention(at_sum)]), da
