# --- wrong: forward_again
# rotate_backward: the gradient is turned forward once more
def rotate_backward(dy, cache):
    return rotate(dy, *cache)[0]
