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


# --- wrong: first_layer_first
# decoder_backward: the layers come in the order of the forward
def decoder_backward(dy, backs):
    total = 0
    for back in backs:
        dy, dmemory = back(dy)
        total = total + dmemory
    return dy, total


# --- wrong: key_alone
# decoder_layer_backward: the memory gets only the gradient of its keys
def decoder_layer_backward(dy, cache):
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    dc = back_norm_3(dy)
    dc = dc + back_feed_forward(dc)
    da = back_norm_2(dc)
    dquery, dkey, dvalue = back_cross(da)
    dx = back_norm_1(da + dquery)
    return dx + sum(back_self(dx)), dkey


# --- wrong: same_gradient_for_all
# decoder_backward: every layer gets the same dy
def decoder_backward(dy, backs):
    results = [back(dy) for back in backs]
    return results[0][0], sum(result[1] for result in results)
