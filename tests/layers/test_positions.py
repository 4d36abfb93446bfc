"""PositionalEncoding adds the position's vector to each token, learns nothing, and knows where its table ends."""

import numpy as np
import pytest

from minitransformer.layers import PositionalEncoding
from tests.functional.test_positions import naive_positions
from tests.helpers import device, host, random_array, relative_error

B, T, C, MAX_LEN = 2, 4, 6, 9


def test_each_token_gets_the_vector_of_its_position():
    x = random_array(np.random.default_rng(23), B, T, C)
    y = PositionalEncoding(MAX_LEN, C, dtype=np.float64)(x)
    x, table = host(x), naive_positions(MAX_LEN, C)
    expected = [[[x[b, t, c] + table[t, c] for c in range(C)] for t in range(T)] for b in range(B)]
    assert relative_error(y, expected) <= 1e-12


def test_positions_have_no_parameters():
    assert PositionalEncoding(MAX_LEN, C).parameters() == []


def test_a_sequence_of_max_len_fits_and_a_longer_one_is_refused_with_both_lengths():
    layer = PositionalEncoding(MAX_LEN, C)
    assert layer(device(np.zeros((B, MAX_LEN, C), np.float32))).shape == (B, MAX_LEN, C)
    with pytest.raises(ValueError, match="10 tokens long, but there are only 9 positions"):
        layer(np.zeros((B, MAX_LEN + 1, C), np.float32))
