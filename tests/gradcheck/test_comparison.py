"""`relative_error`, the measure that all tests, lessons and reports use."""

import math

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.gradcheck import relative_error
from tests.strict.strict import strict


def test_the_largest_difference_is_divided_by_the_largest_entry_expected():
    assert relative_error(np.array([1.0, -7.5]), np.array([1.5, -8.0])) == 0.5 / 8.0
    assert relative_error(2.5, 2.0) == 0.25


def test_where_all_entries_should_be_0_the_error_is_the_difference_itself():
    assert relative_error(np.array([0.0, 0.25]), np.zeros(2)) == 0.25
    assert relative_error(np.zeros(2), np.zeros(2)) == 0.0
    assert relative_error(np.zeros((0, 2)), np.zeros((0, 2))) == 0.0


@pytest.mark.parametrize(("got", "expected"), [(np.nan, 1.0), (1.0, np.nan), (np.nan, 0.0)])
def test_a_nan_on_either_side_is_never_small(got, expected):
    assert math.isnan(relative_error(np.array([got, 1.0]), np.array([expected, 1.0])))


def test_arrays_that_only_broadcast_are_refused():
    with pytest.raises(ValueError, match=r"shapes differ: \(3,\) and \(1, 3\)"):
        relative_error(np.ones(3), np.ones((1, 3)))


def test_arrays_may_be_on_the_device():
    with use_backend(strict):
        assert relative_error(strict.asarray(np.array([1.0, 2.5])), np.array([1.0, 2.0])) == 0.25
