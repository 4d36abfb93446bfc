"""The activations of single entries: their formulas, what holds at x and -x, kinks and far tails."""

import numpy as np
import pytest

from minitransformer import functional
from minitransformer.functional import relu, relu_backward
from tests.helpers import device, host, same

SMOOTH = ("gelu", "gelu_tanh", "silu")
every_smooth_one = pytest.mark.parametrize("name", SMOOTH)


def pair(name):
    return getattr(functional, name), getattr(functional, f"{name}_backward")


def test_relu_gradient_at_the_kink_is_zero():
    y, cache = relu(device(np.array([0.0, -0.0, 5e-324])))
    assert same(y, [0.0, 0.0, 5e-324])
    assert same(relu_backward(device(np.array([3.0, 3.0, 3.0])), cache), [0.0, 0.0, 3.0])


@every_smooth_one
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_out_it_is_the_identity_or_nothing_and_no_number_overflows(name, dtype):
    far = np.array([200.0, 800.0, 1e4], dtype)
    activation, backward = pair(name)
    for x, slope in ((far, 1.0), (-far, 0.0)):
        y, cache = activation(device(x))
        dx = backward(device(np.ones(3, dtype)), cache)
        assert np.abs(host(y) - slope * x).max() <= 1e-80
        assert np.abs(host(dx) - slope).max() <= 1e-80
