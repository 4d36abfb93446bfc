"""The kernels, too, are right for numbers from 1e-30 to 1e30, or visibly not finite: never finite and wrong."""

import pytest

from tests.functional.extremes import PAIRS, check_all_arguments, check_one_argument

WITH_KERNELS = ("cross_entropy", "dropout", "embedding", "layer_norm", "relu", "softmax", "softmax with a mask")
CASES = [(name, argument) for name in WITH_KERNELS for argument in (*PAIRS[name].shapes, "dy")]


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_numbers_of_any_size_give_right_results_or_overflow_only_where_the_right_one_does(device, name, argument):
    check_one_argument(PAIRS[name], argument)


@pytest.mark.parametrize("name", [*WITH_KERNELS, "attention"])
def test_what_overflows_on_the_way_is_not_finite_in_the_end(device, name):
    check_all_arguments(PAIRS[name])
