# softmax_backward: the softmax is taken entry by entry, as if it were a sigmoid
def softmax_backward(dp, p):
    return dp * p * (1 - p)
