"""relu is max(0, x) entry by entry, and its backward lets through just what was positive."""

import numpy as np

from minitransformer.functional import relu, relu_backward
from tests.helpers import device, host, random_array, same


def example(dtype=np.float64):
    """x and dy (B, T, F)."""
    rng = np.random.default_rng(0)
    return random_array(rng, 2, 4, 7, dtype=dtype), random_array(rng, 2, 4, 7, dtype=dtype)


def test_relu_is_the_larger_of_zero_and_each_entry():
    x, _ = example()
    expected = [0.0 if value < 0 else value for value in host(x).ravel()]
    assert same(relu(x)[0].ravel(), expected)


def test_relu_gradient_is_zero_where_the_output_is_zero_and_dy_elsewhere():
    x, dy = example()
    y, cache = relu(x)
    y, dx, dy = host(y), host(relu_backward(dy, cache)), host(dy)
    assert (y == 0).any()
    assert (y > 0).any()
    assert (dx[y == 0] == 0).all()
    assert same(dx[y > 0], dy[y > 0])


def test_relu_gradient_at_the_kink_is_zero():
    y, cache = relu(device(np.array([0.0, -0.0, 5e-324])))
    assert same(y, [0.0, 0.0, 5e-324])
    assert same(relu_backward(device(np.array([3.0, 3.0, 3.0])), cache), [0.0, 0.0, 3.0])
