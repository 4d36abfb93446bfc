# --- wrong: gradient_of_p_squared
# softmax_backward: each row of ds sums to 0: what one key gains, the others lose
def softmax_backward(dp, cache):
    p = cache
    return p * dp - p * p * dp.sum(-1, keepdims=True)
