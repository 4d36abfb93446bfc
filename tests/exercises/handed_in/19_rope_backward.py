# --- right: forward_reversed
def rotate_backward(dy, cache):
    cos, sin = cache
    return rotate(dy, cos, -sin)[0]


# --- wrong: forward_again
# rotate_backward: the gradient is turned forward once more
def rotate_backward(dy, cache):
    return rotate(dy, *cache)[0]
