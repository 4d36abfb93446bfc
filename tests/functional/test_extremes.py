"""In float32 every function is right, or visibly not finite, for numbers from 1e-30 to 1e30: never finite and wrong.

And each of them, whatever it remembers, leaves alone what it was given.
"""

import numpy as np
import pytest

from minitransformer import functional as F
from tests.functional.extremes import (
    PAIRS,
    SATURATING,
    SUMS,
    check_all_arguments,
    check_one_argument,
    drawn,
)
from tests.helpers import device, host, protected, same

CASES = [(name, argument) for name, pair in (PAIRS | SATURATING).items() for argument in (*pair.shapes, "dy")]
EVERY_PAIR = PAIRS | SATURATING | SUMS


def test_every_function_with_a_backward_is_here():
    names = {name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward")}
    assert {
        name.removeprefix("scaled_dot_product_") for name in names
    } <= PAIRS.keys() | SATURATING.keys() | SUMS.keys()


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_numbers_of_any_size_give_right_results_or_overflow_only_where_the_right_one_does(name, argument):
    check_one_argument((PAIRS | SATURATING)[name], argument)


@pytest.mark.parametrize("name", PAIRS)
def test_what_overflows_on_the_way_is_not_finite_in_the_end(name):
    check_all_arguments(PAIRS[name])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EVERY_PAIR)
def test_the_dtype_is_kept_no_input_is_written_and_backward_may_be_called_again(name, dtype):
    pair = EVERY_PAIR[name]
    *inputs, dy = (protected(device(array.astype(dtype))) for array in drawn(pair).values())
    y, cache = pair.forward(**dict(zip(pair.shapes, inputs, strict=True)))
    first, again = (pair.backward(dy, cache) for _ in range(2))
    first, again = (gradients if isinstance(gradients, tuple) else (gradients,) for gradients in (first, again))
    assert {array.dtype for array in (y, *first)} == {np.dtype(dtype)}
    assert all(same(host(a).copy(), b) for a, b in zip(first, again, strict=True))
