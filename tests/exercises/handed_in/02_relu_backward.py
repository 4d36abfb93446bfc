# --- right: sign
def relu_backward(dy, y):
    return dy * np.sign(y)


# --- wrong: sign_of_dy
# relu_backward: dx does not change its sign when dy does: which step looks at signs?
def relu_backward(dy, y):
    return np.maximum(dy, 0) * (y > 0)
