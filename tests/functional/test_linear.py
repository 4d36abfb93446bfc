"""linear is y = x W + b on the last axis, and its backward gives the gradients of x, W and b."""

import numpy as np
import pytest

from minitransformer.functional import linear, linear_backward
from tests.helpers import derivatives, device, host, random_array, relative_error, same

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
def test_linear_equals_a_sum_over_input_features(leading):
    x, W, b, _ = example(leading=leading)
    expected = np.apply_along_axis(naive_linear, -1, host(x), host(W), host(b))
    assert relative_error(linear(x, W, b)[0], expected) <= 1e-12


def test_linear_without_bias_is_the_product_alone():
    x, W, _, _ = example()
    expected = np.apply_along_axis(naive_linear, -1, host(x), host(W), np.zeros(O))
    assert relative_error(linear(x, W)[0], expected) <= 1e-12


@pytest.mark.parametrize("leading", [(T,), (B, 3, T)], ids=str)  # the table of gradient checks has (B, T)
def test_linear_backward_equals_complex_step_derivatives(leading):
    x, W, b, dy = example(leading=leading)
    expected = derivatives(lambda x, W, b: linear(x, W, b)[0], dy, x, W, b)
    _, cache = linear(x, W, b)
    for got, wanted in zip(linear_backward(dy, cache), expected, strict=True):
        assert relative_error(got, wanted) <= 1e-12


@pytest.mark.parametrize(
    ("W", "b", "message"),
    [
        ((I,), (I,), r"W must be of shape \(5, 5\), got \(5,\)"),
        ((I + 1, O), (O,), r"W must be of shape \(5, 7\), got \(6, 7\)"),
        ((1, I, O), (O,), r"W must be of shape \(5, 7\), got \(1, 5, 7\)"),
        ((I, O), (1,), r"b must be of shape \(7,\), got \(1,\)"),
        ((I, O), (B, T, O), r"b must be of shape \(7,\), got \(2, 4, 7\)"),
    ],
)
def test_weights_and_biases_that_do_not_fit_are_refused(W, b, message):
    with pytest.raises(ValueError, match=message):
        linear(device(np.ones((B, T, I))), device(np.ones(W)), device(np.ones(b)))


def test_the_gradient_of_the_weights_is_written_where_the_caller_wants_it():
    x, W, b, dy = example()
    _, cache = linear(x, W, b)
    out = device(np.full((I, O), np.nan))
    expected, got = linear_backward(dy, cache), linear_backward(dy, cache, out)
    assert got[1] is out
    assert all(same(a, b) for a, b in zip(got, expected, strict=True))
