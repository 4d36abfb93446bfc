# softmax_backward: dp is summed without the weights p
def softmax_backward(dp, p):
    return p * (dp - dp.sum(axis=-1, keepdims=True))
