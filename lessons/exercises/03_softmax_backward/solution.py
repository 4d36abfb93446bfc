def softmax_backward(dp, p):
    return p * (dp - (p * dp).sum(axis=-1, keepdims=True))
