"""In float32 every function is right, or visibly not finite, for numbers from 1e-30 to 1e30: never finite and wrong."""

import pytest

from minitransformer import functional as F
from tests.functional.extremes import PAIRS, SATURATING, SUMS, check_all_arguments, check_one_argument, check_sums

CASES = [(name, argument) for name, pair in (PAIRS | SATURATING).items() for argument in (*pair.shapes, "dy")]


def test_every_function_with_a_backward_is_here():
    names = {name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward")}
    assert {
        name.removeprefix("scaled_dot_product_") for name in names
    } <= PAIRS.keys() | SATURATING.keys() | SUMS.keys()


@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name, (pair, _) in SUMS.items() for argument in pair.shapes]
)
@pytest.mark.parametrize("scale", [1e-20, 1e-6, 1e6, 1e13, 1e20])
def test_attention_by_sums_is_right_up_to_the_rounding_of_its_sums(name, argument, scale):
    check_sums(name, argument, scale)


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_numbers_of_any_size_give_right_results_or_overflow_only_where_the_right_one_does(name, argument):
    check_one_argument((PAIRS | SATURATING)[name], argument)


@pytest.mark.parametrize("name", PAIRS)
def test_what_overflows_on_the_way_is_not_finite_in_the_end(name):
    check_all_arguments(PAIRS[name])
