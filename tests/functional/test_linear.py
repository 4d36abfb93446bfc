"""linear is y = x W + b on the last axis, and its backward gives the gradients of x, W and b."""

import numpy as np
import pytest

from minitransformer.functional import linear, linear_backward
from tests.helpers import device, host, random_array, relative_error, same

B, T, I, O = 2, 4, 5, 7


def naive_linear(x, W, b):
    """y_o = sum_i x_i W_io + b_o for one token x (I,)."""
    return [sum(x[i] * W[i, o] for i in range(len(x))) + b[o] for o in range(W.shape[1])]


def example(dtype=np.float64, leading=(B, T)):
    """x, W, b and dy."""
    rng = np.random.default_rng(1)
    shapes = (*leading, I), (I, O), (O,), (*leading, O)
    return [random_array(rng, *shape, dtype=dtype) for shape in shapes]


@pytest.mark.parametrize("leading", [(T,), (B, T), (B, 3, T)], ids=str)
def test_linear_equals_a_sum_over_input_features_and_the_bias_if_there_is_one(leading):
    x, W, b, _ = example(leading=leading)
    for given, bias in (([b], host(b)), ([], np.zeros(O))):
        expected = np.apply_along_axis(naive_linear, -1, host(x), host(W), bias)
        assert relative_error(linear(x, W, *given)[0], expected) <= 1e-12


def test_the_gradient_of_the_weights_is_written_where_the_caller_wants_it():
    x, W, b, dy = example()
    _, cache = linear(x, W, b)
    out = device(np.full((I, O), np.nan))
    expected, got = linear_backward(dy, cache), linear_backward(dy, cache, out)
    assert got[1] is out
    assert all(same(a, b) for a, b in zip(got, expected, strict=True))
