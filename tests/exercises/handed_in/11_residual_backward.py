# --- wrong: whole_sum_through_norm
# pre_norm_backward: the identity path goes through the norm
def pre_norm_backward(dy, cache):
    m, back_sublayer, back_norm = cache
    return back_norm(dy + back_sublayer(m * dy))
