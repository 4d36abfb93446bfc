def rotate_backward(dy, cache):
    cos, sin = cache
    turned = (dy[..., 0::2] + 1j * dy[..., 1::2]) * (cos - 1j * sin)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(dy.shape)
