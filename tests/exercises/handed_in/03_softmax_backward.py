# --- right: from_logarithms
def softmax_backward(dp, p):
    dlog = dp * p
    return [row - weights * row.sum() for row, weights in zip(dlog, p)]


# --- wrong: diagonal_only
# softmax_backward: the softmax is differentiated entry by entry, with p (1 − p)
def softmax_backward(dp, p):
    return dp * p * (1 - p)


# --- wrong: sum_of_dp
# softmax_backward: the sum of dp is subtracted, not its weighted mean
def softmax_backward(dp, p):
    return p * (dp - dp.sum(axis=-1, keepdims=True))
