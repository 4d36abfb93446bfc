"""What holds for every function and layer at any size: axes of length 1, rows that see nothing, float32 and float64.

Inputs, parameters and upstream gradients are read-only throughout, and every warning is an error.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer import functional, layers
from minitransformer.core import Layer
from tests.helpers import device, host, protected, random_array
from tests.property_subjects import FUNCTIONS, LAYERS, Sizes, make_subject

length = st.integers(1, 4)
sizes = st.builds(
    Sizes,
    *[length] * 6,
    V=st.integers(1, 6),
    rate=st.sampled_from([0.0, 0.4]),
    share=st.sampled_from([None, 0, 0.4, 0.9]),
)
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])
every_subject = pytest.mark.parametrize("name", [*FUNCTIONS, *LAYERS])


def some_examples(test):
    """Drawn the same way in every run."""
    return settings(deadline=None, max_examples=20, derandomize=True, database=None)(test)


def gradients(subject, dy):
    """All gradients, of inputs and then of parameters, after a forward of their own; on the host."""
    for parameter in subject.parameters:
        parameter.grad[...] = 0
    _, cache = subject.forward(*subject.inputs)
    returned = subject.backward(dy, cache)
    returned = () if returned is None else returned if isinstance(returned, tuple) else (returned,)
    return [host(gradient).copy() for gradient in (*returned, *(parameter.grad for parameter in subject.parameters))]


def values(subject):
    """All arrays that have a gradient, in the order of `gradients`."""
    return [*subject.inputs, *(parameter.data for parameter in subject.parameters)]


def draw_upstream(subject, seed, dtype):
    """A random dy in the shape of the output, and that output."""
    y, _ = subject.forward(*subject.inputs)
    return random_array(np.random.default_rng([seed, 1]), *y.shape, dtype=dtype), y


def slope_along(subject, dy, directions, h=1e-30):
    """d(sum of dy * y)/dt for all values + t * directions, by one complex step."""
    moved = [x + 1j * h * device(v) for x, v in zip(values(subject), directions, strict=True)]
    count = len(subject.inputs)
    before = [parameter.data for parameter in subject.parameters]
    try:
        for parameter, data in zip(subject.parameters, moved[count:], strict=True):
            parameter.data = data
        y, _ = subject.forward(*moved[:count])
    finally:
        for parameter, data in zip(subject.parameters, before, strict=True):
            parameter.data = data
    return host((dy * y).sum()).imag / h


@every_subject
@some_examples
@given(n=sizes, seed=seeds, dtype=dtypes)
def test_gradients_are_finite_and_have_the_shapes_and_dtypes_of_what_they_are_gradients_of(name, n, seed, dtype):
    subject = make_subject(name, n, seed, dtype)
    dy, y = draw_upstream(subject, seed, dtype)
    got = gradients(subject, dy)
    expected = values(subject)
    assert y.dtype == dtype
    assert [gradient.shape for gradient in got] == [value.shape for value in expected]
    assert {gradient.dtype for gradient in got} == {np.dtype(dtype)}
    assert all(np.isfinite(array).all() for array in (host(y), *got))


@every_subject
@some_examples
@given(n=sizes, seed=seeds, dtype=dtypes)
def test_backward_is_linear_in_the_upstream_gradient(name, n, seed, dtype):
    """To the last bit for the factors 2, -1 and 0, which change no digit of any product that has all its digits."""
    subject = make_subject(name, n, seed, dtype)
    dy, _ = draw_upstream(subject, seed, dtype)
    once = gradients(subject, dy)
    for factor in (2, -1, 0):
        scaled = protected(device(np.asarray(factor * host(dy), dtype)))
        for got, gradient in zip(gradients(subject, scaled), once, strict=True):
            assert np.abs(got - factor * gradient).max() <= np.finfo(dtype).tiny


@every_subject
@some_examples
@given(n=sizes, seed=seeds)
def test_all_gradients_together_equal_a_complex_step_along_a_random_direction(name, n, seed):
    subject = make_subject(name, n, seed, np.float64)
    dy, _ = draw_upstream(subject, seed, np.float64)
    got = gradients(subject, dy)
    rng = np.random.default_rng([seed, 2])
    directions = [rng.standard_normal(gradient.shape) for gradient in got]
    slope = slope_along(subject, dy, directions)
    along = sum((gradient * v).sum() for gradient, v in zip(got, directions, strict=True))
    norm = np.sqrt(sum((gradient * gradient).sum() for gradient in got))  # the size of a slope along such a direction
    assert abs(along - slope) <= 1e-10 * norm


def test_every_public_function_and_layer_is_among_the_subjects():
    pairs = {name for name in functional.__all__ if f"{name}_backward" in functional.__all__}
    assert pairs <= {*FUNCTIONS, "scaled_dot_product_attention"}  # the last is called attention here
    classes = {name for name in layers.__all__ if issubclass(getattr(layers, name), Layer)}
    assert classes <= {kind for kind, _ in LAYERS.values()}
