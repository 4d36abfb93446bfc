# relu_backward: dx does not change its sign when dy does: which step treats signs apart?
def relu_backward(dy, y):
    return np.maximum(dy, 0) * (y > 0)
