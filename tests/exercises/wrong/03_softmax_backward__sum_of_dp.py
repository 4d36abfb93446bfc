# softmax_backward: the sum is that of dp, without the weights p
def softmax_backward(dp, p):
    return p * (dp - dp.sum(axis=-1, keepdims=True))
