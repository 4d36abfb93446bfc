"""What no kernel may get wrong: numbers of any size, arrays without rows, and arrays that the plain formulas take."""

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.backend import to_device, to_host
from minitransformer.functional.embedding import scatter_add
from tests.functional.extremes import PAIRS, check_all_arguments, check_one_argument
from tests.kernels.comparing import fused

pytestmark = pytest.mark.exhaustive
WITH_KERNELS = ("cross_entropy", "dropout", "embedding", "layer_norm", "relu", "softmax", "softmax with a mask")
CASES = [(name, argument) for name in WITH_KERNELS for argument in (*PAIRS[name].shapes, "dy")]


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_numbers_of_any_size_give_right_results_or_overflow_only_where_the_right_one_does(device, name, argument):
    check_one_argument(PAIRS[name], argument)


@pytest.mark.parametrize("name", [*WITH_KERNELS, "attention"])
def test_what_overflows_on_the_way_is_not_finite_in_the_end(device, name):
    check_all_arguments(PAIRS[name])


def test_no_rows_are_no_work(device):
    loss, cache = fused("cross_entropy", np.empty((0, 5)), np.empty(0, np.int64))
    assert loss == 0
    assert fused("cross_entropy_backward", 1.0, cache).shape == (0, 5)
    assert fused("softmax", np.empty((0, 5)))[0].shape == (0, 5)
    assert fused("softmax_backward", np.empty((0, 5)), np.empty((0, 5))).shape == (0, 5)
    table = to_device(np.ones((3, 2)))
    scatter_add(table, np.empty(0, np.int64), to_device(np.empty((0, 2))))
    np.testing.assert_array_equal(to_host(table), 1.0)


def calls(x, other):
    """{name: the arguments of each kernel}, with `other` in one of the places of `x` (3, 4)."""
    row, column = x[0], to_device(np.ones((3, 1)))
    ids, keep = np.array([0, 1, 1]), to_device(np.ones((3, 4), bool))
    rates = (0.1, 0.9, 0.98, 1e-9, 1, 1.0)
    return {
        "softmax_backward": (x, other),
        "layer_norm": (other, row, row, 1e-5),
        "layer_norm_backward": (other, x, column, row),
        "cross_entropy_backward": (1.0, other, to_device(ids), to_device(np.ones(3)), 0.1, False),
        "dropout_backward": (other, keep, 1.5),
        "relu_backward": (x, other),
        "scatter_add": (x, ids, other),
        "adam_update": (x, other, x, x, *rates),
    }


@pytest.mark.parametrize("name", calls(np.ones((3, 4)), None))
def test_complex_numbers_are_left_to_the_plain_formula(device, name):
    x = to_device(np.ones((3, 4)))
    assert getattr(kernels, name)(*calls(x, x.astype(np.complex128))[name]) is NotImplemented
