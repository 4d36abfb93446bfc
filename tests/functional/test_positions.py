"""The position table holds the paper's sinusoids: a shift in time turns each pair of features by a fixed angle."""

import numpy as np
import pytest

from minitransformer.functional import sinusoidal_positions
from minitransformer.functional.positions import rows_from
from tests.helpers import device, host

LENGTH, C = 23, 8
pytestmark = pytest.mark.host_only  # the table is computed with NumPy whatever the backend


def test_rows_from_a_start_are_those_of_the_next_positions():
    table = sinusoidal_positions(LENGTH, C)
    assert np.array_equal(rows_from(table, 4, 3), table[[4, 5, 6]])
    assert np.array_equal(rows_from(table, LENGTH - 3, 3), table[-3:])
    assert np.array_equal(rows_from(table, 0, LENGTH), table)


def test_rows_from_several_starts_are_those_of_each_sequence_and_padding_in_front_gets_the_first():
    table = sinusoidal_positions(LENGTH, C)
    rows = rows_from(table, np.array([2, -2, -9, LENGTH - 4]), 4)
    assert rows.shape == (4, 4, C)
    for got, positions in zip(rows, ([2, 3, 4, 5], [0, 0, 0, 1], [0] * 4, range(LENGTH - 4, LENGTH)), strict=True):
        assert np.array_equal(got, table[list(positions)])


def test_a_sequence_of_padding_alone_gets_the_first_row():
    table = device(np.random.default_rng(3).standard_normal((5, 4)))
    assert host(rows_from(table, np.array([-5]), 2)).tolist() == [[host(table)[0].tolist()] * 2]
