"""ALiBi's bias falls in a straight line with distance, for each head at the rate that the paper gives it."""

import numpy as np
import pytest

from minitransformer.functional import alibi_bias, alibi_slopes, causal_mask, softmax
from tests.helpers import device, host, random_array, relative_error, same

H, T, S, START = 6, 5, 9, 3


@pytest.mark.host_only
def test_eight_heads_have_the_slopes_of_the_paper():
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


@pytest.mark.host_only
@pytest.mark.parametrize(
    ("num_heads", "exponents"),
    [
        (1, [8]),
        (2, [4, 8]),
        (3, [4, 8, 2]),
        (6, [2, 4, 6, 8, 1, 3]),
        (12, [1, 2, 3, 4, 5, 6, 7, 8, 0.5, 1.5, 2.5, 3.5]),
    ],
)
def test_other_numbers_of_heads_take_every_other_slope_of_twice_as_many(num_heads, exponents):
    assert relative_error(alibi_slopes(num_heads), [2.0**-e for e in exponents]) <= 1e-15


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bias_is_minus_slope_times_distance_in_the_dtype_that_is_asked_for(dtype):
    bias, slopes = alibi_bias(H, T, S, START, dtype), alibi_slopes(H)
    expected = [[[-slopes[h] * abs(START + t - s) for s in range(S)] for t in range(T)] for h in range(H)]
    assert bias.dtype == dtype
    assert relative_error(bias, expected) <= np.finfo(dtype).eps
    assert same(alibi_bias(H, S, S, dtype=dtype)[:, START : START + T], bias)


def test_under_a_causal_mask_the_weights_are_those_of_the_authors_code():
    """It adds slope * s, without the query's own position: the softmax does not see the difference."""
    scores = random_array(np.random.default_rng(64), 2, H, T, T)
    slope_times_key = device(np.array([[[slope * s for s in range(T)]] for slope in alibi_slopes(H)]))
    ours, _ = softmax(scores + alibi_bias(H, T, T, dtype=np.float64), causal_mask(T))
    theirs, _ = softmax(scores + slope_times_key, causal_mask(T))
    assert relative_error(ours, host(theirs)) <= 1e-13
