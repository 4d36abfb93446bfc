"""The RMSNorm layer starts as plain normalisation, scales by what it has learnt, and checks its input."""

import numpy as np
import pytest

from minitransformer.layers import RMSNorm
from tests.functional.test_rms_norm import naive_rms_norm
from tests.helpers import host, random_array, randomize, relative_error

B, T, C = 2, 4, 7


def example():
    return random_array(np.random.default_rng(21), B, T, C)


def test_rms_norm_layer_equals_its_formula_token_by_token():
    layer, x = randomize(RMSNorm(C, eps=0.2, dtype=np.float64)), example()
    expected = np.apply_along_axis(naive_rms_norm, -1, host(x), host(layer.gamma.data), 0.2)
    assert relative_error(layer(x), expected) <= 1e-14


def test_rms_norm_layer_starts_with_scale_one_and_has_no_other_parameter():
    layer, x = RMSNorm(C, dtype=np.float64), example()
    expected = np.apply_along_axis(naive_rms_norm, -1, host(x), np.ones(C))
    assert relative_error(layer(x), expected) <= 1e-14
    assert [name for name, _ in layer.named_parameters()] == ["gamma"]


def test_rms_norm_layer_used_twice_gets_the_sum_of_both_gradients():
    x, dy = example(), random_array(np.random.default_rng(22), B, T, C)
    layer, once, again = (randomize(RMSNorm(C, dtype=np.float64)) for _ in range(3))
    once.backward(dy, once.forward(x)[1])
    again.backward(x, again.forward(dy)[1])
    (_, first), (_, second) = layer.forward(x), layer.forward(dy)  # both uses before any backward
    layer.backward(dy, first)
    layer.backward(x, second)
    assert relative_error(layer.gamma.grad, once.gamma.grad + again.gamma.grad) <= 1e-15


def test_rms_norm_refuses_a_wrong_width_with_both_widths():
    with pytest.raises(ValueError, match=r"RMSNorm takes an array of shape \(\.\.\., 7\), got \(2, 4, 1\)"):
        RMSNorm(C)(np.zeros((B, T, 1), np.float32))  # a width of 1 would broadcast silently


def test_rms_norm_refuses_another_dtype():
    with pytest.raises(TypeError, match="weights of float32 and cannot take an input of float64"):
        RMSNorm(C)(example())
