"""erf in blocks, of parts of arrays and of complex numbers; how exact it is, is shown by tests/precision."""

import math

import numpy as np
import pytest

from minitransformer.functional.reductions import BLOCK
from minitransformer.functional.since_2017.erf import erf
from tests.helpers import device, host, relative_error, same


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
