# --- right: from_logarithms
def softmax_backward(dp, p):
    dlog = dp * p
    return [row - weights * row.sum() for row, weights in zip(dlog, p)]


# --- wrong: diagonal_only
# softmax_backward: the softmax is differentiated entry by entry, with p (1 − p)
def softmax_backward(dp, p):
    return dp * p * (1 - p)
