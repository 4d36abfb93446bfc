def relu_backward(dy, y):
    dx = np.zeros_like(dy)
    for index in np.ndindex(*y.shape):
        if y[index] > 0:
            dx[index] = dy[index]
    return dx
