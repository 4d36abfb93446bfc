# --- right: forward_reversed
def rotate_backward(dy, cache):
    cos, sin = cache
    return rotate(dy, cos, -sin)[0]


# --- wrong: forward_again
# rotate_backward: the gradient is turned forward once more
def rotate_backward(dy, cache):
    return rotate(dy, *cache)[0]


# --- wrong: halves
# rotate_backward: feature i is paired with feature i + D/2
def rotate_backward(dy, cache):
    cos, sin = cache
    first, second = np.split(dy, 2, axis=-1)
    return np.concatenate([first * cos + second * sin, second * cos - first * sin], axis=-1)
