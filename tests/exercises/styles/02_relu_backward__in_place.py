def relu_backward(dy, y):
    dx = dy.copy()
    dx[y == 0] = 0
    return dx
