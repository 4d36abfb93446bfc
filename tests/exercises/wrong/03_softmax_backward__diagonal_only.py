# softmax_backward: the softmax is differentiated entry by entry, with p (1 − p)
def softmax_backward(dp, p):
    return dp * p * (1 - p)
