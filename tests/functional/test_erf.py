"""erf is Python's own to a few units in the last place, in both precisions, from the smallest numbers to the tails."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from minitransformer.functional.since_2017.erf import BLOCK, erf, normal_cdf, normal_pdf
from tests.helpers import device, host, relative_error, same

EVERYWHERE = np.concatenate([np.linspace(-7.0, 7.0, 2_801), np.geomspace(1e-37, 7.0, 1_000), [-1e18, -30.0, 1e9, 1e18]])
both = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def error_in_last_places(got, exact):
    """The largest difference of two arrays, in units in the last place of `exact` in the dtype of `got`."""
    unit = np.spacing(np.abs(exact).astype(got.dtype)).astype(np.float64)
    return (np.abs(got.astype(np.float64) - exact) / unit).max()


@both
@pytest.mark.parametrize("scale", [1.0, math.sqrt(0.5), 2.3])
def test_erf_is_right_to_four_units_in_the_last_place(dtype, scale):
    x = EVERYWHERE.astype(dtype)
    exact = np.array([math.erf(scale * float(value)) for value in x])
    assert error_in_last_places(host(erf(device(x), scale)), exact) <= 4.0


def test_the_complex_step_derivative_of_erf_is_the_bell_curve():
    z = np.linspace(-6.5, 6.5, 1001)
    slopes = host(erf(device(z + 1e-30j))).imag / 1e-30
    assert relative_error(slopes, 2.0 / math.sqrt(math.pi) * np.exp(-z * z)) <= 1e-14


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_an_array_of_many_blocks_equals_its_rows_one_by_one(rows):
    x = np.random.default_rng(1).standard_normal((rows, BLOCK // 2 - 5)).astype(np.float32)
    whole = host(erf(device(x)))
    assert all(same(erf(device(x[i])), whole[i]) for i in range(rows))


def test_erf_takes_every_shape_also_that_of_a_part_of_an_array():
    x = np.random.default_rng(2).standard_normal((3, 4, 10))
    exact = np.vectorize(math.erf)(x)
    for part in (np.s_[...], np.s_[..., :5], np.s_[:, 1:3, ::2], np.s_[0, 0, 0:1], np.s_[:0]):
        assert relative_error(erf(device(x)[part]), exact[part]) <= 1e-15
    assert relative_error(erf(device(np.array(0.3))), math.erf(0.3)) <= 1e-15


def test_the_normal_distribution_is_that_of_pythons_statistics():
    x = np.linspace(-5.0, 5.0, 501)
    normal = NormalDist()
    assert relative_error(normal_cdf(device(x)), [normal.cdf(value) for value in x]) <= 1e-15
    assert relative_error(normal_pdf(device(x)), [normal.pdf(value) for value in x]) <= 1e-15
