"""linear is y = x W + b on the last axis, and its backward gives the gradients of x, W and b."""

import numpy as np

from minitransformer.functional import linear, linear_backward
from tests.helpers import device, random_array, same

B, T, I, O = 2, 4, 5, 7


def example(dtype=np.float64, leading=(B, T)):
    """x, W, b and dy."""
    rng = np.random.default_rng(1)
    shapes = (*leading, I), (I, O), (O,), (*leading, O)
    return [random_array(rng, *shape, dtype=dtype) for shape in shapes]


def test_the_gradient_of_the_weights_is_written_where_the_caller_wants_it():
    x, W, b, dy = example()
    _, cache = linear(x, W, b)
    out = device(np.full((I, O), np.nan))
    expected, got = linear_backward(dy, cache), linear_backward(dy, cache, out)
    assert got[1] is out
    assert all(same(a, b) for a, b in zip(got, expected, strict=True))
