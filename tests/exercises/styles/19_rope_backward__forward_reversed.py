def rotate_backward(dy, cache):
    cos, sin = cache
    return rotate(dy, cos, -sin)[0]
