# rotate_backward: feature i is paired with feature i + D/2
def rotate_backward(dy, cache):
    cos, sin = cache
    first, second = np.split(dy, 2, axis=-1)
    return np.concatenate([first * cos + second * sin, second * cos - first * sin], axis=-1)
