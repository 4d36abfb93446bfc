"""A matrix made of its diagonals, and its backward, entry by entry."""

import numpy as np
import pytest

from minitransformer.functional.since_2017.diagonals import toeplitz
from tests.helpers import host, random_array

H = 2
SIZES = [(3, 5), (5, 3), (4, 4), (1, 6), (6, 1), (1, 1)]


@pytest.mark.parametrize(("T", "S"), SIZES)
def test_an_entry_is_the_number_of_its_distance(T, S):
    values = random_array(np.random.default_rng(0), H, T + S - 1)
    y = host(toeplitz(values, T, S))
    assert y.shape == (H, T, S)
    for h, t, s in np.ndindex(H, T, S):
        assert y[h, t, s] == host(values)[h, s - t + T - 1]
