"""The activations of single entries, and gates: kinks, far tails, and a gate that is closed or nearly open."""

import math

import numpy as np
import pytest

from minitransformer import functional
from minitransformer.functional import relu, relu_backward
from minitransformer.functional.since_2017.activations import GATED
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


@pytest.mark.parametrize("name", [*GATED, "glu"])
def test_a_closed_gate_gets_no_gradient_however_large_what_it_holds_back(name):
    B, T, F = 2, 4, 5
    x = np.full((B, T, 2 * F), 1e25, np.float32)
    x[..., :F] = -1e3  # the gates
    gated, backward = pair(name)
    y, cache = gated(device(x))
    dx = host(backward(device(np.full((B, T, F), 1e25, np.float32)), cache))
    assert same(y, np.zeros((B, T, F)))
    assert same(dx, np.zeros((B, T, 2 * F)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slope_of_a_gate_that_is_nearly_open_has_all_its_digits(dtype):
    gates = np.array([5.0, 12.0, 20.0, 60.0])
    x = np.concatenate([gates, np.ones(4)]).astype(dtype)
    _, cache = functional.glu(device(x))
    dgate = host(functional.glu_backward(device(np.ones(4, dtype)), cache))[:4]
    right = [math.exp(-gate) / (1 + math.exp(-gate)) ** 2 for gate in gates]
    np.testing.assert_allclose(dgate, right, rtol=4 * np.finfo(dtype).eps)
