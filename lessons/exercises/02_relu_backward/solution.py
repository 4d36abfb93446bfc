def relu_backward(dy, y):
    return dy * (y > 0)
