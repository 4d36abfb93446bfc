"""A gated activation is a(gate) * up, of the two halves of its input; each half gets the gradient that is its own."""

import math

import numpy as np
import pytest

from minitransformer import functional
from tests.helpers import device, host, same

B, T, F = 2, 4, 5
every_one = pytest.mark.parametrize("name", ["geglu", "geglu_tanh", "swiglu", "glu"])


def pair(name):
    return getattr(functional, name), getattr(functional, f"{name}_backward")


@every_one
def test_a_closed_gate_gets_no_gradient_however_large_what_it_holds_back(name):
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
