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
def test_sixteen_heads_have_the_geometric_mean_between_those_of_eight():
    """Section 3: from 1 / sqrt(2), in steps of it."""
    assert relative_error(alibi_slopes(16), [0.5 ** (i / 2) for i in range(1, 17)]) <= 1e-15


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


@pytest.mark.host_only
def test_no_two_heads_have_one_slope():
    for num_heads in range(1, 40):
        slopes = alibi_slopes(num_heads)
        assert len(set(slopes)) == num_heads
        assert 2**-8 <= min(slopes) <= max(slopes) < 1


def test_the_bias_is_minus_slope_times_distance():
    bias, slopes = alibi_bias(H, T, S, START, np.float64), alibi_slopes(H)
    expected = [[[-slopes[h] * abs(START + t - s) for s in range(S)] for t in range(T)] for h in range(H)]
    assert relative_error(bias, expected) <= 1e-15


def test_a_key_at_the_querys_own_position_costs_nothing_and_every_other_something():
    bias = host(alibi_bias(H, T, S, START, np.float64))
    for t in range(T):
        assert (bias[:, t, START + t] == 0).all()
        assert (np.delete(bias[:, t], START + t, axis=-1) < 0).all()


def test_queries_from_start_on_are_those_rows_of_the_whole():
    assert same(alibi_bias(H, T, S, START), alibi_bias(H, S, S)[:, START : START + T])


def test_under_a_causal_mask_the_weights_are_those_of_the_authors_code():
    """It adds slope * s, without the query's own position: the softmax does not see the difference."""
    scores = random_array(np.random.default_rng(64), 2, H, T, T)
    slope_times_key = device(np.array([[[slope * s for s in range(T)]] for slope in alibi_slopes(H)]))
    ours, _ = softmax(scores + alibi_bias(H, T, T, dtype=np.float64), causal_mask(T))
    theirs, _ = softmax(scores + slope_times_key, causal_mask(T))
    assert relative_error(ours, host(theirs)) <= 1e-13


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_bias_has_the_dtype_that_is_asked_for(dtype):
    bias = alibi_bias(H, T, S, START, dtype)
    assert bias.dtype == dtype
    assert bias.shape == (H, T, S)
    assert relative_error(bias, host(alibi_bias(H, T, S, START, np.float64))) <= np.finfo(dtype).eps
