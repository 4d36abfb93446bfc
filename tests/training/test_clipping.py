"""Clipping: one norm over all gradients together, one factor for all, and nothing done where nothing is to do."""

import math

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.training import clip_grad_norm, clipping
from tests.helpers import device, host, relative_error

SHAPES = [(3, 4), (5,), (2, 1, 3)]


def _parameters_with_gradients(dtype=np.float64, scale=1.0):
    rng = np.random.default_rng(0)
    parameters = [Parameter(np.zeros(shape, dtype)) for shape in SHAPES]
    for parameter in parameters:
        parameter.grad[...] = device(scale * rng.standard_normal(parameter.grad.shape))
    return parameters, [parameter.grad.copy() for parameter in parameters]


def _norm_of_all(arrays):
    total = 0.0
    for array in arrays:
        for number in host(array).ravel().tolist():
            total += number * number
    return math.sqrt(total)


@pytest.mark.parametrize("max_norm", [1e-3, 0.3, 2.0])
def test_clipped_gradients_have_the_limit_as_norm_and_keep_their_direction(max_norm):
    parameters, before = _parameters_with_gradients()
    clip_grad_norm(parameters, max_norm)
    assert math.isclose(_norm_of_all([p.grad for p in parameters]), max_norm, rel_tol=1e-6)  # the divisor has + 1e-6
    factor = max_norm / (_norm_of_all(before) + 1e-6)
    for parameter, gradient in zip(parameters, before, strict=True):
        assert relative_error(parameter.grad, factor * gradient) < 1e-14


@pytest.mark.parametrize("block", [1, 2, 5, 12])
def test_the_norm_is_that_of_all_blocks_of_a_tensor_however_many(monkeypatch, block):
    monkeypatch.setattr(clipping, "BLOCK", block)
    parameters, before = _parameters_with_gradients()
    assert math.isclose(float(clip_grad_norm(parameters, 0.3)), _norm_of_all(before), rel_tol=1e-14)


@pytest.mark.parametrize("max_norm", [5.0, 1e9, math.inf])
def test_gradients_below_the_limit_are_untouched(max_norm):
    parameters, before = _parameters_with_gradients()
    assert _norm_of_all(before) < 5.0
    norm = clip_grad_norm(parameters, max_norm)
    assert math.isclose(float(norm), _norm_of_all(before), rel_tol=1e-14)
    for parameter, gradient in zip(parameters, before, strict=True):
        np.testing.assert_array_equal(host(parameter.grad), host(gradient))


@pytest.mark.parametrize("max_norm", [0.1, math.inf])
def test_zero_gradient_stays_zero(max_norm):
    parameters, _ = _parameters_with_gradients(scale=0.0)
    assert clip_grad_norm(parameters, max_norm) == 0.0
    assert not any(parameter.grad.any() for parameter in parameters)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_clipping_is_in_place_and_keeps_the_dtype(dtype):
    parameters, _ = _parameters_with_gradients(dtype)
    arrays = [parameter.grad for parameter in parameters]
    norm = clip_grad_norm(parameters, 0.5)
    assert norm.dtype == dtype
    for parameter, array in zip(parameters, arrays, strict=True):
        assert parameter.grad is array
        assert array.dtype == dtype


def test_parameters_may_come_from_an_iterator():
    parameters, before = _parameters_with_gradients()
    clip_grad_norm(iter(parameters), 0.5)
    assert _norm_of_all([parameter.grad for parameter in parameters]) < 0.6 < _norm_of_all(before)
