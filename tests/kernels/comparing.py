"""Calling a function with its kernels and with its plain formulas on the same arrays, and comparing all results."""

from unittest import mock

import numpy as np

from minitransformer import functional
from minitransformer.backend import to_device, to_host, use_backend
from minitransformer.kernels import launch
from tests.helpers import relative_error

TOLERANCE = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-13}
DTYPES = (np.float32, np.float64)


def fused(name, *args, **kwargs):
    """What `functional.<name>` returns with CuPy in use, for arrays of the host, on the host again."""
    arguments = each_array(to_device, [*args, kwargs])
    with mock.patch.object(launch, "_kernel", wraps=launch._kernel) as find_kernel:
        result = each_array(to_host, getattr(functional, name)(*arguments[:-1], **arguments[-1]))
    assert find_kernel.called or 0 in np.shape(result[0] if isinstance(result, tuple) else result), "no kernel ran"
    return result


def plain(function, *args, **kwargs):
    """What a plain function returns on NumPy, computed in float64, so that its own rounding does not count."""
    arguments = each_array(_in_double, [*args, kwargs])
    with use_backend("numpy"):
        return function(*arguments[:-1], **arguments[-1])


def each_array(change, value):
    """`value` with every array in it changed: `value` may be one, or a tuple, a list or a dictionary of some."""
    if isinstance(value, dict):
        return {name: each_array(change, item) for name, item in value.items()}
    if isinstance(value, list):
        return [each_array(change, item) for item in value]
    if isinstance(value, tuple):
        items = [each_array(change, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return change(value) if hasattr(value, "dtype") else value


def _in_double(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def assert_same(got, expected, dtype):
    """All arrays equal to rounding in `dtype`, which all real ones must have; everything else exactly equal."""
    if isinstance(expected, tuple):
        assert type(got) is type(expected)
        for one, other in zip(got, expected, strict=True):
            assert_same(one, other, dtype)
    elif isinstance(expected, np.ndarray | np.generic) and expected.dtype.kind == "f":
        assert got.dtype == dtype
        assert relative_error(got, expected) <= TOLERANCE[np.dtype(dtype)]
    elif isinstance(expected, np.ndarray):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
    else:
        assert got == expected
