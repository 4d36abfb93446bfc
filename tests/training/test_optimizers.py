"""Adam and AdamW against the formula worked out number by number, and the promised size of a step."""

import math

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.training import Adam, optimizers
from minitransformer.training.optimizers import adam_update
from tests.helpers import device, host, relative_error

SHAPES = [(2, 3), (5,), (), (1, 4, 2)]


def _parameters(rng, dtype=np.float64):
    return [Parameter(np.asarray(rng.standard_normal(shape), dtype=dtype)) for shape in SHAPES]


def _adam_one_number(theta, gradients, rates, beta1, beta2, eps, weight_decay):
    """Kingma and Ba (2015), algorithm 1, for a single number, over all its steps, with the decay of AdamW."""
    m = v = 0.0
    for t, (g, lr) in enumerate(zip(gradients, rates, strict=True), start=1):
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        theta = (1 - lr * weight_decay) * theta - lr * (m / (1 - beta1**t)) / (math.sqrt(v / (1 - beta2**t)) + eps)
    return theta


@pytest.mark.parametrize(
    ("options", "beta1", "beta2", "eps", "weight_decay"),
    [({}, 0.9, 0.98, 1e-9, 0.0), ({"betas": (0.7, 0.95), "eps": 0.3, "weight_decay": 0.4}, 0.7, 0.95, 0.3, 0.4)],
)
def test_adam_equals_the_formula_number_by_number_and_only_matrices_decay(options, beta1, beta2, eps, weight_decay):
    rng = np.random.default_rng(0)
    parameters = _parameters(rng)
    starts = [parameter.data.copy() for parameter in parameters]
    rates = [0.1, 0.3, 0.05, 0.2, 0.7, 0.01]
    gradients = [[rng.standard_normal(shape) for shape in SHAPES] for _ in rates]
    optimizer = Adam(parameters, **options)
    for step_gradients, lr in zip(gradients, rates, strict=True):
        for parameter, gradient in zip(parameters, step_gradients, strict=True):
            parameter.grad[...] = device(gradient)
        optimizer.lr = lr
        optimizer.step()
    for i, (parameter, start) in enumerate(zip(parameters, starts, strict=True)):
        moved, start = host(parameter.data - start), host(start)
        expected, decay = np.empty(start.shape), weight_decay * (start.ndim > 1)
        for where in np.ndindex(start.shape):
            series = [float(step_gradients[i][where]) for step_gradients in gradients]
            expected[where] = _adam_one_number(float(start[where]), series, rates, beta1, beta2, eps, decay)
        assert relative_error(moved, expected - start) < 1e-12, f"parameter {i}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_step_is_in_place_keeps_the_dtype_and_leaves_the_gradient(dtype):
    rng = np.random.default_rng(3)
    parameters = _parameters(rng, dtype)
    optimizer = Adam(iter(parameters), lr=0.1)  # any iterable, read once
    arrays = [parameter.data for parameter in parameters]
    gradients = [np.asarray(rng.standard_normal(shape), dtype=dtype) for shape in SHAPES]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad[...] = device(gradient)
    optimizer.step()
    optimizer.step()
    for parameter, array, gradient in zip(parameters, arrays, gradients, strict=True):
        assert parameter.data is array, "whoever holds the array must see the step"
        assert array.dtype == dtype
        np.testing.assert_array_equal(host(parameter.grad), gradient)
    assert {optimizer.m.dtype, optimizer.v.dtype, optimizer.weights.dtype} == {np.dtype(dtype)}


@pytest.mark.parametrize("block", [1, 4, 24, 25])
def test_blocks_of_any_size_give_the_same_bits(monkeypatch, block):
    after = []
    for size in (optimizers.BLOCK, block):
        monkeypatch.setattr(optimizers, "BLOCK", size)
        rng = np.random.default_rng(5)
        parameter = Parameter(rng.standard_normal((6, 4)))
        optimizer = Adam([parameter], lr=0.1)
        for _ in range(3):
            parameter.grad[...] = device(rng.standard_normal((6, 4)))
            optimizer.step()
        after.append(host(parameter.data))
    np.testing.assert_array_equal(after[1], after[0])


def test_a_transposed_or_strided_parameter_moves_as_any_other():
    rng = np.random.default_rng(6)
    start, gradient = rng.standard_normal((2, 3, 4))
    strided = np.zeros((3, 8))[:, ::2]
    strided[...] = start
    after = []
    for data in (start.copy(), np.asfortranarray(start), strided):
        parameter = Parameter(data)
        parameter.grad[...] = device(gradient)
        Adam([parameter], lr=0.1).step()
        after.append(host(parameter.data))
    assert (after[0] != start).all()
    np.testing.assert_array_equal(after[1], after[0])
    np.testing.assert_array_equal(after[2], after[0])


