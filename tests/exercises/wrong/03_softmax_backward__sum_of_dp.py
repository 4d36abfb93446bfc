# softmax_backward: the sum of dp is subtracted, not its weighted mean
def softmax_backward(dp, p):
    return p * (dp - dp.sum(axis=-1, keepdims=True))
