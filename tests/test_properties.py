"""What holds for every function, layer and model at any sizes and in any switch position, in float32 and float64.

The subjects are those of the gradient checks, at drawn sizes. Inputs, parameters and upstream gradients are read-only
throughout, and every warning is an error.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer.gradcheck.subjects import SUBJECTS, Sizes, select_subjects
from tests.helpers import device, host, protected, random_array

length = st.integers(1, 4)
sizes = st.builds(Sizes, *[length] * 6, V=st.integers(1, 6)).filter(lambda n: n.C % 2 == 0)  # as sinusoids need
seeds = st.integers(0, 2**32 - 1)
dtypes = st.sampled_from([np.float32, np.float64])
every_group = pytest.mark.parametrize("group", dict.fromkeys(subject.group for subject in SUBJECTS.values()))


def some_examples(test):
    """Drawn the same way in every run."""
    return settings(deadline=None, derandomize=True, database=None)(test)


def build(subject, n, seed, dtype):
    """The Problem of a row, with its inputs on the device; nothing in it can be overwritten."""
    problem = subject.build(n, np.random.default_rng(seed), dtype)
    for parameter in problem.parameters.values():
        protected(parameter.data)
    return problem._replace(inputs={name: protected(device(x)) for name, x in problem.inputs.items()})


def draw_upstream(problem, seed, dtype):
    """A random dy in the shape of the output, and that output."""
    y, _ = problem.forward(*problem.inputs.values())
    return random_array(np.random.default_rng([seed, 1]), *y.shape, dtype=dtype), y


def gradients(problem, dy):
    """{name: gradient} after a forward of their own; on the host."""
    _, cache = problem.forward(*problem.inputs.values())
    return {name: host(gradient).copy() for name, gradient in problem.gradients(dy, cache).items()}


def values(problem):
    """{name: array} of everything that has a gradient, in the order of `gradients`."""
    return problem.inputs | {name: parameter.data for name, parameter in problem.parameters.items()}


def slope_along(problem, dy, directions, h=1e-30):
    """d(sum of dy * y)/dt for all values + t * directions, by one complex step."""
    moved = {name: x + 1j * h * device(directions[name]) for name, x in values(problem).items()}
    before = {name: parameter.data for name, parameter in problem.parameters.items()}
    try:
        for name, parameter in problem.parameters.items():
            parameter.data = moved[name]
        y, _ = problem.forward(*(moved[name] for name in problem.inputs))
    finally:
        for name, parameter in problem.parameters.items():
            parameter.data = before[name]
    return host((dy * y).sum()).imag / h


def check_finite_and_linear(problem, seed, dtype):
    """Results of the right shapes and dtypes, and a backward pass that is linear in the upstream gradient.

    To the last bit for the factors -2 and 0, which change no digit of any product that has all its digits.
    """
    dy, y = draw_upstream(problem, seed, dtype)
    once, expected = gradients(problem, dy), values(problem)
    assert y.dtype == dtype
    assert {name: gradient.shape for name, gradient in once.items()} == {name: x.shape for name, x in expected.items()}
    assert {gradient.dtype for gradient in once.values()} == {np.dtype(dtype)}
    assert all(np.isfinite(array).all() for array in (host(y), *once.values()))
    for factor in (-2, 0):
        scaled = gradients(problem, protected(device(np.asarray(factor * host(dy), dtype))))
        for name, gradient in once.items():
            assert np.abs(scaled[name] - factor * gradient).max() <= np.finfo(dtype).tiny, name


def check_slope(problem, seed):
    """All gradients together equal a complex step along a random direction."""
    dy, _ = draw_upstream(problem, seed, np.float64)
    got = gradients(problem, dy)
    rng = np.random.default_rng([seed, 2])
    directions = {name: rng.standard_normal(gradient.shape) for name, gradient in got.items()}
    slope = slope_along(problem, dy, directions)
    along = sum((gradient * directions[name]).sum() for name, gradient in got.items())
    norm = np.sqrt(sum((gradient * gradient).sum() for gradient in got.values()))  # of the same size as such a slope
    assert abs(along - slope) <= 1e-10 * norm


@pytest.mark.host_only
@every_group
@some_examples
@given(n=sizes, seed=seeds, dtype=dtypes, data=st.data())
def test_gradients_are_finite_have_the_right_shapes_and_dtypes_and_are_linear_in_dy(group, n, seed, dtype, data):
    subject = data.draw(st.sampled_from(select_subjects([group])), label="row")
    check_finite_and_linear(build(subject, n, seed, dtype), seed, dtype)


@pytest.mark.exhaustive
@pytest.mark.host_only
@every_group
@some_examples
@given(n=sizes, seed=seeds, data=st.data())
def test_all_gradients_together_equal_a_complex_step_along_a_random_direction(group, n, seed, data):
    subject = data.draw(st.sampled_from(select_subjects([group])), label="row")
    check_slope(build(subject, n, seed, np.float64), seed)


@pytest.mark.exhaustive
@every_group
def test_both_hold_for_the_last_row_of_each_group_on_every_backend(group):
    subject = select_subjects([group])[-1]
    check_finite_and_linear(build(subject, Sizes(), 1, np.float32), 1, np.float32)
    check_slope(build(subject, Sizes(), 2, np.float64), 2)
