# --- right: einsum
def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    at_sum = back_norm_3(dy)
    at_sum = back_norm_2(at_sum + back_feed_forward(at_sum))
    da, *of_memory = back_cross(at_sum)
    at_sum = back_norm_1(at_sum + da)
    dx = np.einsum("pbtc->btc", [at_sum, *back_self(at_sum)])
    return dx, np.einsum("pbsc->bsc", of_memory)


def decoder_backward(dy, backs):
    if not backs:
        return dy, 0.0
    dx, part = backs[-1](dy)
    dx, rest = decoder_backward(dx, backs[:-1])
    return dx, part + rest


# --- wrong: same_gradient_for_all
# decoder_backward: every layer gets the same dy
def decoder_backward(dy, backs):
    results = [back(dy) for back in backs]
    return results[0][0], sum(result[1] for result in results)
