"""ALiBi's bias falls in a straight line with distance, for each head at the rate that the paper gives it."""

import numpy as np
import pytest

from minitransformer.functional import alibi_bias, alibi_slopes, causal_mask, softmax
from tests.helpers import device, host, random_array, relative_error

H, T, S, START = 6, 5, 9, 3


@pytest.mark.host_only
def test_eight_heads_have_the_slopes_of_the_paper():
    assert alibi_slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_under_a_causal_mask_the_weights_are_those_of_the_authors_code():
    """It adds slope * s, without the query's own position: the softmax does not see the difference."""
    scores = random_array(np.random.default_rng(64), 2, H, T, T)
    slope_times_key = device(np.array([[[slope * s for s in range(T)]] for slope in alibi_slopes(H)]))
    ours, _ = softmax(scores + alibi_bias(H, T, T, dtype=np.float64), causal_mask(T))
    theirs, _ = softmax(scores + slope_times_key, causal_mask(T))
    assert relative_error(ours, host(theirs)) <= 1e-13
