def rotate_backward(dy, cache):
    cos, sin = cache
    first, second = dy[..., 0::2], dy[..., 1::2]
    dx = np.empty_like(dy)
    dx[..., 0::2] = first * cos + second * sin
    dx[..., 1::2] = second * cos - first * sin
    return dx
