# --- right: from_logarithms
def softmax_backward(dp, p):
    dlog = dp * p
    return [row - weights * row.sum() for row, weights in zip(dlog, p)]