def test_parameters_become_views_of_one_vector_with_their_values_and_gradients():
    rng = np.random.default_rng(7)
    parameters = _parameters(rng)
    before = [host(parameter.data).copy() for parameter in parameters]
    parameters[1].grad[...] = 2.0
    optimizer = Adam(parameters)
    np.testing.assert_array_equal(host(optimizer.weights), np.concatenate([array.reshape(-1) for array in before]))
    optimizer.weights[...] = 3.0
    assert all((parameter.data == 3.0).all() for parameter in parameters)
    assert [float(parameter.grad.sum()) for parameter in parameters] == [0.0, 10.0, 0.0, 0.0]
    optimizer.zero_grad()
    assert not any(parameter.grad.any() for parameter in parameters)


def test_the_papers_numbers_are_the_defaults():
    optimizer = Adam(_parameters(np.random.default_rng(0)))
    assert (optimizer.lr, optimizer.betas, optimizer.eps, optimizer.weight_decay) == (1e-3, (0.9, 0.98), 1e-9, 0.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *(
            ({"betas": betas}, "betas must be at least 0 and less than 1")
            for betas in ((1.0, 0.9), (0.9, 1.0), (-0.1, 0.9))
        ),
        *(({"weight_decay": decay}, "weight_decay must be at least 0") for decay in (-0.1, math.nan)),
    ],
)
def test_numbers_outside_their_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Adam(_parameters(np.random.default_rng(0)), **options)


@pytest.mark.parametrize("kind", [float, np.asarray], ids=["number", "0-d array"])
@pytest.mark.parametrize("scale", [0.25, 3.0])
def test_a_scaled_step_is_that_of_the_scaled_gradient(scale, kind):
    after = []
    for factor, options in ((scale, {}), (1.0, {"scale": kind(scale)})):
        rng = np.random.default_rng(10)
        parameter = Parameter(rng.standard_normal((3, 4)))
        optimizer = Adam([parameter], lr=0.1, eps=0.2)
        for _ in range(3):
            parameter.grad[...] = device(factor * rng.standard_normal((3, 4)))
            optimizer.step(**options)
        after.append(host(parameter.data))
    assert relative_error(after[1], after[0]) < 1e-14


def _update(**changes):
    """One step of `adam_update` on arrays of one shape, or with changes -> data, m and v."""
    rng = np.random.default_rng(11)
    arrays = {name: device(rng.standard_normal((2, 3)) ** 2) for name in ("data", "grad", "m", "v")}
    arrays |= {name: value for name, value in changes.items() if name in arrays}
    options = {name: value for name, value in changes.items() if name not in arrays}
    adam_update(*arrays.values(), 0.1, (0.7, 0.9), 0.3, 2, **options)
    return [host(arrays[name]) for name in ("data", "m", "v")]


def test_one_update_is_the_formula_and_its_scale_is_1_by_default():
    rng = np.random.default_rng(11)
    data, g, m, v = (rng.standard_normal((2, 3)) ** 2 for _ in range(4))
    m, v = 0.7 * m + 0.3 * g, 0.9 * v + 0.1 * g**2
    data = data - 0.1 * (m / (1 - 0.7**2)) / (np.sqrt(v / (1 - 0.9**2)) + 0.3)
    for got, expected in zip(_update(), (data, m, v), strict=True):
        assert relative_error(got, expected) < 1e-14


@pytest.mark.parametrize("name", ["grad", "m", "v"])
def test_an_update_with_arrays_of_different_shapes_is_refused_by_the_name(name):
    with pytest.raises(ValueError, match=rf"^{name} must be of shape \(2, 3\), got \(3, 2\)"):
        _update(**{name: device(np.ones((3, 2)))})


def test_a_scale_that_is_no_single_number_is_refused():
    with pytest.raises(ValueError, match=r"^scale must be of shape \(\), got \(2, 3\)"):
        _update(scale=device(np.ones((2, 3))))


@pytest.mark.parametrize("name", ["data", "m", "v"])
def test_an_array_that_cannot_be_changed_in_place_as_one_vector_is_refused(name):
    with pytest.raises(ValueError, match=f"^{name} must be contiguous to be changed in place$"):
        _update(**{name: device(np.ones((3, 2))).T})


def test_the_gradient_alone_may_be_strided():
    gradient = device(np.random.default_rng(12).standard_normal((3, 2)))
    for got, expected in zip(_update(grad=gradient.T), _update(grad=gradient.T.copy()), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_an_update_of_no_numbers_changes_nothing():
    assert all(array.size == 0 for array in _update(**{name: np.ones((0, 3)) for name in ("data", "grad", "m", "v")}))
